"""Schedules: on which axes of which mesh each iteration space runs; as Python objects.

What a schedule says is compared with a program in :mod:`distspmd.placement.schedule`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distspmd.errors import ScheduleError
from distspmd.layouts.dealing import Cyclic
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh

__all__ = ["OnMesh", "Patterns", "Schedule"]

Axes = str | Sequence[str | Cyclic]
"""Axes of a mesh, minor first, as in layouts: ``"x"``, ``("x", "y")``, or ``"xy"`` of letters.

Those of a space that is named may end with :func:`distspmd.layouts.cyclic`.
"""


@dataclass(frozen=True)
class Grid:
    """The mesh on which an iteration space runs, and the axes that split each of its parameters.

    Ranks that differ only on axes that split no parameter run the same iterations.

    Attributes:
        mesh: the ranks.
        splits: axes that split each parameter, minor first, in the order of the parameters.
        is_of_space: whether the mesh is the space's own, with an axis for each parameter.
        is_of_place: whether it splits dimensions of what the space writes in which loops choose
            the index.
        dealt: how parameters are dealt; None for one whose parts are blocks, empty for none at all.
    """

    mesh: Mesh
    splits: tuple[tuple[str, ...], ...]
    is_of_space: bool = False
    is_of_place: bool = False
    dealt: tuple[Cyclic | None, ...] = ()

    @classmethod
    def of_parts(cls, parameters: Sequence[str], parts: Sequence[int]) -> Grid:
        """A mesh with an axis for each parameter, which has its name."""
        mesh = Mesh.of(tuple(zip(parameters, parts, strict=True)))
        return cls(mesh, tuple((name,) for name in parameters), is_of_space=True)

    @property
    def parts(self) -> tuple[int, ...]:
        """Number of tiles along each parameter."""
        return tuple(math.prod(self.mesh[axis] for axis in split) for split in self.splits)

    def __str__(self) -> str:
        if self.is_of_space:
            return str(self.parts)
        texts = ["".join(s) if _are_letters(s) else str(s) for s in self.splits]
        for d, dealt in enumerate(self.dealt):
            texts[d] += f" {dealt}" if dealt else ""
        splits = ", ".join(texts)
        return f"({splits}) of {self.mesh}"


@dataclass(frozen=True)
class OnMesh:
    """Where a schedule has an iteration space run: ``OnMesh(Mesh(x=2, y=4), {"b": "x"})``.

    Attributes:
        mesh: the ranks; ``Mesh()`` is rank 0 alone.
        split: axes of each parameter that is split; the others stay whole.
    """

    mesh: Mesh
    split: Mapping[str, Axes]

    def __str__(self) -> str:
        splits = ", ".join(f"{name}: {axes}" for name, axes in self.split.items())
        return f"{{{splits}}} on {self.mesh or 'rank 0'}" if splits else f"whole on {self.mesh}"

    def __hash__(self) -> int:
        return hash((self.mesh, tuple(self.split)))


def is_of_axes(asked: Any) -> bool:
    """Whether a schedule gives a space axes, and not numbers of parts."""
    return isinstance(asked, Mapping) and any(_is_axes(value) for value in asked.values())


def _is_axes(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Sequence) and not isinstance(value, bytes))


def _are_letters(axes: Sequence[str]) -> bool:
    return all(len(axis) == 1 for axis in axes)


def axes_of(mesh: Mesh, axes: Axes, what: str) -> tuple[str, ...]:
    """Names of axes of a mesh, minor first.

    Args:
        mesh: that has them.
        axes: as a schedule writes them.
        what: begins the messages.

    Raises:
        ScheduleError: one that the mesh has not, or blocks that are dealt.
    """
    if isinstance(axes, str):
        found = (axes,) if axes in mesh.names else tuple(axes)
    elif _is_axes(axes) and all(isinstance(axis, str) for axis in axes):
        found = tuple(map(str, axes))
    elif _is_axes(axes) and any(isinstance(axis, Cyclic) for axis in axes):
        raise ScheduleError(
            f"{what}, which deals blocks: only spaces that are named do so, and no pattern, with "
            "one cyclic() behind the axes."
        )
    else:
        raise ScheduleError(f"{what}; write axes of the mesh {mesh}, such as {mesh.names[:1]}.")
    for axis in found:
        if axis not in mesh.names:
            names = ", ".join(mesh.names) or "none: it is rank 0 alone"
            raise ScheduleError(f"{what}, but the mesh has no axis {axis!r}; it has {names}.")
    return found


def dealt_of(axes: Axes) -> tuple[Axes, Cyclic | None]:
    """Axes, and how what they split is dealt."""
    if isinstance(axes, str) or not _is_axes(axes) or not axes:
        return axes, None
    *before, last = axes
    return (tuple(before), last) if isinstance(last, Cyclic) else (axes, None)


Asked = Sequence[int] | Mapping[str, int] | Mapping[str, Axes] | OnMesh | Grid
"""Of a space: parts along each parameter, in order or by name; or axes of a mesh by parameter."""

Entries = Mapping[Any, Asked]
"""Name, unique label, DaCe node or map of an iteration space, or a pattern over paths of spaces ->
what is asked of it."""


ANY = "*"
"""The dimension of a pattern that stands for one that splits evenly, or the longest."""


def is_pattern(key: Any) -> bool:
    """Whether a key of a schedule is a pattern over paths of spaces, not the name of one."""
    return isinstance(key, str) and any(letter in key for letter in "*?[")


class Schedule(dict[str, Any]):
    """Where each iteration space of a program runs, as it can be written into a file.

    A mapping of names of spaces, which :func:`distspmd.lower` takes as it is, changed or not.
    ``Lowering.schedule`` is one.

    Attributes:
        places: of the spaces and arrays that come from a file: ``"schedule.yaml:7"``.
        homes: layouts in which arrays live between their uses; those of the others are chosen.
        arguments: how the caller holds arguments and results; where :func:`distspmd.lower` is told
            nothing else by ``arguments=``.
        held: the same of all ``"parameters"`` and ``"states"`` of a program of torch, which
            ``arguments`` do not name.
    """

    def __init__(
        self,
        spaces: Mapping[str, Any] | None = None,
        places: Mapping[str, str] | None = None,
        homes: Mapping[str, Layout] | None = None,
        arguments: Mapping[str, Holding] | None = None,
        held: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(spaces or {})
        self.places = dict(places or {})
        self.homes = dict(homes or {})
        self.arguments = dict(arguments or {})
        self.held = dict(held or {})

    def add(self, other: Schedule) -> None:
        """Take all that another schedule says, also where this one says otherwise."""
        self.update(other)
        self.places |= other.places
        self.homes |= other.homes
        self.arguments |= other.arguments
        self.held |= other.held

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`distspmd.lower` reads.

        Raises:
            ScheduleError: the file cannot be written.
        """
        from distspmd.schedule.files import written

        try:
            Path(path).write_text(written(self), encoding="utf-8")
        except OSError as error:
            raise ScheduleError(f"the schedule {path} cannot be written: {error}") from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schedule:
        """Read a file.

        Raises:
            ScheduleError: there is none, or it is not understood; with the line.
        """
        from distspmd.schedule.files import read

        return read(Path(path))

    def __str__(self) -> str:
        spaces = [f"{name}: {asked}" for name, asked in self.items()]
        homes = [f"{name} in {home}" for name, home in self.homes.items()]
        held = [
            f"{name} in {kind}" if isinstance(kind, Layout) else f"{name} {kind}"
            for name, kind in {**self.held, **self.arguments}.items()
        ]
        return "\n".join([*spaces, *homes, *held])


