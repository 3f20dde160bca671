"""Operators of other domains than ONNX's own, of which a user has registered what they compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import onnx
import torch
from torch.utils import _pytree as pytree

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.operators.custom import example_of, run_body
from distspmd.frontend.registered_operators import Body, bound_to, line_to_register, read_body


def full_name(node: onnx.NodeProto) -> str:
    """The name under which an operator is registered."""
    return f"{node.domain or 'ai.onnx'}::{node.op_type}"


@dataclass
class Custom:
    """A call of a registered operator: its function is read once, for what the call passes.

    Attributes:
        name: of the operator.
        outputs: number of results that the node has.
    """

    name: str
    outputs: int
    _body: list[Body] = field(default_factory=list)

    def __call__(self, *inputs: Any, **attributes: Any) -> list[torch.Tensor]:
        """The results for tensors, None where one is left out, and for attributes."""
        made = pytree.tree_map_only(torch.Tensor, _constant, attributes)
        leaves, form = pytree.tree_flatten(bound_to(self.name, inputs, made))
        if not self._body:
            examples = pytree.tree_unflatten(map(example_of, leaves), form)
            self._body.append(read_body(self.name, examples))
        (body,) = self._body
        if len(body.results) < self.outputs:
            raise UnsupportedProgram(
                f"it has {self.outputs} outputs, but the function that is registered for it "
                f"returns {len(body.results)}."
            )
        return run_body(body, [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    return torch.tensor(tensor.tolist(), dtype=tensor.dtype)


def not_registered(node: onnx.NodeProto) -> UnsupportedProgram:
    """The error for an operator of another domain of which nothing is known."""
    inputs = [f"input_{number}" for number, name in enumerate(node.input) if name]
    parameters = [*inputs, *(attribute.name for attribute in node.attribute)]
    return UnsupportedProgram(
        f"nothing is known of this operator of the domain {node.domain!r}. Say what it computes: "
        f"{line_to_register(full_name(node), parameters)}."
    )
