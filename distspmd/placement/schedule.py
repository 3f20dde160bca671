"""Schedules: on which process grid each iteration space runs, as the user writes it."""

from __future__ import annotations

import difflib
import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.analysis.iteration_spaces import IterationSpace, IterationSpaces
from distspmd.errors import ScheduleError, ScheduleWarning
from distspmd.layouts.mesh import MOST_RANKS

Schedule = Mapping[Any, Sequence[int] | Mapping[str, int]]
"""Name, unique label, DaCe node or map of an iteration space -> parts along each parameter."""


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
    if math.prod(map(int, parts)) > MOST_RANKS:
        raise ScheduleError(
            f"{asked}, {math.prod(map(int, parts)):,} ranks, more than the {MOST_RANKS:,} that are "
            f"planned for. It iterates over {iterates}."
        )
    return tuple(int(count) for count in parts)


def idle_sentences(space: IterationSpace, parts: Sequence[int]) -> list[str]:
    """What a grid leaves idle along each parameter of a space of known ranges, as sentences."""
    found = []
    for parameter, extent, count in zip(space.parameters, space.ranges, parts, strict=True):
        begin, end, step = int(extent.begin), int(extent.end), int(extent.step)
        iterations = max(0, -(-(end - begin) // step))
        tile = -(-iterations // count)
        used = -(-iterations // tile) if tile else 0
        if used < count:
            found.append(
                f"{space.where}: the schedule cuts {parameter} of the space {space.name!r} into "
                f"{count:,} parts, but its {iterations:,} iterations are {used:,} tiles of {tile:,}"
                f": {count - used:,} of {count:,} ranks along it are idle. Write {max(1, used)}."
            )
    return found


def warn(sentence: str) -> None:
    """Tell the caller of this package of a schedule that is legal, but hardly meant."""
    level = depth = 1
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "distspmd":
            level = depth + 1  # of who called the outermost of our functions
        depth, frame = depth + 1, frame.f_back
    warnings.warn(sentence, ScheduleWarning, stacklevel=level)
