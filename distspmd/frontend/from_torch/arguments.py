"""The live tensors behind the arguments of a program, and its results as tensors."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from distspmd.errors import ArgumentError
from distspmd.execution.binding import binding_of
from distspmd.frontend.from_torch.assumptions import Assumptions, IndexRange
from distspmd.frontend.from_torch.run_time_numbers import Read, Told
from distspmd.frontend.operators.aten_registry import HALVES
from distspmd.runtime.calls.missing_result import MissingResult

if TYPE_CHECKING:
    from dace import SDFG

    from distspmd.frontend.from_torch.saved_bindings import SavedTensors
    from distspmd.frontend.from_torch.slots import Slot


BOUND = ("shapes", "expected", "results", "structure", "draws", "indices", "types", "only_read")
"""What a binding has besides the live objects."""


@dataclass
class MemoryBinding:
    """Passes the memory of live tensors; nothing is copied.

    Attributes:
        live: the slot behind each argument that the caller does not pass.
        shapes: of all arguments in the program, where dimensions may be split.
        expected: shapes of the arguments that the caller passes, as the caller sees them.
        results: shapes of the results, as the caller sees them.
        structure: what the function returns, with the number of each result in its place.
        draws: whether the program draws random numbers.
        assumptions: what else of the caller's the program has in it.
        indices: what the values of arguments may be that are indices.
        types: of the results, as the caller sees them.
        lived_on_device: whether the live tensors were on a device when this was sent from them.
        without_memory: arguments whose tensors are on the device ``meta``: ranks hold all values.
        only_read: arguments of the caller that the program does not write; it may take copies.
    """

    live: Mapping[str, Slot]
    shapes: Mapping[str, tuple[int, ...]]
    expected: Mapping[str, tuple[int, ...]]
    results: Sequence[tuple[int, ...]]
    structure: Any
    draws: bool = False
    assumptions: Assumptions | None = None
    indices: Mapping[str, Sequence[IndexRange]] = field(default_factory=dict)
    types: Sequence[torch.dtype] = ()
    lived_on_device: bool = False
    without_memory: Collection[str] = ()
    only_read: Collection[str] = ()
    calls: int = field(default=0, init=False)
    marks: dict[str, Any] = field(default_factory=dict, init=False)

    def __deepcopy__(self, memo: Any) -> MemoryBinding:
        return self  # a copy of the SDFG is bound to the same tensors

    @property
    def names(self) -> Collection[str]:
        """Parameters, buffers, states and gradients; rates are read at each call."""
        return [name for name, slot in self.live.items() if slot.kind != "rate"]

    def held(self, names: Collection[str]) -> dict[str, NDArray[Any]]:
        """Some of the live tensors; not those without memory.

        Raises:
            ArgumentError: one that had no memory has some now.
        """
        found = {}
        for name in names:
            tensor = self.live[name].fetch()
            if name not in self.without_memory:
                found[name] = memory_of(self.live[name].name, tensor).reshape(self.shapes[name])
            elif not tensor.is_meta:
                raise ArgumentError(
                    f"{self.live[name].name!r} was on the device 'meta' when the function was "
                    f"traced, and is on {tensor.device} now. Trace it again, or give the ranks its "
                    "values with frontend.load."
                )
        return found

    def changed(self, names: Collection[str]) -> list[str]:
        """Which of the live tensors somebody has written or replaced since this was asked last."""
        now = {name: self.live[name].mark() for name in names}
        found = [name for name in names if _differ(self.marks.get(name, now[name]), now[name])]
        self.marks.update(now)
        return found

    def saved(self) -> SavedTensors:
        """Without the live tensors, and with all by which they are found again."""
        from distspmd.frontend.from_torch.saved_bindings import SavedTensors

        return SavedTensors.of(self, all_arrays=False)

    def elsewhere(self) -> MemoryBinding:
        """Without the live tensors."""
        placed = self.is_on_device
        return replace(
            self,
            live={},
            draws=False,
            assumptions=None,
            lived_on_device=placed,
            without_memory=(),
        )

    @property
    def is_on_device(self) -> bool:
        """Whether the live tensors are on a device: a module is there as a whole."""
        first = next((name for name in self.names if name not in self.without_memory), None)
        return self.lived_on_device if first is None else not self.live[first].fetch().is_cpu

    def arguments(self) -> dict[str, NDArray[Any]]:
        """Arguments that the caller does not pass.

        Raises:
            ArgumentError: the program has something of the caller's in it that changed.
        """
        if self.assumptions:
            self.assumptions.check()
            self.assumptions.gradients.make(self.assumptions.closed.parameters)
        found = self.held(self.live)
        if self.draws:
            found["seed"] = seed(torch.initial_seed(), self.calls)
            self.calls += 1
        return found

    def has_run(self) -> None:
        """Let parameters have no gradients that the function has cleared."""
        if self.assumptions:
            self.assumptions.gradients.clear(self.assumptions.closed.parameters)

    def given(self, name: str, value: Any, tile: tuple[int, ...] | None = None) -> Any:
        """What the caller passed, in the program's shape, or in that of a tile."""
        if isinstance(value, torch.Tensor):
            value = memory_of(name, value.contiguous() if name in self.only_read else value)
        on_device = hasattr(value, "misfit")  # a DeviceView
        if on_device and isinstance(value.source, torch.Tensor):
            value = value.as_bits()  # as halves are stored
        if not (on_device or isinstance(value, np.ndarray)) or name not in self.expected:
            return value
        for known in self.indices.get(name, ()):
            known.check(name, value.numpy() if on_device else value)
        if tile is not None:
            return value.reshape(tile) if value.size == math.prod(tile) else value
        if value.shape != self.expected[name]:
            raise ArgumentError(
                f"the argument {name!r} must have the shape {list(self.expected[name])} of the "
                f"example that was traced, but it has {list(value.shape)}. Trace the function "
                "again for another shape."
            )
        return value.reshape(self.shapes[name])

    def returned(self, results: Sequence[NDArray[Any] | MissingResult]) -> Any:
        """The results as the function returns them, with what stands for those of others."""
        tensors = [
            array if isinstance(array, MissingResult) else self._result(array, shape, dtype)
            for array, shape, dtype in zip(results, self.results, self.types, strict=True)
        ]

        def found(place: int | Read | Told) -> Any:
            if isinstance(place, Told):
                return place.value
            if not isinstance(place, Read):
                return tensors[place]
            tensor = tensors[place.result]
            return tensor if isinstance(tensor, MissingResult) else tensor.item()

        return pytree.tree_map(found, self.structure)

    def _result(self, array: NDArray[Any], shape: tuple[int, ...], dtype: torch.dtype) -> Any:
        """A result as a tensor; one in the memory of a device is of the kind that was passed."""
        found = torch.from_numpy(array) if isinstance(array, np.ndarray) else array
        if getattr(found, "device", None) == "cuda":  # a DeviceArray, of ranks without tensors
            found = torch.utils.dlpack.from_dlpack(found)
        if dtype in HALVES and isinstance(found, torch.Tensor):
            found = found.view(dtype)
        return found.reshape(shape if math.prod(found.shape) == math.prod(shape) else -1)


