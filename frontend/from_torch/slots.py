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
