"""Tensors of the caller that a program reads, or updates in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Slot:
    """A tensor of the caller that the program reads, or updates in place."""

    name: str
    fetch: Callable[[], torch.Tensor]
    """Gives the live tensor (or, for a number such as the learning rate, a new one)."""
    kind: str = "parameter"
    holder: Callable[[], torch.Tensor | None] | None = None
    """Gives the live tensor where ``fetch`` may give one that is only made for the call."""

    is_kept: bool = False
    """Whether it is a gradient that stays for a later call."""

    def mark(self) -> tuple[torch.Tensor | None, int, int]:
        """What is another one when somebody has written the tensor, or put another in its place."""
        tensor = self.holder() if self.holder else self.fetch()
        if tensor is None:
            return None, 0, 0
        version = 0 if tensor.is_inference() else tensor._version
        return tensor, tensor.data_ptr(), version
