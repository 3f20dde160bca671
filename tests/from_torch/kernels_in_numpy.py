"""The kernels that the front end makes of a function of torch, evaluated by NumPy.

Nothing is lowered or compiled, so that many functions can be compared with torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from dace import SDFG
from torch import Tensor, nn

from distspmd import frontend
from distspmd.execution.binding import binding_of
from distspmd.expressions.evaluation import evaluate
from distspmd.expressions.ir import Argument, Call, Expression, IndexValue, Load, replace_leaves
from distspmd.frontend.from_torch import api
from distspmd.frontend.from_torch.arguments import MemoryBinding
from distspmd.frontend.operators.aten_registry import HALVES
from distspmd.frontend.tensor_ir.indices import Array, Index, Variable
from distspmd.frontend.tensor_ir.kernels import LAPACK, LINES, Builder, Kernel, current_indices
from from_torch.lapack_on_paper import run_lapack
from from_torch.lines_on_paper import run_on_lines

_REDUCTIONS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Program:
    """What the front end made last."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.kernels: list[Kernel] = []
        made = api.emit

        def emit(
            name: str, builder: Builder, main: Sequence[Kernel], update: Sequence[Kernel]
        ) -> SDFG:
            self.kernels = [*main, *update]
            return made(name, builder, main, update)

        patch.setattr(api, "emit", emit)

    def of(self, module: nn.Module, *inputs: Tensor) -> list[Tensor]:
        """The results of the forward pass of a module."""
        return self.run(frontend.torch_module(module, *inputs), inputs)[0]

    def step(
        self, step: Callable[..., Any], *inputs: Tensor
    ) -> tuple[list[Tensor], dict[str, Any]]:
        """The results of a training step, and the live tensors after it, by their names."""
        return self.run(frontend.training_step(step, *inputs), inputs)

    def calls(self, step: Callable[..., Any], *inputs: Tensor) -> Callable[..., list[Tensor]]:
        """A step that is traced once; each call updates the live tensors."""
        sdfg = frontend.training_step(step, *inputs)
        kernels, binding = self.kernels, binding_of(sdfg)
        assert isinstance(binding, MemoryBinding)

        def call(*given: Tensor) -> list[Tensor]:
            self.kernels = kernels
            known = binding.arguments()  # which compares what the program assumes
            results, live = self.run(sdfg, given, known.get("seed"))
            for slot in binding.live.values():
                if slot.kind != "rate":
                    with torch.no_grad():
                        slot.fetch().copy_(live[slot.name])
            binding.has_run()
            return results

        return call

    def run(
        self, sdfg: SDFG, inputs: Sequence[Tensor], seed: Any = None
    ) -> tuple[list[Tensor], dict[str, Any]]:
        """The results, and the live tensors afterwards; random numbers are drawn from a seed."""
        binding: Any = binding_of(sdfg)
        shapes = {name: tuple(map(int, array.shape)) for name, array in sdfg.arrays.items()}
        memory = {
            name: np.full(shapes[name], 77, array.dtype.type) for name, array in sdfg.arrays.items()
        }
        for name, slot in binding.live.items():
            memory[name] = np.array(as_stored(slot.fetch())).reshape(shapes[name])
        for name, value in zip(sdfg.arg_names, inputs, strict=True):
            memory[name] = np.array(as_stored(value)).reshape(shapes[name])
        if seed is not None:
            memory["seed"] = seed
        for kernel in self.kernels:
            run_kernel(kernel, memory)
        single = len(binding.results) == 1
        results = [
            as_given(memory["__return" if single else f"__return_{n}"], dtype).reshape(shape)
            for n, (shape, dtype) in enumerate(zip(binding.results, binding.types, strict=True))
        ]
        live = {
            slot.name: as_given(memory[name], slot.fetch().dtype).reshape(slot.fetch().shape)
            for name, slot in binding.live.items()
        }
        return results, live


def as_stored(tensor: Tensor) -> Any:
    """The memory of a tensor."""
    tensor = tensor.detach()
    return (tensor.view(torch.uint16) if tensor.dtype in HALVES else tensor).numpy()


def as_given(array: Any, dtype: torch.dtype) -> Tensor:
    """An array as a tensor of torch's type."""
    found = torch.from_numpy(array)
    return found.view(dtype) if dtype in HALVES else found


