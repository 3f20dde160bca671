"""Parameters without a gradient, which optimizers of torch pass over.

While a function is traced, each parameter that an optimizer has finds a gradient of zeros, for a
later call may find one. Once a backward pass has been made, those that it did not reach have none,
as in torch: no weight decay changes them, and nobody counts their steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.closures import Closed


class Unreached:
    """Which parameters of a trace have a gradient only because one might be there.

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
        self._waiting: dict[int, tuple[str, torch.Tensor, torch.Tensor]] = {}
        self._looked_at: dict[int, tuple[str, torch.Tensor, torch.Tensor]] = {}
        self._is_reached = False
        for name, tensor in closed.parameters.items():
            place = traced.get(f"{name}.grad")
            if place is not None and tensor.grad is None:
                mine = swapped[id(tensor)]
                self._waiting[id(mine)] = name, mine, place
        for tensor in closed.parameters.values():
            if tensor.requires_grad:
                swapped[id(tensor)].register_post_accumulate_grad_hook(self._reach)

    def _reach(self, mine: torch.Tensor) -> None:
        self._is_reached = True
        self._waiting.pop(id(mine), None)

    def hides(self, mine: torch.Tensor, clears: bool) -> bool:
        """Whether a look at the gradient of something finds none.

        Args:
            mine: a tensor, maybe what stands for a parameter.
            clears: whether who looks would only clear it.
        """
        if clears or not self._is_reached or id(mine) not in self._waiting:
            return False
        self._looked_at[id(mine)] = self._waiting[id(mine)]
        return True

    def is_set(self, mine: torch.Tensor) -> None:
        """Note that the function sets or clears the gradient of something."""
        self._waiting.pop(id(mine), None)
        self._looked_at.pop(id(mine), None)

    def settle(self) -> None:
        """Let parameters that were not reached have no gradient.

        Raises:
            UnsupportedProgram: a later call would find one where the first one found none, for a
                second backward pass made it.
        """
        for name, mine, place in self._looked_at.values():
            if mine.grad is place and id(mine) not in self._waiting:
                raise UnsupportedProgram(
                    f"the gradient of {name!r} is kept for the next call, and something looks at "
                    "it between two backward passes, where the first call has none. Clear it in "
                    "the function, with zero_grad(), or make both passes before."
                )
        for _, mine, place in self._waiting.values() if self._is_reached else ():
            if mine.grad is place:
                mine.grad = None
