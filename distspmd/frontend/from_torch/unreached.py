"""Gradients while a function is traced: which there are, which it leaves, and who has looked.

A program adds to zeros where torch finds no gradient, so that one program serves the first call of
a loop and all later ones. Where a function looks at a gradient that it has neither made nor cleared
before, it finds what torch would find: none, where the parameter has none. Whether it has one is
then an assumption of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._functorch._aot_autograd.functional_utils import has_data_mutation

from distspmd.frontend.from_torch.closures import Closed
from distspmd.frontend.from_torch.slots import Gradients


class Unreached:
    """Which parameters have the gradients that they had before the function ran.

    Args:
        closed: has the caller's parameters.
        traced: what stands in, by names.
        swapped: what stands for each parameter, by its identity.
    """

    def __init__(
        self,
        closed: Closed,
        traced: Mapping[str, torch.Tensor],
        swapped: Mapping[int, torch.Tensor],
    ) -> None:
        self._all = {name: swapped[id(tensor)] for name, tensor in closed.parameters.items()}
        self._places = {name: traced.get(f"{name}.grad") for name in self._all}
        self._there = {name for name, each in closed.parameters.items() if each.grad is not None}
        self._as_before = {id(mine): name for name, mine in self._all.items()}
        self._stepped: set[int] = set()
        self._asked: set[str] = set()
        for mine in self._all.values():
            if mine.requires_grad:
                handle = mine.register_post_accumulate_grad_hook(self.is_set)
                hooks: Any = mine._post_accumulate_grad_hooks
                hooks.move_to_end(handle.id, last=False)  # ahead of the caller's, which may look

    def hides(self, mine: torch.Tensor, clears: bool, steps: bool) -> bool:
        """Whether a look at the gradient of something finds none.

        Args:
            mine: a tensor, maybe what stands for a parameter.
            clears: whether who looks would only clear it.
            steps: whether an optimizer looks, in a step.
        """
        if steps:
            self._stepped.add(id(mine))
        name = self._as_before.get(id(mine))
        if clears or name is None:
            return False
        self._asked.add(name)
        return name not in self._there

    def is_set(self, mine: torch.Tensor) -> None:
        """Note that something has a gradient of the function's own, or that it is cleared."""
        self._as_before.pop(id(mine), None)
        self._stepped.discard(id(mine))

    @property
    def lacks_places(self) -> bool:
        """Whether the function leaves gradients for which the program has no memory."""
        placeless = [mine for name, mine in self._all.items() if self._places[name] is None]
        return any(_gradient_of(mine) is not None for mine in placeless)

    def settled(self) -> Gradients:
        """What the function leaves; what it has made anew is written where gradients are kept.

        Of what it has cleared, made and used in a step of an optimizer, nothing is left.
        """
        kept, cleared, asked = set(), set(), set(self._asked)
        for name, mine in self._all.items():
            place, now = self._places[name], _gradient_of(mine)
            if id(mine) in self._as_before:
                if place is not None and has_data_mutation(place):  # zeros, maybe
                    asked.add(name)
                    kept |= {name} & self._there
            elif now is None or (now is not place and id(mine) in self._stepped):
                cleared.add(name)
            else:
                kept.add(name)
                if now is not place and place is not None:
                    with torch.no_grad():
                        place.copy_(now)
        return Gradients(frozenset(kept), frozenset(cleared), frozenset(asked))


def _gradient_of(mine: torch.Tensor) -> torch.Tensor | None:
    """What is there, whoever is watching those who look."""
    with torch._C.DisableTorchFunction():
        return mine.grad
