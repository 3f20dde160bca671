"""Modules and whole training steps of PyTorch as one SDFG each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from dace import SDFG
from torch import fx, nn
from torch.utils import _pytree as pytree

from distspmd.analysis.meanings import CARRIED, Meanings, tell
from distspmd.errors import UnsupportedProgram
from distspmd.execution.binding import bind
from distspmd.expressions.operations import UINT16
from distspmd.frontend.from_torch.arguments import MemoryBinding
from distspmd.frontend.from_torch.assumptions import index_ranges
from distspmd.frontend.from_torch.closures import check_input
from distspmd.frontend.from_torch.slots import Slot
from distspmd.frontend.from_torch.trace import Trace, trace
from distspmd.frontend.operators import OPERATORS, evaluate
from distspmd.frontend.operators.aten_registry import HALVES, element_type, loaded, stored_as
from distspmd.frontend.operators.aten_registry import number as constant
from distspmd.frontend.tensor_ir.cse import settle, share_results
from distspmd.frontend.tensor_ir.dimension_names import dimension_names
from distspmd.frontend.tensor_ir.fuse import fuse, inline_into_updates
from distspmd.frontend.tensor_ir.identifiers import identifier
from distspmd.frontend.tensor_ir.indices import Array, Value, new_variables
from distspmd.frontend.tensor_ir.inplace_updates import copies, join_updates, updates
from distspmd.frontend.tensor_ir.kernels import Builder, Kernel, operator_of
from distspmd.frontend.tensor_ir.storage_order import arrange
from distspmd.frontend.tensor_ir.to_sdfg import emit
from distspmd.runtime.engine.compile_runtime import INCLUDE


def torch_module(module: nn.Module, *example_inputs: torch.Tensor, name: str | None = None) -> SDFG:
    """The forward pass of a module as an SDFG.

    Its parameters and buffers are arguments with the names that PyTorch gives them, dots as
    underscores; a compiled program passes them from the live module, without a copy.

    Args:
        module: stays bound to the SDFG.
        example_inputs: their shapes and types are those of the program.
        name: of the program; that of the module's class by default.

    Raises:
        UnsupportedProgram: an operator that is not covered, or what cannot be traced.
    """
    names = _input_names(module.forward, len(example_inputs))
    _check_inputs(example_inputs, names)
    title = name or type(module).__name__.lower()
    with torch.no_grad():
        return program_of(trace(module.forward, example_inputs, names), title, example_inputs)


def training_step(
    step: Callable[..., Any], *example_inputs: torch.Tensor, name: str | None = None
) -> SDFG:
    """A training step as an SDFG: forward, backward, and the update of what it closes over.

    Args:
        step: the function as it is: it clears the gradients, runs a module, computes a loss, calls
            ``backward`` and the optimizer. The module and the optimizer stay bound to the SDFG.
        example_inputs: their shapes and types are those of the program.
        name: of the program; that of the function by default.

    Raises:
        UnsupportedProgram: an operator that is not covered, or what cannot be traced.
    """
    names = _input_names(step, len(example_inputs))
    _check_inputs(example_inputs, names)
    title = str(name or getattr(step, "__name__", "step"))
    return program_of(trace(step, example_inputs, names), title, example_inputs)


def _input_names(function: Callable[..., Any], count: int) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[n] if n < len(names) else f"input_{n}" for n in range(count)]


def input_names(
    function: Callable[..., Any] | nn.Module,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    count: int,
) -> list[str]:
    """Names for the tensors of a call: those of the parameters, where each is a tensor."""
    plain = [isinstance(each, torch.Tensor) for each in (*arguments, *named.values())]
    forward = function.forward if isinstance(function, nn.Module) else function
    if not all(plain) or not plain:
        return [f"input_{number}" for number in range(count)]
    return [*_input_names(forward, len(arguments)), *named]


def traced_program(
    function: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    names: Sequence[str],
    title: str,
    varying: Collection[str] = (),
) -> SDFG:
    """The SDFG of a function of tensors, which is traced at some.

    Raises:
        UnsupportedProgram: an operator that is not covered, or what cannot be traced.
    """
    _check_inputs(inputs, names)
    return program_of(trace(function, inputs, names, varying), title, inputs)


def program_of(
    traced: Trace,
    title: str,
    inputs: Sequence[torch.Tensor],
    bound: type[MemoryBinding] = MemoryBinding,
) -> SDFG:
    """The SDFG of what was traced at some inputs, bound to the tensors that it closes over.

    Raises:
        UnsupportedProgram: operators on single elements that follow each other for too long.
    """
    try:
        return _program_of(traced, title, inputs, bound)
    except RecursionError:
        raise UnsupportedProgram(
            f"{title}: {len(traced.graph.nodes):,} operators follow each other without a product, "
            "a reduction or another array between them, more than can be written as one "
            "expression. Split the chain into several modules."
        ) from None


def _program_of(
    traced: Trace,
    title: str,
    inputs: Sequence[torch.Tensor],
    bound: type[MemoryBinding],
) -> SDFG:
    builder = Builder()
    slots = {slot.name: slot for slot in traced.slots}
    containers: dict[str, str] = {}
    stored: dict[fx.Node, Value] = {}
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for node, name in zip(placeholders, [*slots, *traced.inputs], strict=True):
        if node.users or name not in slots:
            example = node.meta["val"]
            stored[node], builder.values[node] = _argument(builder, name, example)
            containers[name] = list(builder.arrays)[-1]
    written: dict[fx.Node, tuple[Value, Value, fx.Node]] = {}
    results: list[Value] = []
    types: list[torch.dtype] = []
    for node in traced.graph.nodes:
        if node.op == "get_attr":
            tensor = traced.constants[str(node.target)]
            builder.values[node] = _constant(builder, tensor, slots, containers)
        elif node.op == "output":
            results = [_as_stored(builder.values[n], n) for n in node.args[0]]
            types = [n.meta["val"].dtype for n in node.args[0]]
        elif node.op == "call_function" and operator_of(node) == "copy_":
            _overwrite(builder, node, stored, written)
        elif node.op == "call_function":
            builder.values[node] = evaluate(builder, node)
    returned = _results(builder, results)
    late = updates(builder, [*written.values()])
    settle([*builder.kernels, *returned, *late])
    kernels = share_results(builder.kernels, [*returned, *late])
    early = [*inline_into_updates([*kernels, *returned], late), *copies(builder, late)]
    late = join_updates(late)
    early = fuse(early, late)
    arrange([*early, *late])
    sdfg = emit(identifier(title), builder, early, late)
    sdfg.arg_names = [containers[name] for name in traced.inputs]
    shapes = {name: tuple(map(int, array.shape)) for name, array in sdfg.arrays.items()}
    expected = {containers[n]: tuple(x.shape) for n, x in zip(traced.inputs, inputs, strict=True)}
    live = {containers[name]: slot for name, slot in slots.items() if name in containers}
    shown = [tuple(map(int, result.shape)) for result in results]
    draws = builder.seed is not None
    headers = {"counter_rng.hpp": draws, "half_precision.hpp": _has_halves(traced)}
    for header, is_needed in headers.items():
        if is_needed:
            sdfg.append_global_code((INCLUDE / "distspmd" / "kernels" / header).read_text())
    ranges = index_ranges(traced.graph)
    given = [*zip(placeholders[len(traced.slots) :], traced.inputs, strict=True)]
    indices = {containers[name]: ranges[node] for node, name in given if node in ranges}
    pairs = zip(placeholders, traced.slots, strict=False)
    kept = {slot.name for node, slot in pairs if node in written}
    _tell_meanings(sdfg, builder, traced, [*early, *late], containers, expected, kept)
    alone = [name for name, slot in live.items() if slot.fetch().is_meta]
    binding = bound(
        live,
        shapes,
        expected,
        shown,
        traced.results,
        draws,
        traced.assumptions,
        indices,
        types,
        without_memory=alone,
        only_read=[containers[name] for node, name in given if node not in written],
    )
    bind(sdfg, binding)
    return sdfg


def _argument(builder: Builder, name: str, example: torch.Tensor) -> tuple[Value, Value]:
    """A container of the caller as it is stored, and its numbers."""
    half = HALVES.get(example.dtype)
    stored = builder.argument(name, example.shape, UINT16 if half else element_type(example.dtype))
    return stored, loaded(stored, half) if half else stored


def _as_stored(value: Value, like: Any) -> Value:
    """A value as it is stored where the value of a node is."""
    half = HALVES.get(like.meta["val"].dtype)
    return stored_as(value, half) if half else value


def _overwrite(
    builder: Builder,
    node: Any,
    stored: Mapping[fx.Node, Value],
    written: dict[fx.Node, tuple[Value, Value, fx.Node]],
) -> None:
    """Note what a copy writes into an argument; of another one only its users see anything."""
    target, value = node.args[:2]
    builder.values[node] = builder.values[value]
    old, new = target.meta["val"], value.meta["val"]
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        pair = builder.values[target], builder.values[value]
        builder.values[node] = OPERATORS["copy"](builder, node, *pair)
    while operator_of(target) == "copy_":
        target = target.args[0]
    if target.op == "placeholder":
        written[target] = stored[target], _as_stored(builder.values[node], target), node


def _has_halves(traced: Trace) -> bool:
    examples = (node.meta.get("val") for node in traced.graph.nodes)
    leaves = (leaf for example in examples for leaf in pytree.tree_leaves(example))
    return any(getattr(leaf, "dtype", None) in HALVES for leaf in leaves)


def _tell_meanings(
    sdfg: SDFG,
    builder: Builder,
    traced: Trace,
    kernels: Sequence[Kernel],
    containers: Mapping[str, str],
    inputs: Mapping[str, tuple[int, ...]],
    written: Collection[str],
) -> None:
    """Let the SDFG carry paths of containers, and names of their dimensions.

    A buffer that the function writes is no matrix of a model; a tensor outside of modules that it
    reads is as an argument.
    """
    slots = [slot for slot in traced.slots if slot.name in containers]
    closed = traced.assumptions.closed
    shapes = {s.name: tuple(s.fetch().shape) for s in slots if s.kind == "parameter"}
    outside = {name for name in shapes if name in closed.outside and name in closed.buffers}
    kept = {name for name in written if name in closed.buffers} | outside
    parameters = {containers[name]: shape for name, shape in shapes.items() if name not in kept}
    inputs = {**inputs, **{containers[n]: shapes[n] for n in shapes if n in outside - {*written}}}
    arrays = {name: builder.arrays[name] for name in sdfg.arrays if name in builder.arrays}
    forward = [
        kernel
        for kernel in kernels
        if not builder.paths.get(kernel.results[0][0].name, "").endswith((".backward", ".update"))
    ]
    dimensions = dimension_names(forward, arrays, parameters, inputs)
    paths = {**builder.paths, **{containers[s.name]: f"{s.name}.update" for s in slots}}
    kinds = {
        containers[slot.name]: "parameters" if slot.kind == "parameter" else "states"
        for slot in slots
        if slot.kind in ("parameter", "state", "gradient")
    }
    carried = (containers[name] for name in kept & {*written})
    kinds |= {name: CARRIED for name in carried if "batch" in dimensions[name]}
    tell(sdfg, Meanings(paths, dimensions, kinds))


def _constant(
    builder: Builder,
    tensor: torch.Tensor,
    slots: dict[str, Slot],
    containers: dict[str, str],
) -> Value:
    """A tensor that the function makes of numbers: one number, or an argument of its own."""
    dtype = element_type(tensor.dtype)
    if not tensor.numel() or bool((tensor == tensor.flatten()[0]).all()):
        only = tensor.flatten()[0].item() if tensor.numel() else 0
        return Value(new_variables(tensor.shape), constant(only, dtype), tuple(tensor.shape))
    name = f"constant_{sum(slot.kind == 'constant' for slot in slots.values())}"
    slots[name] = Slot(name, lambda: tensor, "constant")
    _, found = _argument(builder, name, tensor)
    containers[name] = list(builder.arrays)[-1]
    return found


def _check_inputs(inputs: Sequence[Any], names: Sequence[str]) -> None:
    for name, value in zip(names, inputs, strict=True):
        if not isinstance(value, torch.Tensor):
            raise UnsupportedProgram(
                f"the example of the argument {name!r} is a {type(value).__name__}; arguments of a "
                "program are tensors. Let the function close over all else."
            )
        check_input(name, value)


def _results(builder: Builder, results: Sequence[Value]) -> list[Kernel]:
    kernels = []
    for number, value in enumerate(results):
        name = "__return" if len(results) == 1 else f"__return_{number}"
        array = Array(name, tuple(v.extent for v in value.variables), value.dtype)
        array.is_argument = True
        builder.arrays[name] = array
        kernels.append(Kernel(value.variables, [(array, value.expression)], "result"))
    return kernels
