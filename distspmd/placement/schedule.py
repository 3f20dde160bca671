"""Schedules: on which process grid each iteration space runs, as the user writes it."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dace.sdfg.nodes import LibraryNode, Map, MapEntry

from distspmd.analysis.elements import CHOSEN, chosen_place
from distspmd.analysis.iteration_spaces import IterationSpace, IterationSpaces
from distspmd.analysis.pieces import dimensions_in, frames_of
from distspmd.errors import ScheduleError
from distspmd.layouts.mesh import MOST_RANKS, Mesh
from distspmd.placement.patterns import parameter_of, pattern_grids
from distspmd.schedule import Entries, Grid, OnMesh, Patterns, axes_of, dealt_of, is_pattern


def resolve(schedule: Entries, spaces: IterationSpaces) -> dict[str, Grid]:
    """The grid of each space that the schedule names, by the space's name.

    Raises:
        ScheduleError: an unknown or ambiguous key, a wrong number of parts, or parts below one;
            an axis that there is not. What comes from a file has its line.
    """
    if not isinstance(schedule, Mapping):
        raise ScheduleError(
            f"the schedule is a {type(schedule).__name__}; write a mapping, such as "
            f"{{{spaces[0].name if spaces else 'y'!r}: (2, 1)}}."
        )
    grids: dict[str, Grid] = {}
    places = getattr(schedule, "places", {})
    for key, asked in schedule.items():
        if is_pattern(key):
            continue
        with _from(places.get(key) if isinstance(key, str) else None):
            space = _find(key, spaces)
            if space.name in grids:
                raise ScheduleError(
                    f"the schedule gives the space {space.name!r} two grids; keep one."
                )
            grids[space.name] = _grid(space, asked, spaces)
    patterns = [(key, asked) for key, asked in schedule.items() if is_pattern(key)]
    if patterns:
        left = [space for space in spaces if space.name not in grids]
        grids |= pattern_grids(patterns, left, lenient=isinstance(schedule, Patterns))
    return grids


@contextlib.contextmanager
def _from(place: str | None) -> Iterator[None]:
    """Name the line of a file in errors of an entry that comes from there."""
    try:
        yield
    except ScheduleError as error:
        if place is None:
            raise
        raise ScheduleError(f"{place}: {error}") from None


def _find(key: Any, spaces: IterationSpaces) -> IterationSpace:
    if not isinstance(key, str):
        for space in spaces:
            if key is space.node or key is getattr(space.node, "map", None):
                return space
        if like := _like(key, spaces):
            return like
        raise ScheduleError(
            f"the schedule names {key!r}, which is no top-level map or library node of this SDFG, "
            "and is like none of them, or like several. Write one of its names: "
            f"{_names(spaces)}."
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
    if of_dace := _of_line(key, spaces):
        return of_dace
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


def _like(key: Any, spaces: IterationSpaces) -> IterationSpace | None:
    """The space of a map or node of another SDFG of the same program, if it is one for sure.

    A map has its range and its line, a library node its kind; of several the label decides.
    """
    label = getattr(getattr(key, "map", key), "label", None)
    found = [space for space in spaces if _is_like(getattr(key, "map", key), space)]
    named = [space for space in found if space.label == label]
    (only,) = named if len(named) == 1 else found if len(found) == 1 else (None,)
    return only


def _is_like(key: Any, space: IterationSpace) -> bool:
    if isinstance(key, LibraryNode):
        return type(key) is type(space.node)
    if not isinstance(key, Map):
        return False
    ranges = [(str(begin), str(end + 1), str(step)) for begin, end, step in key.range.ranges]
    own = [(str(r.begin), str(r.end), str(r.step)) for r in space.ranges]
    line = key.debuginfo.start_line if key.debuginfo else None
    same_line = space.source is not None and space.source.line == line
    return ranges == own and isinstance(space.node, MapEntry) and (same_line or line is None)


def _of_line(key: str, spaces: IterationSpaces) -> IterationSpace | None:
    """The map that DaCe's parser calls by its function and its line, ``module_function_33``."""
    stem, _, line = key.rpartition("_")
    found = [
        space
        for space in spaces
        if space.source
        and str(space.source.line) == line
        and isinstance(space.node, MapEntry)
        and f"_{stem}".endswith(f"_{space.state.sdfg.cfg_list[0].name}")
    ]
    return found[0] if len(found) == 1 else None


def _names(spaces: IterationSpaces) -> str:
    return ", ".join(repr(space.name) for space in spaces) or "none"


def _grid(space: IterationSpace, asked: Any, spaces: IterationSpaces) -> Grid:
    if isinstance(asked, Grid):
        return asked
    if isinstance(asked, OnMesh):
        what = f"the schedule gives the space {space.name!r} ({space.where}) the axes {asked}"
        asked = _by_parameter(space, asked)
        if own := _of_place(space, asked, spaces):
            return replace(_grid_on(asked, own, what, _iterates(space)), is_of_place=True)
        return _grid_on(asked, space.parameters, what, _iterates(space))
    return Grid.of_parts(space.parameters, _parts(space, asked))


