"""Phases: an array may live in another home while a loop runs, where that spares traffic.

before -> after:  ``for t: (for k: u[:, k] = f(u)), (for k: u[k, :] = g(u))``  ->
``for t: (for k: u[:, k] = f(u)), v = u, (for k: v[k, :] = g(v)), u = v``

One home serves the whole program otherwise, and a loop whose uses do not fit it moves what it
needs in every iteration. The copy has a home of its own, in which the loop works; both copies are
redistributions, once each. The loop that spares most is given its copy first.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from dace import SDFG, Memlet, SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion

from distspmd.analysis.accesses import Edge, loops_around
from distspmd.analysis.constraints import uses
from distspmd.analysis.iteration_spaces import IterationSpace, ParameterRange, Source, parameters_of
from distspmd.analysis.loop_runs import times
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Use, Write
from distspmd.errors import ScheduleError
from distspmd.layouts import intervals, relations
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Choice, Reason
from distspmd.passes.compilation import Compilation
from distspmd.passes.tiles import new_name
from distspmd.placement.homes import Home, plan_fetch, stores
from distspmd.placement.phases import (
    LoopHome,
    is_array_of_spaces,
    is_in,
    loops_of,
    runs_more_often,
    states_in,
)
from distspmd.placement.propagation import Tiled, axes_of
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine


@dataclass(frozen=True)
class SplitPhases:
    """Loops work on copies that live elsewhere, where that spares traffic."""

    name: str = "split-phases"

    def apply(self, compilation: Compilation) -> None:
        """Add copies around loops, in place, with their spaces and tilings.

        Those that the schedule gives a home come first. An array of which it says where it lives
        gets no others.
        """
        if compilation.ranks == 1:
            return
        phases = _Phases(compilation)
        for loop, asked, layout in phases.asked():
            phases.split_as_asked(loop, asked, layout)
        waiting = list(phases.uses())
        while waiting:
            name = waiting.pop(0)
            found = phases.best(name)
            if found is not None:
                waiting += [name, phases.split(found)]


@dataclass(frozen=True)
class _Phase:
    """A loop in which a container could live elsewhere.

    Attributes:
        data: the container.
        loop: the loop.
        tiling: of the copies into it and out of it.
        written: whether the loop writes the container.
        spared: weighted bytes that it spares.
    """

    data: str
    loop: LoopRegion
    tiling: Tiling
    written: bool
    spared: float


@dataclass
class _Phases:
    """The uses of all containers, and the loops that they are in."""

    compilation: Compilation
    known: dict[str, list[Use]] | None = None
    """Uses of all containers, until a loop gets a copy."""
    copied_around: dict[str, LoopRegion] = field(default_factory=dict)
    """The loop that works on a copy, by the copy's name."""
    copy_of: dict[str, str] = field(default_factory=dict)
    """The array of the program, by the name of a copy."""

    @property
    def sdfg(self) -> SDFG:
        return self.compilation.sdfg

    def uses(self) -> dict[str, list[Use]]:
        """Of each container its uses, in program order."""
        if self.known is not None:
            return self.known
        found: dict[str, list[Use]] = {}
        for space in self.compilation.spaces:
            for use in self.compilation.tiled[space.name].uses:
                found.setdefault(use.data, []).append(use)
        self.known = found
        return found

    def best(self, name: str) -> _Phase | None:
        """The loop in which a container had best live elsewhere; None if it had better stay.

        One that the schedule gives a home stays there: a copy would take memory beside it.
        """
        if name in self.compilation.given_homes:
            return None
        known = self.uses().get(name, [])
        loops = [loop for loop in loops_of(known) if self._is_inner(name, known, loop)]
        if not loops or not self._may_move(name, known):
            return None
        before = self._weigh(name, known)
        phases = [
            phase
            for loop in loops
            for phase in self._phases(name, known, loop, before)
            if phase.spared > HEURISTICS.phase_gain * before
        ]
        return max(phases, key=lambda phase: phase.spared, default=None)

    def _is_inner(self, name: str, known: Sequence[Use], loop: LoopRegion) -> bool:
        """Whether a loop uses a container more often than it runs, and has not all of it."""
        inner = [use for use in known if is_in(use.space.state, loop)]
        is_all = len(inner) == len(known) and self.sdfg.arrays[name].transient
        own = self.copied_around.get(name)  # whose copy gets no other one around it, without an end
        if own is not None and (loop is own or not is_in(next(states_in(loop)), own)):
            return False
        return not is_all and runs_more_often(loop, inner)

    def _may_move(self, name: str, known: Sequence[Use]) -> bool:
        """Whether a container is an array that only spaces of the program itself use, as values."""
        return (
            is_array_of_spaces(self.sdfg, name, known)
            and not any(use.layout.partial for use in known)
            and not any(self._on_operands(use) for use in known)
        )

    def _on_operands(self, use: Use) -> bool:
        """Whether a space runs on operands of a reduction, which its tiling alone does not say."""
        return self.compilation.tiled[use.space.name].chosen_by.reason is Reason.OPERANDS

    def _weigh(self, name: str, known: Sequence[Use]) -> float:
        home = self.compilation.choose_home(name, known, self.compilation.ranks)
        return _cost(home, self.compilation.dtype(name))

    def _phases(
        self,
        name: str,
        known: Sequence[Use],
        loop: LoopRegion,
        before: float,
        given: Layout | None = None,
    ) -> Iterator[_Phase]:
        """What a loop could have, with what it spares; all of it if its home is given."""
        inner = [use for use in known if is_in(use.space.state, loop)]
        dtype = self.compilation.dtype(name)
        place = next(n for n, use in enumerate(known) if use is inner[0])
        outer = [use for use in known if not is_in(use.space.state, loop)]
        first = sum(not is_in(use.space.state, loop) for use in known[:place])
        written = any(not isinstance(use, Read) for use in inner)
        home = self.compilation.choose(name, inner, given=given)
        if given is None and _cost(home, dtype) > (1 - HEURISTICS.phase_gain) * before:
            return
        like, often = inner[0].space, times(loop)
        for tiling in self._tilings(home, given):
            layout = Layout.of_boxes(tiling.mesh, home.layout.extents, tiling.boxes)
            read, write = (kind(like, name, layout, (), times=often) for kind in (Read, Write))
            around = [*outer[:first], read, *[write] * written, *outer[first:]]
            inside = [write, *inner, *[read] * written]
            copied = self.compilation.choose(name, inside, given=given)
            after = self._weigh(name, around) + _cost(copied, dtype)
            yield _Phase(name, loop, tiling, written, before - after)

    # -- what a schedule says -------------------------------------------------------------------

    def asked(self) -> list[tuple[LoopRegion, LoopHome, Layout]]:
        """Loops in which the schedule gives arrays a home, the outer ones first.

        Raises:
            ScheduleError: there is no such loop, or nothing in it uses the array.
        """
        found = []
        for asked, layout in self.compilation.loop_homes.items():
            loop = asked.loop(self.compilation.spaces)
            known = self.uses().get(asked.array, [])
            if loop is None or not any(is_in(use.space.state, loop) for use in known):
                why = (
                    f"there are not so many loops around a space {asked.space!r}"
                    if loop is None
                    else f"no iteration space in that loop touches {asked.array!r}"
                )
                raise ScheduleError(
                    f"{self._place(asked)}: {str(asked)!r}: {why}. Leave this home out."
                )
            found.append((loop, asked, layout))
        return sorted(found, key=lambda each: len(list(loops_around(each[0]))))

    def _place(self, asked: LoopHome) -> str:
        """Where the schedule says so."""
        places = getattr(self.compilation.schedule, "places", {})
        return str(places.get(f"home of {asked}", "the schedule"))

    def split_as_asked(self, loop: LoopRegion, asked: LoopHome, layout: Layout) -> None:
        """Let a loop work on a copy that lives where the schedule says, or say why it does not."""
        around = [
            name
            for name, own in self.copied_around.items()
            if self.copy_of[name] == asked.array and is_in(next(states_in(loop)), own)
        ]
        name = around[-1] if around else asked.array  # outer loops got their copies before
        known = self.uses()[name]
        places = list(self._phases(name, known, loop, math.inf, layout))
        if not places:
            raise ScheduleError(
                f"{self._place(asked)}: {str(asked)!r}: {layout} is none of blocks along axes of a "
                "mesh, so no copy has these tiles. Write a layout such as [4{x}16, 16]."
            )
        if not self._may_move(name, known):
            self.compilation.remarks += (
                f"{known[0].space.where}: {asked.array!r} has no home of its own in the loop that "
                "the schedule names: operands of a reduction are kept there.",
            )
            return
        copied = self.split(min(places, key=lambda phase: self._around(phase, layout)))
        self.compilation.copy_homes[copied] = layout

    def _around(self, phase: _Phase, layout: Layout) -> int:
        """Elements of a copy's tiles that are not those of its home."""
        return int(np.abs(np.array(phase.tiling.boxes) - layout.bounds).sum())

    def _tilings(self, home: Home, given: Layout | None = None) -> Iterator[Tiling]:
        """Tilings of a copy to a home: its own tiles, or even blocks along the same axes.

        A rank that shares an element with another writes the same box.
        """
        boxes = dict.fromkeys(home.core.holders())
        distinct = [box for box in boxes if not intervals.is_empty(box)]
        axes = self._axes(home)
        if axes is None and given is not None and given.splits is not None:
            axes = [split.axes for split in given.splits]
        if axes is None:
            return
        disjoint = relations.are_tiles_disjoint(home.core)
        hull = distinct[0]
        for box in distinct:
            hull = intervals.hull(hull, box)
        full = sum(map(intervals.volume, distinct)) == intervals.volume(hull)
        mesh = home.layout.mesh
        boxes_of = [home.core.box(rank) for rank in mesh]
        if disjoint and full and _are_split_by(mesh, axes, boxes_of):
            yield Tiling.of_boxes(mesh, axes, boxes_of)
        whole = [ParameterRange.up_to(n) for n in home.layout.extents]
        yield Tiling.of(whole, mesh, axes)

    def _axes(self, home: Home) -> list[tuple[str, ...]] | None:
        """The axes of the mesh along which a use splits the container; None if no use does."""
        for use in home.uses:
            tiling = self.compilation.tiled[use.space.name].tiling
            if use.layout.mesh == home.layout.mesh:
                axes = axes_of(use, tiling)
                if any(axes):
                    return axes
        return None

    def split(self, phase: _Phase) -> str:
        """Let a loop work on a copy of a container; its name."""
        self.known = None
        container = copy.deepcopy(self.sdfg.arrays[phase.data])
        container.transient = True
        taken = {*self.sdfg.arrays, *self.sdfg.symbols, *self.compilation.tiled}
        name = new_name(f"{phase.data}_phase", taken)
        self.sdfg.add_datadesc(name, container)
        inside = {id(state) for state in states_in(phase.loop)}
        spaces = [self._renamed(s, phase.data, name, inside) for s in self.compilation.spaces]
        region = phase.loop.parent_graph
        _rename(phase.loop, phase.data, name)
        places = [n for n, space in enumerate(spaces) if id(space.state) in inside]
        starts = region.start_block is phase.loop
        loop = cast(SDFGState, phase.loop)  # what DaCe asks for; it takes any block
        state = region.add_state_before(loop, f"{name}_begin", is_start_block=starts)
        source = spaces[places[0]].source
        begun = self._copy(state, (phase.data, name), phase.tiling, name, source)
        if phase.written:
            state = region.add_state_after(loop, f"{name}_end")
            last = new_name(f"{name}_end", {*taken, name})
            ended = self._copy(state, (name, phase.data), phase.tiling, last, source)
            spaces.insert(places[-1] + 1, ended)
        spaces.insert(places[0], begun)
        self.compilation.spaces = spaces
        self.copied_around[name] = phase.loop
        self.copy_of[name] = self.copy_of.get(phase.data, phase.data)
        self._tile(spaces, inside, name, phase.tiling)
        return name

    def _tile(
        self, spaces: Sequence[IterationSpace], inside: set[int], name: str, tiling: Tiling
    ) -> None:
        """Find the uses of all spaces anew that touch the copy."""
        known: Mapping[str, Tiled] = self.compilation.tiled
        why = Choice(Reason.PHASE)
        tiled = {}
        for space in spaces:
            if space.name not in known:
                tiled[space.name] = Tiled(tiling, uses(space, tiling), why)
                continue
            own = known[space.name]
            if id(space.state) in inside and name in _touched(space):
                own = replace(own, uses=uses(space, own.tiling))
            tiled[space.name] = own
        self.compilation.tiled = tiled

    def _renamed(
        self, space: IterationSpace, old: str, new: str, inside: set[int]
    ) -> IterationSpace:
        if id(space.state) not in inside or old not in space.writes:
            return space
        return replace(space, writes=tuple(new if w == old else w for w in space.writes))

    def _copy(
        self,
        state: SDFGState,
        ends: tuple[str, str],
        tiling: Tiling,
        name: str,
        source: Source | None,
    ) -> IterationSpace:
        """A map in a state that copies all that a tiling covers; its space."""
        working = ~tiling.idle
        low = tiling.lower[working].min(axis=0).tolist()
        high = tiling.upper[working].max(axis=0).tolist()
        parameters = [f"__i{d}" for d in range(len(low))]
        index = ", ".join(parameters)
        _, entry, _ = state.add_mapped_tasklet(
            name,
            {p: f"{a}:{b}" for p, a, b in zip(parameters, low, high, strict=True)},
            {"__in": Memlet(data=ends[0], subset=index)},
            "__out = __in",
            {"__out": Memlet(data=ends[1], subset=index)},
            external_edges=True,
        )
        names, ranges = parameters_of(entry)
        return IterationSpace(name, name, names, ranges, source, (ends[1],), state, entry, None)


