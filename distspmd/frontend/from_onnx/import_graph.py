"""From the nodes of an ONNX graph to calls of the table of operators.

Nodes are evaluated once on tensors without data. A value that depends only on shapes and constants
becomes a constant, and operators that ONNX defines by others are expanded. Initializers of floating
point are not computed with: they remain arguments of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch
from onnx import defs, helper
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_onnx.custom import Custom, full_name, not_registered
from distspmd.frontend.from_onnx.functions import body_of, expand_function
from distspmd.frontend.from_onnx.registry import OPERATORS, Function, Meaning
from distspmd.frontend.from_onnx.types import onnx_type, tensor_of
from distspmd.frontend.registered_operators import registered_operators

_CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")
_OF_SHAPES = ("Shape", "Size")
_OF_EMPTY = ("Concat",)


@dataclass(frozen=True)
class KnownTensor:
    """A tensor that is known when the model is imported.

    Attributes:
        folds: whether what is computed from it is computed at once.
    """

    tensor: Tensor
    folds: bool = True


@dataclass(frozen=True)
class Named:
    """An input of an instruction: the value with a name."""

    name: str


@dataclass(frozen=True)
class Filled:
    """An input of an instruction: a tensor of equal elements."""

    shape: tuple[int, ...]
    value: Any
    dtype: torch.dtype


@dataclass(frozen=True)
class Instruction:
    """A call of the table: inputs are :class:`Named`, :class:`Filled`, or numbers."""

    function: Function
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any]
    outputs: tuple[str, ...]

    def run(self, lookup: Callable[[str], Tensor]) -> dict[str, Tensor]:
        """Results by name."""
        results = self.function(*(_given(x, lookup) for x in self.inputs), **self.attributes)
        results = results if isinstance(results, (tuple, list)) else [results]
        if len(results) < len(self.outputs):
            raise UnsupportedProgram(
                f"it has {len(self.outputs)} outputs; its first {len(results)} are covered."
            )
        return {name: x for name, x in zip(self.outputs, results, strict=False) if name}


def _given(operand: Any, lookup: Callable[[str], Tensor]) -> Any:
    if isinstance(operand, Named):
        return lookup(operand.name)
    if isinstance(operand, Filled):
        return torch.full(operand.shape, operand.value, dtype=operand.dtype)
    return operand


@dataclass
class Specialiser:
    """Evaluates nodes on tensors without data.

    Attributes:
        opset: version of the operators.
        local: functions that the model itself defines, by domain and name.
        values: by name; a tensor without data, or a constant.
        kept: constants that instructions read as tensors, by name: arguments of the program.
    """

    opset: int
    local: Mapping[tuple[str, str], onnx.FunctionProto]
    values: dict[str, Tensor | KnownTensor] = field(default_factory=dict)
    kept: dict[str, Tensor] = field(default_factory=dict)
    mode: FakeTensorMode = field(default_factory=lambda: FakeTensorMode(allow_non_fake_inputs=True))

    def argument(self, name: str, shape: Sequence[int], dtype: torch.dtype) -> None:
        """Make an input of the model a value."""
        with self.mode:
            self.values[name] = torch.empty(tuple(shape), dtype=dtype)

    def node(self, node: onnx.NodeProto, opset: int | None = None) -> list[Instruction]:
        """The instructions of a node; its results are values then.

        Args:
            node: with names that no other node has for its results.
            opset: version of the operator, if it is not the model's.

        Raises:
            UnsupportedProgram: the operator is not covered.
        """
        version = opset or self.opset
        if node.op_type == "Constant":
            self.values[node.output[0]] = KnownTensor(_content(node))
            return []
        if node.op_type in _CONTROL_FLOW:
            raise UnsupportedProgram(
                "control flow is not covered. Export the model traced or unrolled."
            )
        if full_name(node) in registered_operators():
            return self._custom(node)
        known = OPERATORS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        return self._by_others(node, version) if known is None else self._call(node, known, version)

    def constant_or_name(self, name: str) -> Any:
        """What stands for a value in an instruction: equal elements, or the name."""
        value = self.values[name]
        if not isinstance(value, KnownTensor):
            return Named(name)
        tensor = value.tensor
        if value.folds and tensor.numel():
            first = tensor.flatten()[0]
            if bool((tensor == first).all()):
                return Filled(tuple(tensor.shape), first.item(), tensor.dtype)
        self.kept[name] = tensor
        return Named(name)

    def check_filled(self, name: str) -> None:
        """Refuse a value without elements."""
        shape = list(self.tensor(name).shape)
        if 0 in shape:
            raise UnsupportedProgram(
                f"{name!r} has no elements (its shape is {shape}); programs have none of these."
            )

    # -- operators of the table -----------------------------------------------------------------

    def _call(self, node: onnx.NodeProto, known: Meaning, opset: int) -> list[Instruction]:
        attributes = _attributes(node, known, opset)
        if "outputs" in known.parameters:
            attributes["outputs"] = len(node.output)
        numbers = {
            n: self._number(name, list(known.parameters)[n], known.as_tensors)
            for n, name in enumerate(node.input)
            if name and known.is_number(n)
        }
        read = [self.values[x] for n, x in enumerate(node.input) if x and n not in numbers]
        folds = all(isinstance(x, KnownTensor) and x.folds for x in read)
        if folds or node.op_type in _OF_SHAPES:
            self._fold(
                node, Instruction(known.function, (), attributes, tuple(node.output)), numbers
            )
            return []
        if node.op_type not in _OF_EMPTY:
            for n, name in enumerate(node.input):
                if name and n not in numbers:
                    self.check_filled(name)
        inputs = tuple(
            numbers[n] if n in numbers else self.constant_or_name(name) if name else None
            for n, name in enumerate(node.input)
        )
        instruction = Instruction(known.function, inputs, attributes, tuple(node.output))
        with self.mode:
            self.values.update(instruction.run(self.tensor))
        return [instruction]

    def _fold(
        self, node: onnx.NodeProto, instruction: Instruction, numbers: Mapping[int, Any]
    ) -> None:
        inputs = tuple(
            numbers[n] if n in numbers else self.tensor(name) if name else None
            for n, name in enumerate(node.input)
        )
        whole = Instruction(
            instruction.function, inputs, instruction.attributes, instruction.outputs
        )
        results = whole.run(self.tensor)
        self.values.update({name: KnownTensor(x.detach()) for name, x in results.items()})

    def _number(self, name: str, parameter: str, as_tensor: bool) -> Any:
        value = self.values[name]
        if not isinstance(value, KnownTensor):
            raise UnsupportedProgram(
                f"its input {name!r} ({parameter}) depends on the inputs of the model. Shapes, "
                "axes and the like must be constants: export the model with them as such."
            )
        return value.tensor if as_tensor else value.tensor.tolist()

    def tensor(self, name: str) -> Tensor:
        """A value as a tensor, without data if it is no constant."""
        value = self.values[name]
        return value.tensor if isinstance(value, KnownTensor) else value

    # -- operators that the user has registered -------------------------------------------------

    def _custom(self, node: onnx.NodeProto) -> list[Instruction]:
        inputs = tuple(self.constant_or_name(name) if name else None for name in node.input)
        attributes = {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute}
        function = Custom(full_name(node), len(node.output))
        instruction = Instruction(function, inputs, attributes, tuple(node.output))
        with self.mode:
            self.values.update(instruction.run(self.tensor))
        return [instruction]

    # -- operators that are defined by others ---------------------------------------------------

    def _by_others(self, node: onnx.NodeProto, opset: int) -> list[Instruction]:
        body = self.local.get((node.domain, node.op_type)) or body_of(
            node, opset, [onnx_type(self.tensor(x)) if x else onnx.TypeProto() for x in node.input]
        )
        if body is None and node.domain not in ("", "ai.onnx"):
            raise not_registered(node)
        if body is None:
            covered = ", ".join(sorted({*OPERATORS, "Constant"}))
            raise UnsupportedProgram(
                f"it is not covered. Covered are {covered}, and what ONNX defines by these."
            )
        versions = {entry.domain: entry.version for entry in body.opset_import}
        inner = versions.get("", opset)
        return [step for part in expand_function(node, body) for step in self.node(part, inner)]


def _attributes(node: onnx.NodeProto, known: Meaning, opset: int) -> dict[str, Any]:
    schema = defs.get_schema(node.op_type, opset, "")
    defaults = {
        name: helper.get_attribute_value(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    taken = {}
    for name, value in {**defaults, **given}.items():
        if name in known.parameters:
            taken[name] = _plain(value)
        elif value != defaults.get(name):
            raise UnsupportedProgram(f"its attribute {name}={_plain(value)!r} is not covered.")
    return taken


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return tensor_of(value)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _content(node: onnx.NodeProto) -> Tensor:
    (attribute,) = node.attribute
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return tensor_of(value)
    if attribute.name not in ("value_int", "value_ints", "value_float", "value_floats"):
        raise UnsupportedProgram(f"constants by {attribute.name!r} are not covered; tensors are.")
    return torch.tensor(value, dtype=torch.int64 if "int" in attribute.name else torch.float32)