def run_kernel(kernel: Kernel, memory: dict[str, Any]) -> None:
    """Write the results of a kernel."""
    if kernel.operation == LINES:
        _run_lines(kernel, memory)
        return
    if kernel.operation == LAPACK:
        run_lapack(kernel, memory)
        return
    kept = [leaf for v in kernel.variables for leaf in v.leaves()]
    gone = [leaf for v in kernel.reduced for leaf in v.leaves()]
    grid = _grid([*kept, *gone])
    shape = tuple(v.length for v in (*kept, *gone))
    found = []
    for _, expression in kernel.results:
        value = np.broadcast_to(_value(expression, grid, memory), shape)
        if kernel.operation:
            axes = tuple(range(len(kept), len(shape)))
            value = _REDUCTIONS[kernel.operation].reduce(value, axis=axes)
        found.append(value)
    for (array, _), value in zip(kernel.results, found, strict=True):
        _store(array, kept, np.broadcast_to(value, shape[: len(kept)]), memory)


def _run_lines(kernel: Kernel, memory: dict[str, Any]) -> None:
    leaves = [leaf for v in kernel.variables for leaf in v.leaves()]
    grid, shape = _grid(leaves), tuple(leaf.length for leaf in leaves)

    def first(load: Load) -> tuple[Any, Any]:
        array = memory[load.array.name]
        assert array.flags.c_contiguous
        places = [_at(index, grid) for index in current_indices(load)]
        strides = [step // array.itemsize for step in array.strides]
        flat: Any = sum(place * step for place, step in zip(places, strides, strict=True))
        return array, np.broadcast_to(flat, shape)

    call = kernel.results[0][1]
    assert isinstance(call, Call)
    lines = [first(load) for load in call.arguments if isinstance(load, Load)]
    made = [first(array.written) for array, _ in kernel.results if array.written is not None]
    run_on_lines(call.function.partition(":")[2], lines, made)


def _store(array: Array, kept: list[Variable], value: Any, memory: dict[str, Any]) -> None:
    target = memory[array.name]
    if array.written is None:
        order = [kept.index(v) for v in array.stored(kept)]
        target[...] = np.transpose(value, order).reshape(target.shape)
        return
    grid = _grid(kept)
    places = [_at(index, grid) for index in current_indices(array.written)]
    target[tuple(np.broadcast_arrays(*places, value)[:-1])] = value


def _grid(variables: Sequence[Variable]) -> dict[Variable, Any]:
    return {
        v: np.arange(v.length).reshape([-1 if m == n else 1 for m in range(len(variables))])
        for n, v in enumerate(variables)
    }


def _at(index: Index, grid: dict[Variable, Any]) -> Any:
    total: Any = index.constant
    for variable, factor in index.terms:
        for leaf, inner in Index.of(variable.leaves()).terms:
            total = total + grid[leaf] * factor * inner
    total = total // index.divisor
    return total if index.within is None else np.clip(total, 0, index.within - 1)


def _value(expression: Expression, grid: dict[Variable, Any], memory: dict[str, Any]) -> Any:
    values: dict[str, Any] = {}

    def named(leaf: Expression) -> Expression:
        if isinstance(leaf, Load):
            places = tuple(_at(index, grid) for index in current_indices(leaf))
            value = memory[leaf.array.name]
            value = value[places] if places else value.reshape(())
        elif isinstance(leaf, IndexValue):
            value = np.asarray(_at(Index(leaf.terms, leaf.constant), grid))
        else:
            return leaf
        name = f"v{len(values)}"
        values[name] = value
        return Argument(name, leaf.dtype)

    return evaluate(replace_leaves(expression, named), values, functions={"uniform": uniform})


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniform(seed: Any, draw: Any, place: Any) -> Any:
    """The number in [0, 1) that programs draw, as `counter_rng.hpp` has it."""
    with np.errstate(over="ignore"):
        seed, draw, place = (np.asarray(each).astype(np.uint64) for each in (seed, draw, place))
        stream = _mixed(seed + _GOLDEN * draw)
        bits = _mixed(stream + _GOLDEN * (place + np.uint64(1)))
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