def _are_split_by(
    mesh: Mesh, axes: Sequence[Sequence[str]], boxes: Sequence[intervals.Box]
) -> bool:
    """Whether boxes differ along a dimension by nothing but coordinates along its axes.

    The uses of a container may split other dimensions of it along the same axes.
    """
    places = [mesh.coordinates(rank) for rank in mesh]
    for d, own in enumerate(axes):
        found: dict[tuple[int, ...], object] = {}
        for place, box in zip(places, boxes, strict=True):
            if found.setdefault(tuple(place[axis] for axis in own), box[d]) != box[d]:
                return False
    return True


def _cost(home: Home, dtype: np.dtype[Any]) -> float:
    """Weighted bytes that a home moves, and what its messages cost beside them, in bytes."""
    moving = (
        use.times * bool(plan_fetch(use, home, dtype) or stores(use, home, dtype))
        for use in home.uses
    )
    return home.traffic + _CALL * sum(moving)


_CALL = Machine().alpha / Machine().beta
"""What a message costs, in bytes on their way; the same on every machine, so that homes are."""


def _touched(space: IterationSpace) -> set[str]:
    return {
        edge.data.data
        for edge in (*space.state.in_edges(space.node), *_leaving(space))
        if not edge.data.is_empty()
    }


def _leaving(space: IterationSpace) -> Sequence[Edge]:
    node = space.node
    last = space.state.exit_node(node) if isinstance(node, nodes.MapEntry) else node
    return list(space.state.out_edges(last))


def _rename(loop: LoopRegion, old: str, new: str) -> None:
    """Let a loop use another container in the place of one."""
    for state in states_in(loop):
        for node in state.data_nodes():
            if node.data == old:
                node.data = new
        for edge in state.edges():
            if edge.data.data == old:
                edge.data.data = new
