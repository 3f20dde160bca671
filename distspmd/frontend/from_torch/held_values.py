"""What the ranks hold of the tensors of modules and optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from distspmd.errors import ArgumentError, DistSPMDError
from distspmd.execution.program import Program
from distspmd.frontend.from_torch.arguments import MemoryBinding, memory_of
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.runtime.watch.agreement import Agreement, Call

PIECE = 2**18
"""Elements that are read, computed or sent at a time."""
HALVES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Entry:
    """A tensor of the caller, as all ranks know it.

    Attributes:
        container: the argument of the program; empty for what the program does not use.
        name: in state dictionaries.
        others: further names that the module has for it.
        shape: as the caller sees it.
        dtype: likewise.
        is_state: of an optimizer, or a gradient that is kept.
        is_passing: a buffer that no state dictionary has.
        has_memory: on rank 0.
    """

    container: str
    name: str
    others: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype
    is_state: bool
    is_passing: bool
    has_memory: bool


def pieces(box: Box, most: int = PIECE) -> Iterator[Box]:
    """Boxes of at most so many elements that make up a box."""
    volume = intervals.volume(box)
    if volume <= most:
        if volume:
            yield box
        return
    dimension, (low, high) = next((d, i) for d, i in enumerate(box) if i[1] - i[0] > 1)
    step = max(1, most * (high - low) // volume)
    for begin in range(low, high, step):
        part = (begin, min(begin + step, high))
        yield from pieces((*box[:dimension], part, *box[dimension + 1 :]), most)


def places_of(box: Box, extents: Sequence[int]) -> NDArray[np.uint64]:
    """The places of a box's elements in the memory of the whole array."""
    found = np.zeros((1,) * len(box), np.uint64)
    stride = 1
    for dimension in reversed(range(len(box))):
        low, high = box[dimension]
        shape = [-1 if d == dimension else 1 for d in range(len(box))]
        found = found + (np.arange(low, high, dtype=np.uint64) * np.uint64(stride)).reshape(shape)
        stride *= extents[dimension]
    return found.reshape(-1)


def held_part(program: Program, entry: Entry) -> tuple[Any, Box, tuple[int, ...]] | None:
    """What this rank has of a tensor: an array, its box, and the extents of the whole."""
    residents = program.residents
    layout = residents.layouts.get(entry.container)
    rank = program.rank
    if layout is None or (rank == 0 and residents.is_live(entry.container)):
        if rank != 0 or not isinstance(program.binding, MemoryBinding):
            return None  # another process has it
        if entry.container:
            live = binding_of_tensors(program).held([entry.container])[entry.container]
        else:
            tensor = _unused(binding_of_tensors(program))[entry.name]
            live = memory_of(entry.name, tensor)
        extents = tuple(map(int, live.shape))
        return live, intervals.whole(extents), extents
    tile = residents.tiles.get(entry.container)
    if tile is None or intervals.is_empty(layout.box(rank)):
        return None
    return tile, layout.box(rank), layout.extents


def within(piece: Box, box: Box) -> tuple[slice, ...]:
    """A piece of a box in an array that holds the box."""
    pairs = zip(piece, box, strict=True)
    return tuple(slice(low - start, high - start) for (low, high), (start, _) in pairs)


# -- what all ranks know ------------------------------------------------------------------------


def binding_of_tensors(program: Program) -> MemoryBinding:
    """What binds a program to tensors.

    Raises:
        ArgumentError: nothing does.
    """
    found = program.binding
    if not isinstance(found, MemoryBinding):
        raise ArgumentError(
            f"{program.signature.program!r} is bound to no tensors: it was not made of a module or "
            "a training step."
        )
    return found


def _unused(binding: MemoryBinding) -> Mapping[str, torch.Tensor]:
    """Parameters and buffers of the modules that the program does not use."""
    if binding.assumptions is None:
        return {}
    closed = binding.assumptions.closed
    used = {slot.name for slot in binding.live.values()}
    both = {**closed.parameters, **closed.buffers}
    return {name: tensor for name, tensor in both.items() if name not in used}


def entries_of(program: Program) -> list[Entry]:
    """All tensors of the caller, on rank 0."""
    binding = binding_of_tensors(program)
    assert binding.assumptions is not None
    closed = binding.assumptions.closed
    found = []
    for container, slot in binding.live.items():
        if slot.kind in ("parameter", "state", "gradient"):
            found.append((container, slot.name, slot.fetch(), slot.kind != "parameter"))
    found += [("", name, tensor, False) for name, tensor in _unused(binding).items()]
    return [
        Entry(
            container,
            name,
            tuple(closed.others.get(name, ())),
            tuple(tensor.shape),
            tensor.dtype,
            is_state,
            name in closed.passing,
            not tensor.is_meta,
        )
        for container, name, tensor, is_state in found
    ]


class Together:
    """Something that all ranks do together, of which the first plans what each does."""

    def __init__(self, program: Program, text: str) -> None:
        self.agreement = Agreement.of(program.comm)
        self._call = Call.of(text)

    def __enter__(self) -> Together:
        self._outer = self.agreement.enter(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        self.agreement.leave(self._outer)

    def planned(self, plan: Callable[[], Any]) -> Any:
        """What rank 0 plans, on all ranks; its error is that of all."""
        self.agreement.check()
        found = self.do(plan if self.agreement.rank == 0 else lambda: None)
        return self.agreement.bcast(found)

    def do(self, work: Callable[[], Any]) -> Any:
        """Let each rank do its part; the error of one is that of all."""
        found, error = None, None
        try:
            found = work()
        except DistSPMDError as problem:
            error = problem
        except (OSError, MemoryError, RuntimeError) as problem:
            error = ArgumentError(f"{self._call}: {type(problem).__name__}: {problem}")
            error.__cause__ = problem
        self.agreement.wait(error)
        return found