def as_schedule(given: Any) -> Any:
    """What was given for a schedule: entries, the name of a file, or an answer that has one."""
    given = getattr(given, "schedule", given)
    if isinstance(given, str | os.PathLike):
        return Schedule.load(given)
    return {} if given is None else given


def as_entries(schedule: Any, mesh: Mesh | Mapping[str, int] | None = None) -> Entries:
    """A schedule, however it is given, of which each entry has its mesh of those that give axes.

    Raises:
        ScheduleError: axes without a mesh, or a mesh without axes.
        MeshError: no mesh.
    """
    schedule = as_schedule(schedule)
    if isinstance(schedule, Patterns) and mesh is not None:
        raise ScheduleError(
            f"mesh={mesh!r} beside a schedule that has a mesh, {schedule.mesh}. Leave the mesh out."
        )
    if not isinstance(schedule, Mapping):  # resolve says so, with the names of the spaces
        return schedule  # type: ignore[no-any-return]
    _check_one_preset(schedule)
    items: list[tuple[Any, Any]] = list(schedule.items())
    of_axes = [key for key, asked in items if is_of_axes(asked)]
    if mesh is None:
        if of_axes:
            places: Mapping[str, str] = getattr(schedule, "places", {})
            where = f"{places[of_axes[0]]}: " if of_axes[0] in places else ""
            raise ScheduleError(
                f"{where}the schedule gives the space {of_axes[0]!r} axes, "
                f"{schedule[of_axes[0]]!r}, of no mesh. Write mesh={{'x': 4, 'y': 2}} beside the "
                "schedule, or numbers of parts."
            )
        return schedule
    if not of_axes:
        raise ScheduleError(
            f"mesh={mesh!r}, but no entry of the schedule names axes. Write axes of the mesh, such "
            "as {'y': {'i': 'x'}}, or leave the mesh out."
        )
    mesh = mesh if isinstance(mesh, Mesh) else Mesh.of(mesh)
    made: dict[Any, Any] = {
        key: OnMesh(mesh, dict(asked)) if is_of_axes(asked) else asked for key, asked in items
    }
    if not isinstance(schedule, Schedule):
        return made
    return Schedule(made, schedule.places, schedule.homes, schedule.arguments, schedule.held)


