"""Tensors of the caller that a program reads, or updates in place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from distspmd.errors import UnsupportedProgram


@dataclass(frozen=True)
class Slot:
    """A tensor of the caller that the program reads, or updates in place."""

    name: str
    fetch: Callable[[], torch.Tensor]
    """Gives the live tensor (or, for a number such as the learning rate, a new one)."""
    kind: str = "parameter"
    holder: Callable[[], torch.Tensor | None] | None = None
    """Gives the live tensor where ``fetch`` may give one that is only made for the call."""

    def mark(self) -> tuple[torch.Tensor | None, int, int]:
        """What is another one when somebody has written the tensor, or put another in its place."""
        tensor = self.holder() if self.holder else self.fetch()
        if tensor is None:
            return None, 0, 0
        version = 0 if tensor.is_inference() else tensor._version
        return tensor, tensor.data_ptr(), version


@dataclass(frozen=True)
class Gradients:
    """What becomes of gradients in a call, by the names of their parameters.

    Attributes:
        kept: those that are there after a call, for whoever wants them.
        cleared: those that are not, whatever was there before.
        asked: those of which the program assumes that they are there before a call, or not.
    """

    kept: frozenset[str] = frozenset()
    cleared: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()

    def make(self, parameters: Mapping[str, torch.Tensor]) -> None:
        """Let parameters have those that are kept: zeros, to which a call adds."""
        for name in self.kept:
            if parameters[name].grad is None:
                parameters[name].grad = torch.zeros_like(parameters[name])

    def clear(self, parameters: Mapping[str, torch.Tensor]) -> None:
        """Let parameters have none of those that the function clears."""
        for name in self.cleared:
            parameters[name].grad = None


def forget_gradients(graph: fx.Graph, slots: Sequence[Slot], kept: Collection[str]) -> None:
    """Do not write gradients that the function clears: the next call begins with none."""
    for node, slot in list(zip(graph.nodes, slots, strict=False)):  # placeholders come first
        for user in list(node.users):
            is_kept = slot.name.removesuffix(".grad") in kept
            if slot.kind == "gradient" and not is_kept and _overwrites(user, node):
                graph.erase_node(user)
    graph.eliminate_dead_code()


def _overwrites(user: fx.Node, node: fx.Node) -> bool:
    return "copy_" in str(user.target) and user.args[0] is node and not user.users


def check_shared(graph: fx.Graph, slots: Sequence[Slot], shared: Collection[str]) -> None:
    """Refuse to read a state that was in the memory of a parameter: it changed with that."""
    for node, slot in zip(graph.nodes, slots, strict=False):  # placeholders come first
        others = [u for u in node.users if "aten.copy" not in str(u.target) or node in u.args[1:]]
        if slot.name in shared and others:
            raise UnsupportedProgram(
                f"{slot.name!r} is in the memory of a parameter, with which it changes. Give it "
                "its own: state[name] = tensor.clone()."
            )
