"""The live tensors behind the arguments of a program, and its results as tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from distspmd.errors import ArgumentError
from distspmd.frontend.trace import Slot


@dataclass
class Bound:
    """Passes the memory of live tensors; nothing is copied.

    Attributes:
        live: the slot behind each argument that the caller does not pass.
        shapes: of all arguments in the program, where dimensions may be split.
        expected: shapes of the arguments that the caller passes, as the caller sees them.
        results: shapes of the results, as the caller sees them.
        structure: what the function returns.
        draws: whether the program draws random numbers.
    """

    live: Mapping[str, Slot]
    shapes: Mapping[str, tuple[int, ...]]
    expected: Mapping[str, tuple[int, ...]]
    results: Sequence[tuple[int, ...]]
    structure: pytree.TreeSpec
    draws: bool = False
    calls: int = field(default=0, init=False)

    def __deepcopy__(self, memo: Any) -> Bound:
        return self  # a copy of the SDFG is bound to the same tensors

    def arguments(self) -> dict[str, NDArray[Any]]:
        """Arguments that the caller does not pass."""
        found = {
            name: _memory(slot.name, slot.fetch()).reshape(self.shapes[name])
            for name, slot in self.live.items()
        }
        if self.draws:
            found["seed"] = seed(torch.initial_seed(), self.calls)
            self.calls += 1
        return found

    def given(self, name: str, value: Any) -> Any:
        """What the caller passed, in the program's shape."""
        if isinstance(value, torch.Tensor):
            value = _memory(name, value)
        if not isinstance(value, np.ndarray) or name not in self.expected:
            return value
        if value.shape != self.expected[name]:
            raise ArgumentError(
                f"the argument {name!r} must have the shape {list(self.expected[name])} of the "
                f"example that was traced, but it has {list(value.shape)}. Trace the function "
                "again for another shape."
            )
        return value.reshape(self.shapes[name])

    def returned(self, results: Sequence[NDArray[Any] | None]) -> Any:
        """The results as the function returns them; None for what others have."""
        tensors = [
            None if array is None else self._result(array, shape)
            for array, shape in zip(results, self.results, strict=True)
        ]
        return pytree.tree_unflatten(tensors, self.structure)

    def _result(self, array: NDArray[Any], shape: tuple[int, ...]) -> Any:
        return torch.from_numpy(array).reshape(shape)


def seed(initial: int, calls: int) -> NDArray[np.int64]:
    """What a call draws its random numbers from: torch's seed, and the number of the call."""
    mixed = (initial * 0x9E3779B97F4A7C15 + calls * 0xBF58476D1CE4E5B9) % 2**63
    return np.array([mixed], np.int64)


def _memory(name: str, tensor: torch.Tensor) -> NDArray[Any]:
    if tensor.device.type != "cpu":
        raise ArgumentError(
            f"{name!r} is on the device {tensor.device}; programs run on the CPU yet. Pass it "
            "with .cpu()."
        )
    if not tensor.is_contiguous():
        raise ArgumentError(
            f"{name!r} has the strides {tensor.stride()}; pass it with .contiguous()."
        )
    array: NDArray[Any] = tensor.detach().numpy()
    return array