class _PatternOf(str):
    """A pattern that knows its preset, so that a dictionary of two presets keeps those of both.

    Attributes:
        preset: as it is written.
    """

    preset: str

    def __new__(cls, text: str, preset: str = "") -> _PatternOf:
        """A pattern of a preset; of none where nobody said."""
        made = super().__new__(cls, text)
        made.preset = preset
        return made

    def __eq__(self, other: object) -> bool:
        is_of_other = isinstance(other, _PatternOf) and other.preset != self.preset
        return not is_of_other and str.__eq__(self, other)

    __hash__ = str.__hash__

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # also the preset
        return str(self), self.preset


def _check_one_preset(schedule: Mapping[Any, Any]) -> None:
    """See to it that a dictionary has not the patterns of several presets.

    Raises:
        ScheduleError: it has; the axes of a preset are those of a mesh of its own.
    """
    axes = {
        key.preset: asked.mesh.names
        for key, asked in schedule.items()
        if isinstance(key, _PatternOf) and key.preset
    }
    if len(axes) > 1:
        ordered = sorted(axes, key=lambda preset: "data" not in axes[preset])
        raise ScheduleError(
            f"the schedule is a dictionary with the entries of {' and '.join(ordered)}, each of a "
            f"mesh of its own, and how they hold parameters is not in it. Write "
            f"{' * '.join(ordered)}."
        )


class Patterns(Schedule):
    """A schedule by patterns over paths of spaces; what presets are. It prints as such patterns.

    A product splits along the axes of both: ``data_parallel(2) * megatron(4)``.

    Attributes:
        mesh: the ranks.
        name: how it is written, such as ``"megatron(2)"``; empty where nobody said.
    """

    def __init__(
        self,
        splits: Mapping[str, Mapping[str, Axes]],
        mesh: Mesh | Mapping[str, int],
        held: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        self.mesh, self.name = mesh if isinstance(mesh, Mesh) else Mesh.of(mesh), name
        spaces: dict[str, OnMesh] = {
            _PatternOf(key, name): OnMesh(self.mesh, dict(split)) for key, split in splits.items()
        }
        super().__init__(spaces, held=held)

    def __mul__(self, other: Patterns) -> Patterns:
        """Both, on the product of the meshes; the axes of the first are major."""
        if not isinstance(other, Patterns):
            return NotImplemented
        shared = set(self.mesh.names) & set(other.mesh.names)
        if shared:
            raise ScheduleError(
                f"a product of schedules that both have the axis {min(shared)!r}: write one of "
                f"them, of {self.mesh[min(shared)] * other.mesh[min(shared)]} parts."
            )
        splits: dict[str, dict[str, tuple[str, ...]]] = {}
        for factor in (self, other):
            for key, asked in factor.items():
                into = splits.setdefault(str(key), {})
                for name, axes in asked.split.items():
                    own = axes_of(factor.mesh, axes, key)  # what both split comes last
                    into[name] = (*own, *into.pop(name, ()))  # minor first
        ordered = sorted(splits, key=lambda key: key == ANY)  # what fits all comes last
        held = {
            kind: max(self.held.get(kind, "root"), other.held.get(kind, "root"), key=HOLDINGS.index)
            for kind in dict.fromkeys([*self.held, *other.held])
        }
        mesh = Mesh.of((*self.mesh.axes, *other.mesh.axes))
        name = f"{self.name} * {other.name}" if self.name and other.name else ""
        return Patterns({key: splits[key] for key in ordered}, mesh, held, name)

    def __str__(self) -> str:
        lines = [
            f"    {key!r}: {{{', '.join(f'{n!r}: {_shown(a)}' for n, a in asked.split.items())}}},"
            for key, asked in self.items()
        ]
        held = ", ".join(f"{kind} {how}" for kind, how in self.held.items())
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.mesh.axes)
        return "\n".join(["{", *lines, f"}}, mesh={{{sizes}}}", *([held] if held else [])])

    __repr__ = __str__


HOLDINGS = ("root", "replicated", "distributed", "gathered")
"""Ways to hold arguments; of two factors of a product the later one counts."""

Holding = str | Layout
"""How a caller holds an argument or a result: in one of these ways, or in a layout."""


def _shown(axes: Axes) -> str:
    return repr(axes[0] if not isinstance(axes, str) and len(axes) == 1 else axes)