def _of_place(space: IterationSpace, asked: OnMesh, spaces: IterationSpaces) -> tuple[str, ...]:
    """Parameters of the place that a space writes, as a record of a lowering names them."""
    if not asked.split or not isinstance(asked.split, Mapping) or space.expansion is not None:
        return ()
    entry, pieces = space.node, {}
    if any(str(name).startswith(CHOSEN) for name in asked.split):
        pieces = dimensions_in(frames_of(spaces), space.state.sdfg)
    found = chosen_place(space.state, entry, pieces) if isinstance(entry, MapEntry) else None
    if found is None or not (found.kept or {*asked.split} & found.indices.keys()):
        return ()
    return found.parameters if {*asked.split} <= {*found.parameters} else ()


def _by_parameter(space: IterationSpace, asked: OnMesh) -> OnMesh:
    """What is asked of a space, by its parameters where it names dimensions."""
    if not isinstance(asked.split, Mapping):  # which is refused later
        return asked  # type: ignore[unreachable]
    split = {parameter_of(space, name) or name: axes for name, axes in asked.split.items()}
    return OnMesh(asked.mesh, split)


def _grid_on(asked: OnMesh, parameters: Sequence[str], what: str, iterates: str) -> Grid:
    """The grid that a schedule asks for.

    Args:
        asked: the mesh, and axes by parameter.
        parameters: of the space.
        what: begins the messages: what the schedule asks of which space.
        iterates: parameters with their ranges, for messages.

    Raises:
        ScheduleError: a parameter or an axis that there is not, or an axis that splits twice.
    """
    if not isinstance(asked.mesh, Mesh) or not isinstance(asked.split, Mapping):
        raise ScheduleError(f"{what}. Write OnMesh(Mesh(x=2, y=4), {{{parameters[0]!r}: 'x'}}).")
    unknown = [name for name in asked.split if name not in parameters]
    if unknown:
        raise ScheduleError(
            f"{what}, but it has no parameter {unknown[0]!r}; it iterates over {iterates}."
        )
    apart = {name: dealt_of(axes) for name, axes in asked.split.items()}
    by_name = {name: axes_of(asked.mesh, axes, what) for name, (axes, _) in apart.items()}
    used = [axis for axes in by_name.values() for axis in axes]
    twice = [axis for axis in dict.fromkeys(used) if used.count(axis) > 1]
    if twice:
        raise ScheduleError(
            f"{what}, where the axis {twice[0]!r} splits twice; give each axis to one parameter."
        )
    splits = tuple(by_name.get(name, ()) for name in parameters)
    dealt = tuple(apart[name][1] if name in apart else None for name in parameters)
    return Grid(asked.mesh, splits, dealt=dealt if any(dealt) else ())


def _iterates(space: IterationSpace) -> str:
    return ", ".join(f"{name}={extent}" for name, extent in space.iterates)


def _parts(space: IterationSpace, parts: Any) -> tuple[int, ...]:
    iterates = _iterates(space)
    asked = f"the schedule gives the space {space.name!r} ({space.where}) the parts {parts!r}"
    example = "(" + ", ".join("2" if d == 0 else "1" for d in range(len(space.parameters))) + ",)"
    example = (
        example.replace(",,", ",") if len(space.parameters) == 1 else example.replace(",)", ")")
    )
    if isinstance(parts, Mapping):
        parts = {parameter_of(space, name) or name: count for name, count in parts.items()}
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


def idle_sentences(space: IterationSpace, grid: Grid) -> list[str]:
    """What a grid leaves idle along each parameter of a space of known ranges, as sentences."""
    found = []
    for parameter, extent, count in zip(space.parameters, space.ranges, grid.parts, strict=True):
        iterations = extent.divisible
        tile = -(-iterations // count)
        used = -(-iterations // tile) if tile else 0
        if used < count:
            found.append(
                f"{space.where}: the schedule cuts {parameter} of the space {space.name!r} into "
                f"{count:,} parts, but its {iterations:,} iterations are {used:,} tiles of {tile:,}"
                f": {count - used:,} of {count:,} ranks along it are idle. "
                + (f"Write {max(1, used)}." if grid.is_of_space else "Split it along fewer axes.")
            )
    return found


def whole_node(space: IterationSpace) -> str:
    """What is said of a library node of which nobody states what it reads and writes."""
    kind = type(space.node).__name__
    return (
        f"{space.where}: the library node {space.label!r} ({kind}) runs whole on each rank that "
        f"needs it, for nothing says which part of its operands a part of its result needs. "
        f"Say it with @distspmd.analysis.node_accesses({kind})."
    )