class ArrayBinding(MemoryBinding):
    """Results are NumPy arrays; the live tensors are of nobody else."""

    def saved(self) -> SavedTensors:
        """With the values of all tensors."""
        from distspmd.frontend.from_torch.saved_bindings import SavedTensors

        return SavedTensors.of(self, all_arrays=True)

    def _result(self, array: NDArray[Any], shape: tuple[int, ...], dtype: torch.dtype) -> Any:
        return array.reshape(shape)


def _differ(before: Any, now: Any) -> bool:
    return before[0] is not now[0] or before[1:] != now[1:]


def seed(initial: int, calls: int) -> NDArray[np.int64]:
    """What a call draws its random numbers from: torch's seed, and the number of the call."""
    mixed = (initial * 0x9E3779B97F4A7C15 + calls * 0xBF58476D1CE4E5B9) % 2**63
    return np.array([mixed], np.int64)


def memory_of(name: str, tensor: torch.Tensor) -> Any:
    """The memory of a tensor as an array; of one on a device, a tensor over the same memory."""
    if not tensor.is_contiguous():
        raise ArgumentError(
            f"{name!r} has the strides {tensor.stride()}, and its memory is that of other tensors, "
            "or the program writes it. Pass it with .contiguous(), or make a parameter of that: "
            "nn.Parameter(tensor.contiguous())."
        )
    found = tensor.detach()
    found = found.view(torch.uint16) if found.dtype in HALVES else found
    return found.numpy() if found.device.type == "cpu" else found


def resident(
    sdfg: SDFG, *, parameters: str = "replicated", states: str | None = None
) -> dict[str, str]:
    """Which of a module's and an optimizer's tensors stay on the ranks between calls, and how.

    Args:
        sdfg: what a front end made.
        parameters: how parameters and buffers are held: ``"replicated"``, ``"distributed"``,
            ``"gathered"``, or ``"root"``, in the caller's memory on rank 0.
        states: likewise, of the optimizer, and gradients that are kept; as the parameters if None.

    Returns:
        What :func:`distspmd.lower` takes as ``arguments=``, to which others can be added.

    Raises:
        ArgumentError: the SDFG is bound to no tensors.
    """
    bound = _bound(sdfg)
    kinds = {"parameter": parameters, "state": states or parameters}
    kinds["gradient"] = kinds["state"]
    return {name: kinds[bound.live[name].kind] for name in bound.names}


def parameters(sdfg: SDFG) -> list[str]:
    """The containers of a module's parameters that a step updates; their updates are named so.

    Raises:
        ArgumentError: the SDFG is bound to no tensors.
    """
    live = _bound(sdfg).live
    return [n for n, s in live.items() if s.kind == "parameter" and s.fetch().requires_grad]


def _bound(sdfg: SDFG) -> MemoryBinding:
    bound = binding_of(sdfg)
    if not isinstance(bound, MemoryBinding):
        raise ArgumentError(
            f"{sdfg.name!r} is bound to no tensors. Make it with frontend.training_step or "
            "frontend.torch_module."
        )
    return bound
