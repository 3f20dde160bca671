"""Schedules by patterns: over the paths of spaces, with the names of their dimensions.

``{"*.self_attn.*": {"heads": 4}, "*.mlp.*": {"hidden": 4}, "*": {"batch": 2}}``: each space takes
what all patterns give that its path fits, as far as it has these dimensions. Paths are compared as
if a dot stood before them.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.errors import NothingSplit, ScheduleError
from distspmd.layouts.mesh import Mesh
from distspmd.schedule import ANY, Grid, OnMesh, axes_of

Pattern = tuple[str, Any]
"""A pattern, and what the schedule asks of the spaces that it fits."""


def pattern_grids(
    patterns: Sequence[Pattern], spaces: Sequence[IterationSpace], lenient: bool
) -> dict[str, Grid]:
    """The grids that patterns give to spaces, by their names; spaces with nothing split have none.

    Args:
        patterns: in the order of their precedence: an axis splits in each space what comes first.
        spaces: those that no entry of the schedule names.
        lenient: whether a program may lack some of the dimensions, as with presets.

    Raises:
        ScheduleError: a pattern that fits no space, a dimension that no such space has, or that is
            nowhere so long; meshes that differ.
    """
    asked = [(pattern, _fitting(pattern, spaces, lenient), wanted) for pattern, wanted in patterns]
    numbers = [(p, s, w) for p, s, w in asked if not isinstance(w, OnMesh)]
    on_mesh = [(p, s, w) for p, s, w in asked if isinstance(w, OnMesh)]
    if numbers and on_mesh:
        raise ScheduleError(
            f"the schedule gives {numbers[0][0]!r} numbers of parts, and {on_mesh[0][0]!r} axes of "
            "a mesh. Write one or the other for all patterns."
        )
    meshes = dict.fromkeys(wanted.mesh for _, _, wanted in on_mesh)
    if len(meshes) > 1:
        raise ScheduleError(
            f"the patterns of the schedule are on the meshes {' and '.join(map(str, meshes))}. "
            "Write one mesh, whose axes they share."
        )
    if numbers:
        for pattern, _, wanted in numbers:
            _check_numbers(pattern, wanted)
        on_mesh = _with_axes(numbers)
    found = _splits(on_mesh, spaces, lenient)
    if lenient and not any(found.values()):  # some ranks have nothing where extents are too short
        found = _splits(on_mesh, spaces, lenient, least=2)
    grids = {
        space.name: Grid(
            on_mesh[0][2].mesh, tuple(tuple(splits.get(p, ())) for p in space.parameters)
        )
        for space in spaces
        if (splits := found.get(space.name))
    }
    if lenient and not grids:
        raise NothingSplit(
            f"the schedule splits nothing of this program: {dict(patterns)!r}, but its dimensions "
            f"are {_known(spaces)}. Write a pattern for one of these, such as distspmd.schedule."
            f"Patterns({{'*': {{{_longest(spaces)!r}: 'axis'}}}}, {{'axis': 2}}), or no schedule, "
            "for a program that all ranks compute alike."
        )
    return grids


Splits = dict[str, dict[str, list[str]]]
"""The axes of each parameter, by spaces."""


def _splits(
    asked: Sequence[tuple[str, list[IterationSpace], OnMesh]],
    spaces: Sequence[IterationSpace],
    lenient: bool,
    least: int | None = None,
) -> Splits:
    """Which axes split what; dimensions of fewer values than parts are split from so many on."""
    found: Splits = {}
    for pattern, fitting, wanted in asked:
        given = set()
        for space in fitting:
            given |= _split(space, wanted, found.setdefault(space.name, {}), pattern, least)
        if not lenient:
            _check_given(pattern, wanted, given, fitting, spaces, found)
    return found


def _fitting(pattern: str, spaces: Sequence[IterationSpace], lenient: bool) -> list[IterationSpace]:
    """The spaces whose path a pattern fits.

    Raises:
        ScheduleError: there is none, and there must be.
    """
    paths = [space.path or space.name for space in spaces]
    found = [
        space
        for space, path in zip(spaces, paths, strict=True)
        if fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(f".{path}", pattern)
    ]
    if not found and not lenient:
        close = difflib.get_close_matches(pattern.strip("*."), paths, n=3, cutoff=0.2) or paths[:3]
        raise ScheduleError(
            f"the pattern {pattern!r} of the schedule fits no iteration space. There are such as "
            f"{', '.join(map(repr, close))}."
        )
    return found


def _split(
    space: IterationSpace,
    wanted: OnMesh,
    splits: dict[str, list[str]],
    pattern: str,
    least: int | None,
) -> set[str]:
    """Add axes that a space does not use yet to the dimensions that it has; which took some."""
    taken = set()
    for name, axes in wanted.split.items():
        what = f"the schedule gives {pattern!r} the axes {axes!r}"
        for axis in axes_of(wanted.mesh, axes, what):
            size = wanted.mesh[axis]
            own = _parameter(space, name, size, splits)
            if own is None or any(axis in used for used in splits.values()):
                continue
            parts = size * int(np.prod([wanted.mesh[each] for each in splits.get(own, ())]))
            if (least or parts) <= _length(space, own):
                splits.setdefault(own, []).append(axis)
                taken.add(name)
    return taken


def _parameter(
    space: IterationSpace, name: str, size: int, splits: Mapping[str, Sequence[str]]
) -> str | None:
    """The parameter that a schedule calls so; of any, one that splits evenly, or the longest."""
    if name == ANY:
        free = [p for p in space.parameters if p not in splits and _length(space, p) > 1]
        even = [p for p in free if _length(space, p) % size == 0]
        return even[0] if even else max(free, key=lambda p: _length(space, p), default=None)
    return parameter_of(space, name)


def parameter_of(space: IterationSpace, name: str) -> str | None:
    """The parameter of a space by the name of its dimension, or by its own; None: there is none."""
    by_name = dict(zip(space.dimensions, space.parameters, strict=False))
    return by_name.get(name, name if name in space.parameters else None)


def _longest(spaces: Sequence[IterationSpace]) -> str:
    """The dimension that most spaces have."""
    names = [name for space in spaces for name in (*space.dimensions, *space.parameters)]
    return max(names, key=names.count, default="batch")


def _length(space: IterationSpace, parameter: str) -> int:
    """How many values a parameter has; many, if a symbol says how many."""
    extent = space.ranges[space.parameters.index(parameter)]
    length = (extent.end - extent.begin) / extent.step
    return int(length) if length.is_number else 2**62


def _with_axes(patterns: Sequence[tuple[str, list[IterationSpace], Mapping[str, int]]]) -> Any:
    """Axes for numbers of parts: dimensions of as many parts share one, if no space has both."""
    used = list(_used_together(patterns).values())
    axes: list[list[tuple[str, int]]] = []
    wanted_in_order = (one for _, _, wanted in patterns for one in wanted.items() if one[1] > 1)
    for one in dict.fromkeys(wanted_in_order):
        free = (
            axis
            for axis in axes
            if axis[0][1] == one[1] and not any(one in own and own & set(axis) for own in used)
        )
        axis = next(free, None)
        if axis is None:
            axes.append([one])
        else:
            axis.append(one)
    names: dict[tuple[str, int], str] = {}
    sizes: dict[str, int] = {}
    for axis in reversed(axes):  # the first patterns have the ranks that are next to each other
        name = "any" if axis[0][0] == ANY else axis[0][0]
        while name in sizes:
            name += "_"
        sizes[name] = axis[0][1]
        names |= dict.fromkeys(axis, name)
    mesh = Mesh.of(sizes)
    return [
        (pattern, fitting, OnMesh(mesh, {n: (names[n, c],) for n, c in wanted.items() if c > 1}))
        for pattern, fitting, wanted in patterns
    ]


def _used_together(
    patterns: Sequence[tuple[str, list[IterationSpace], Mapping[str, int]]],
) -> dict[str, set[tuple[str, int]]]:
    """Dimensions with their parts that each space takes, the first parts of each."""
    together: dict[str, dict[str, int]] = {}
    for _, fitting, wanted in patterns:
        for space in fitting:
            for name, count in wanted.items():
                if count > 1 and (name == ANY or parameter_of(space, name) is not None):
                    together.setdefault(space.name, {}).setdefault(name, count)
    return {space: set(own.items()) for space, own in together.items()}


def _check_numbers(pattern: str, wanted: Any) -> None:
    if not isinstance(wanted, Mapping) or not all(
        isinstance(name, str)
        and isinstance(count, int | np.integer)
        and not isinstance(count, bool)
        and count >= 1
        for name, count in wanted.items()
    ):
        raise ScheduleError(
            f"the schedule gives the pattern {pattern!r} {wanted!r}. Write parts by the names of "
            "dimensions, such as {'batch': 2}."
        )


def _check_given(
    pattern: str,
    wanted: OnMesh,
    given: set[str],
    fitting: Sequence[IterationSpace],
    spaces: Sequence[IterationSpace],
    found: Mapping[str, Mapping[str, Sequence[str]]],
) -> None:
    """See to it that spaces have the dimensions of a pattern, and that something is split."""
    used = {x for s in fitting for split in found[s.name].values() for x in split}
    for name, axes in wanted.split.items():
        having = [space for space in fitting if parameter_of(space, name) is not None]
        if name in given or name == ANY or not axes:
            continue
        if not having:
            raise ScheduleError(
                f"the schedule splits {name!r} in {pattern!r}, but no space that this fits has "
                f"such a dimension; they have {_known(fitting)}, and all spaces {_known(spaces)}."
            )
        if not used.issuperset(axes_of(wanted.mesh, axes, pattern)):
            longest = max(_length(space, str(parameter_of(space, name))) for space in having)
            raise ScheduleError(
                f"the schedule splits {name!r} in {pattern!r} along {axes!r} of {wanted.mesh}, but "
                f"it is at most {longest} long."
            )


def _known(spaces: Sequence[IterationSpace]) -> str:
    names = dict.fromkeys(n for space in spaces for n in space.dimensions or space.parameters)
    return ", ".join(sorted(names))
