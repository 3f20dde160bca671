"""Schedules: on which process grid each iteration space runs, and which tile each rank runs."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import ScheduleError
from distspmd.layout import Split
from distspmd.mesh import Mesh
from distspmd.spaces import Extent, IterationSpace, IterationSpaces

Schedule = Mapping[Any, Sequence[int] | Mapping[str, int]]
"""Name, unique label, DaCe node or map of an iteration space -> parts along each parameter."""


@dataclass(frozen=True)
class Tiling:
    """The part of an iteration space that each rank of a mesh runs, in global indices.

    The rank at coordinate ``r`` of a dimension with ``n`` iterations in ``p`` parts runs the
    iterations ``[r b, min((r + 1) b, n))`` with ``b = ceil(n / p)``; none where that is empty.
    Ranks that differ only on axes that split no parameter run the same iterations.

    Attributes:
        mesh: the ranks.
        splits: axes that split each parameter, minor first.
        lower: first value of each parameter on each rank, shape (ranks, parameters).
        upper: end of its values, not included; at most ``lower`` where the rank is idle.
        last: last value; meaningless where the rank is idle.
    """

    mesh: Mesh
    splits: tuple[tuple[str, ...], ...]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(cls, ranges: Sequence[Extent], mesh: Mesh, splits: Sequence[tuple[str, ...]]) -> Tiling:
        """Tile ranges of numbers."""
        shape = (mesh.size, len(ranges))
        lower, upper, last = (np.zeros(shape, np.int64) for _ in range(3))
        coordinates = [mesh.coordinates(rank) for rank in mesh]
        for d, (extent, split) in enumerate(zip(ranges, splits, strict=True)):
            begin, end, step = int(extent.begin), int(extent.end), int(extent.step)
            iterations = Split(max(0, -(-(end - begin) // step)), split)
            tiles = np.array([iterations.interval(mesh, at) for at in coordinates], np.int64)
            lower[:, d] = begin + step * tiles[:, 0]
            last[:, d] = begin + step * (tiles[:, 1] - 1)
            upper[:, d] = np.where(tiles[:, 1] > tiles[:, 0], last[:, d] + 1, lower[:, d])
        return cls(mesh, tuple(splits), lower, upper, last)

    @classmethod
    def on_grid(
        cls, parameters: Sequence[str], ranges: Sequence[Extent], parts: Sequence[int]
    ) -> Tiling:
        """Tile each parameter along an axis of its own name, as a schedule asks."""
        mesh = Mesh.of(tuple(zip(parameters, parts, strict=True)))
        return cls.of(ranges, mesh, [(name,) for name in parameters])

    @property
    def parts(self) -> tuple[int, ...]:
        """Number of tiles along each parameter."""
        return tuple(math.prod(self.mesh[axis] for axis in split) for split in self.splits)

    @property
    def idle(self) -> NDArray[np.bool_]:
        """Whether each rank runs no iteration."""
        found: NDArray[np.bool_] = np.any(self.upper <= self.lower, axis=1)
        return found


def resolve(schedule: Schedule, spaces: IterationSpaces) -> dict[str, tuple[int, ...]]:
    """Parts of each space that the schedule names, by the space's name.

    Raises:
        ScheduleError: an unknown or ambiguous key, a wrong number of parts, or parts below one.
    """
    if not isinstance(schedule, Mapping):
        raise ScheduleError(
            f"the schedule is a {type(schedule).__name__}; write a mapping, such as "
            f"{{{spaces[0].name if spaces else 'y'!r}: (2, 1)}}."
        )
    grids: dict[str, tuple[int, ...]] = {}
    for key, parts in schedule.items():
        space = _find(key, spaces)
        if space.name in grids:
            raise ScheduleError(f"the schedule gives the space {space.name!r} two grids; keep one.")
        grids[space.name] = _parts(space, parts)
    return grids


def _find(key: Any, spaces: IterationSpaces) -> IterationSpace:
    if not isinstance(key, str):
        for space in spaces:
            if key is space.node or key is getattr(space.node, "map", None):
                return space
        raise ScheduleError(
            f"the schedule names {key!r}, which is no top-level map or library node of this SDFG. "
            f"Write one of its names: {_names(spaces)}."
        )
    named = [space for space in spaces if space.name == key]
    labelled = [space for space in spaces if space.label == key]
    if named or len(labelled) == 1:
        return (named or labelled)[0]
    if labelled:
        raise ScheduleError(
            f"the schedule names {key!r}, the label of {len(labelled)} iteration spaces. "
            f"Write one of their names: {', '.join(repr(space.name) for space in labelled)}."
        )
    known = [name for space in spaces for name in (space.name, space.label)]
    close = difflib.get_close_matches(key, dict.fromkeys(known), n=3)
    hint = (
        f"Did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"There are {_names(spaces)}."
    )
    raise ScheduleError(
        f"the schedule names {key!r}, but no iteration space is called that. {hint}"
    )


def _names(spaces: IterationSpaces) -> str:
    return ", ".join(repr(space.name) for space in spaces) or "none"


def _parts(space: IterationSpace, parts: Sequence[int] | Mapping[str, int]) -> tuple[int, ...]:
    iterates = ", ".join(f"{p}={r}" for p, r in zip(space.parameters, space.ranges, strict=True))
    asked = f"the schedule gives the space {space.name!r} ({space.where}) the parts {parts!r}"
    example = "(" + ", ".join("2" if d == 0 else "1" for d in range(len(space.parameters))) + ",)"
    example = (
        example.replace(",,", ",") if len(space.parameters) == 1 else example.replace(",)", ")")
    )
    if isinstance(parts, Mapping):
        unknown = [name for name in parts if name not in space.parameters]
        if unknown:
            raise ScheduleError(
                f"{asked}, but it has no parameter {unknown[0]!r}; it iterates over {iterates}."
            )
        parts = [parts.get(name, 1) for name in space.parameters]
    if isinstance(parts, (str, bytes)) or not isinstance(parts, Sequence):
        raise ScheduleError(
            f"{asked}, which is no tuple. It iterates over {iterates}: write {example}."
        )
    if len(parts) != len(space.parameters):
        raise ScheduleError(
            f"{asked}, {len(parts)} for {len(space.parameters)} parameters. "
            f"It iterates over {iterates}: write {example}."
        )
    for count in parts:
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ScheduleError(
                f"{asked}; each must be an integer of at least 1, and 1 leaves a parameter whole."
            )
    return tuple(int(count) for count in parts)
