"""From a schedule to tiled spaces: which spaces there are, which the schedule names, and the rest.

The three passes decide and leave the SDFG as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from distspmd.analysis.control_values import is_control_value, runs_once
from distspmd.analysis.declared_accesses import is_whole
from distspmd.analysis.iteration_spaces import IterationSpace, IterationSpaces, spaces_of
from distspmd.analysis.loop_hulls import widen_to_hulls
from distspmd.analysis.pieces import framed, frames_of
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.whole_program import unchanged_control_flow
from distspmd.analysis.work import work_of
from distspmd.errors import ScheduleError, UnsupportedProgram
from distspmd.layouts.mesh import Mesh
from distspmd.passes.compilation import Compilation
from distspmd.placement.argument_layouts import REPLICATED, ranks_of
from distspmd.placement.propagation import propagate
from distspmd.placement.schedule import idle_sentences, resolve, whole_node
from distspmd.runtime.notices import warn
from distspmd.schedule import Patterns, is_pattern


@dataclass(frozen=True)
class FindSpaces:
    """All iteration spaces, and the grids that the schedule gives to some of them."""

    name: str = "find-spaces"

    def apply(self, compilation: Compilation) -> None:
        """Find the spaces and resolve the schedule.

        Raises:
            ScheduleError: the schedule does not fit the spaces.
        """
        spaces = spaces_of(compilation.sdfg)
        named = IterationSpaces([s for s in spaces if not is_control_value(s.node)])
        compilation.spaces = list(spaces)
        compilation.named = frozenset(space.name for space in named)
        compilation.grids = resolve(compilation.schedule, named)


@dataclass(frozen=True)
class TileNamedSpaces:
    """Tilings of the spaces that the schedule names."""

    name: str = "tile-named-spaces"

    def apply(self, compilation: Compilation) -> None:
        """Take the hulls of ranges that loops choose, and tile them; warn of idle ranks.

        Raises:
            UnsupportedProgram: a range that is not known before the run.
        """
        compilation.spaces = spaces = as_tiled(compilation.spaces)
        compilation.works = {space.name: work_of(space) for space in spaces}
        named = [space for space in spaces if space.name in compilation.grids]
        idle = {space.name: idle_sentences(space, compilation.grids[space.name]) for space in named}
        whole = tuple(whole_node(s) for s in spaces if s.expansion and is_whole(s.parameters))
        compilation.remarks = (*whole, *(sentence for own in idle.values() for sentence in own))
        patterns = any(map(is_pattern, compilation.schedule))
        compilation.warned = whole + tuple(
            sentence
            for name, sentences in idle.items()
            if not patterns or name in compilation.schedule  # what they fit is no mistake
            for sentence in sentences
        )
        for sentence in compilation.warned:
            warn(sentence)
        compilation.tilings = {
            space.name: Tiling.of(space.ranges, grid.mesh, grid.splits)
            for space in named
            if (grid := compilation.grids[space.name])
        }
        for space in named:
            if runs_once(space.node) and space.name in compilation.schedule:
                _check_once(space, compilation.tilings.get(space.name))


@dataclass(frozen=True)
class PropagateTilings:
    """Tilings of all other spaces: of their neighbours, or of all ranks for control values."""

    name: str = "propagate-tilings"

    def apply(self, compilation: Compilation) -> None:
        """Tile every space, with what each rank then reads and writes.

        Raises:
            UnsupportedProgram: accesses that cannot be partitioned, with the source line.
        """
        named, schedule = compilation.tilings, compilation.schedule
        meshes = (tiling.mesh.size for tiling in named.values())
        ranks = max(1, ranks_of(compilation.arguments, compilation.there_are), *meshes)
        everywhere = {
            space.name: Tiling.of(space.ranges, Mesh(ranks=ranks), [()] * len(space.ranges))
            for space in compilation.spaces
            if is_control_value(space.node)
        }
        once = {
            space.name: Tiling.of(space.ranges, Mesh(), [()] * len(space.ranges))
            for space in compilation.spaces
            if runs_once(space.node)
        }
        compilation.tilings = {**named, **everywhere, **once}
        with unchanged_control_flow():
            compilation.tiled = propagate(
                compilation.spaces,
                compilation.tilings,
                [n for n, kind in compilation.arguments.items() if kind == REPLICATED],
                as_far=named.keys() - set(schedule) if isinstance(schedule, Patterns) else (),
            )


def _check_once(space: IterationSpace, tiling: Tiling | None) -> None:
    """Refuse that several ranks run what one alone may run.

    Raises:
        ScheduleError: a schedule asks for that.
    """
    if tiling is not None and (~tiling.idle).sum() > 1:
        raise ScheduleError(
            f"{space.where}: the schedule has {(~tiling.idle).sum()} ranks run all of the space "
            f"{space.name!r}, which Python runs once: it may draw numbers or keep state. Leave it "
            'out of the schedule, or mark the function with where="all".'
        )


def as_tiled(spaces: Sequence[IterationSpace]) -> list[IterationSpace]:
    """The spaces as they are tiled: with the hulls of ranges that loops choose.

    Raises:
        UnsupportedProgram: a range that is not known before the run.
    """
    with unchanged_control_flow():
        found = [widen_to_hulls(space) for space in spaces]
        frames = frames_of(found)
    found = [framed(space, frames) for space in found]
    _check_ranges(found)
    return found


def _check_ranges(spaces: Sequence[IterationSpace]) -> None:
    for space in spaces:
        for parameter, extent in zip(space.parameters, space.ranges, strict=True):
            if not all(end.is_Integer for end in (extent.begin, extent.end, extent.step)):
                raise UnsupportedProgram(
                    f"{space.where}: the space {space.name!r} runs over {parameter}={extent}, "
                    "which is not known before the run, and cannot be partitioned yet. Give the "
                    "range as numbers, with a condition inside if need be."
                )
