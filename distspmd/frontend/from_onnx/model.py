"""A model in ONNX as a module for the tracer, in which each node is a module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
import torch
from onnx import checker, defs
from torch import Tensor, nn

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_onnx.custom import full_name
from distspmd.frontend.from_onnx.import_graph import Instruction, KnownTensor, Specialiser
from distspmd.frontend.from_onnx.types import onnx_type, tensor_of, torch_type
from distspmd.frontend.registered_operators import registered_operators

OPSETS = range(13, defs.onnx_opset_version() + 1)
"""Versions of the operators that are covered."""


class _Node(nn.Module):
    """The instructions of one node."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        super().__init__()
        self.instructions = instructions

    def forward(self, values: dict[str, Tensor]) -> None:
        for instruction in self.instructions:
            values.update(instruction.run(values.__getitem__))


class Model(nn.Module):
    """Runs a model; its constants are buffers with their names in ONNX.

    Attributes:
        inputs: shape and type of each argument, by name.
        outputs: names of the results.
    """

    def __init__(self, proto: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
        super().__init__()
        _check(proto)
        graph = proto.graph
        special = Specialiser(opset_of(proto), {(f.domain, f.name): f for f in proto.functions})
        for constant in graph.initializer:
            tensor = _named(f"the initializer {constant.name!r}", tensor_of, constant)
            folds = not tensor.is_floating_point()
            special.values[constant.name] = KnownTensor(tensor, folds)
        self.inputs = _inputs(graph, special.values, sizes)
        for name, (shape, dtype) in self.inputs.items():
            special.argument(name, shape, dtype)
        nodes: dict[str, nn.Module | None] = {}
        for number, node in enumerate(graph.node):
            instructions = _instructions(special, node)
            if instructions:
                path = _path(node)
                nodes[path if path not in nodes else f"{path}_{number}"] = _Node(instructions)
        self.outputs = [output.name for output in graph.output]
        self._results = Instruction(
            lambda *x: x,
            tuple(map(special.constant_or_name, self.outputs)),
            {},
            tuple(self.outputs),
        )
        self._modules.update(nodes)  # names may be any text, also those of attributes
        self._buffers.update(special.kept)
        custom = {x for n in graph.node if full_name(n) in registered_operators() for x in n.output}
        told = [value for value in graph.value_info if value.name in custom]
        _check_values("output", graph.output, special)
        _check_values("value", told, special)

    def forward(self, *arguments: Tensor) -> Any:
        """Run all nodes."""
        values: dict[str, Any] = dict(self._buffers)
        values.update(zip(self.inputs, arguments, strict=True))
        for node in self._modules.values():
            assert node is not None
            node(values)
        results = self._results.run(values.__getitem__)
        found = tuple(results[name] for name in self.outputs)
        return found[0] if len(found) == 1 else found


def opset_of(proto: onnx.ModelProto) -> int:
    """Version of the operators of a model.

    Raises:
        UnsupportedProgram: it is not covered.
    """
    versions = [o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")]
    version = versions[0] if versions else OPSETS[-1]
    if version not in OPSETS:
        raise UnsupportedProgram(
            f"the model has operators of version (opset) {version}; versions {OPSETS[0]} to "
            f"{OPSETS[-1]} are covered. Convert it: onnx.version_converter.convert_version(model, "
            f"{OPSETS[-1]})."
        )
    return version


def _check(proto: onnx.ModelProto) -> None:
    try:
        checker.check_model(proto)
    except checker.ValidationError as error:
        first = str(error).strip().split("\n")[0]
        raise UnsupportedProgram(f"the model is not valid: {first}") from None
    if proto.graph.sparse_initializer:
        raise UnsupportedProgram("the model has sparse initializers; only dense ones are covered.")


def _inputs(
    graph: onnx.GraphProto, constants: Mapping[str, Any], sizes: Mapping[str, int]
) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Shape and type of each input."""
    found, symbols = {}, set()
    for value in graph.input:
        if value.name in constants:
            continue
        what = f"the input {value.name!r}"
        if not value.type.HasField("tensor_type"):
            kind = value.type.WhichOneof("value")
            raise UnsupportedProgram(f"{what} is a {kind}; only tensors are covered.")
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            raise UnsupportedProgram(f"{what} has no shape. Export the model with shapes.")
        symbols |= {d.dim_param for d in tensor.shape.dim if d.dim_param}
        shape = tuple(_extent(what, tensor.shape, d, sizes) for d in tensor.shape.dim)
        if 0 in shape:
            raise UnsupportedProgram(f"{what} has no elements: its shape is {list(shape)}.")
        found[value.name] = shape, _named(what, torch_type, tensor.elem_type)
    if not sizes.keys() <= symbols:
        raise UnsupportedProgram(
            f"sizes are given for {', '.join(sorted(sizes))}; the model has symbolic dimensions "
            f"{', '.join(sorted(symbols)) or 'nowhere'}."
        )
    return found


def _extent(what: str, shape: Any, dimension: Any, sizes: Mapping[str, int]) -> int:
    symbol = dimension.dim_param
    if symbol in sizes:
        return int(sizes[symbol])
    if dimension.HasField("dim_value"):
        if dimension.dim_value < 0:
            raise UnsupportedProgram(f"{what} has the extent {dimension.dim_value}.")
        return int(dimension.dim_value)
    shown = ", ".join(
        d.dim_param or str(d.dim_value if d.HasField("dim_value") else "?") for d in shape.dim
    )
    if not symbol:
        raise UnsupportedProgram(
            f"{what} has a dimension without a size: [{shown}]. Export the model with all sizes."
        )
    raise UnsupportedProgram(
        f"{what} has the symbolic dimension {symbol!r}: [{shown}]. A program is made for one size: "
        f"onnx_model(model, sizes={{{symbol!r}: 8}})."
    )


def _named(what: str, function: Any, argument: Any) -> Any:
    try:
        return function(argument)
    except UnsupportedProgram as error:
        raise UnsupportedProgram(f"{what}: {error}") from None


def _instructions(special: Specialiser, node: onnx.NodeProto) -> list[Instruction]:
    what = f"the ONNX operator {node.op_type} (the node {node.name or node.output[0]!r})"
    try:
        return special.node(node)
    except UnsupportedProgram as error:
        raise UnsupportedProgram(f"{what}: {error}") from None
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        raise UnsupportedProgram(f"{what}: {type(error).__name__}: {first}") from error


_SCOPES = "pkg.torch.onnx.name_scopes"


def _path(node: onnx.NodeProto) -> str:
    """The module that a node was exported from, where torch wrote that down; else its name."""
    for entry in node.metadata_props:
        if entry.key == _SCOPES:
            try:
                path: str = ".".join(filter(None, ast.literal_eval(entry.value)[:-1]))
            except Exception:  # it is a text of whoever exported the model
                path = ""
            if path:
                return path
    return str(node.name or node.output[0])


def _check_values(what: str, values: Iterable[onnx.ValueInfoProto], special: Specialiser) -> None:
    """Whether outputs, or what custom operators give, are what the model says of them."""
    for output in values:
        special.check_filled(output.name)
        tensor = special.tensor(output.name)
        found, said = onnx_type(tensor).tensor_type, output.type.tensor_type
        wanted = [d.dim_value if d.HasField("dim_value") else None for d in said.shape.dim]
        extents = list(tensor.shape)
        fits = len(wanted) == len(extents) and all(
            w in (None, e) for w, e in zip(wanted, extents, strict=True)
        )
        if found.elem_type != said.elem_type or (said.HasField("shape") and not fits):
            raise UnsupportedProgram(
                f"the {what} {output.name!r} comes out as {tensor.dtype} {extents}, but the model "
                f"says {onnx.TensorProto.DataType.Name(said.elem_type)} {wanted}."
            )
