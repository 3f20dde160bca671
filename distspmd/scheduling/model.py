"""The problem of a schedule: spaces and homes as variables, seconds as costs, memory as a limit."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.analysis.loop_runs import busiest, times
from distspmd.analysis.uses import Read, Update, asked_elements
from distspmd.analysis.work import CHOSEN, LINE, Work, swept_lines, work_of
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.relations import in_pieces
from distspmd.passes.compilation import Compilation
from distspmd.placement.argument_layouts import IN_TILES, REPLICATED, ROOT, held_by_caller
from distspmd.placement.homes import needs_load
from distspmd.plans.machine import Machine
from distspmd.schedule import Grid, Holding
from distspmd.scheduling import boxes
from distspmd.scheduling.columns import Columns
from distspmd.scheduling.container_choices import Axes, ChoiceCost, ContainerChoice, Key, UseArrays
from distspmd.scheduling.footprints import (
    Candidate,
    Footprint,
    Slot,
    Tilings,
    on_its_mesh,
)
from distspmd.scheduling.home_variables import HomeVariable, stages_of
from distspmd.scheduling.interleaved import unsplit_of
from distspmd.scheduling.likeness import footprints_of, joined, tied_variables
from distspmd.scheduling.offers import Scores, candidates_of
from distspmd.scheduling.tiles import Tiles
from distspmd.wcsp.problem import Limit, Pair, Problem, Usage

REACH = 4
"""Steps between spaces and containers as far as which tied ones are alike."""
_RIM = 8
"""Times the iterations of a rim that the piece beside it has at least."""
_SHORTER = 1e-8
"""Of a time: what is added where runs of memory are half as long; so equals are told apart."""


@dataclass(frozen=True, eq=False)
class Program:
    """What is known of a program before a mesh is: it serves all of them.

    Attributes:
        footprints: of all spaces by name, in program order.
        works: what an iteration of each of them costs.
        times: how often each of them runs.
        itemsizes: bytes of an element of each container.
        compilation: the program, fused, and where the caller holds its arguments.
        machine: what everything costs.
    """

    footprints: Mapping[str, Footprint]
    works: Mapping[str, Work]
    times: Mapping[str, int]
    itemsizes: Mapping[str, int]
    compilation: Compilation
    machine: Machine

    @classmethod
    def of(cls, compilation: Compilation) -> Program:
        """The program of a compilation whose maps are fused and aligned."""
        sdfg, spaces = compilation.sdfg, compilation.spaces
        return cls(
            footprints_of(spaces, unsplit_of(compilation.folded)),
            {space.name: work_of(space) for space in spaces},
            {space.name: times(space.state) for space in spaces},
            {name: compilation.dtype(name).itemsize for name in sdfg.arrays},
            compilation,
            compilation.machine,
        )


@dataclass(frozen=True, eq=False)
class SpaceVariable:
    """The candidates of a space.

    Attributes:
        name: of the space.
        candidates: what splits its parameters.
        seconds: of its work in a run, of each candidate.
        tiles: bytes of all that it touches on the busiest rank, of each candidate.
    """

    name: str
    candidates: list[Candidate]
    seconds: NDArray[np.float64]
    tiles: NDArray[np.float64]


def _splits(candidate: Candidate) -> bool:
    """Whether a candidate splits a parameter."""
    if isinstance(candidate, Grid):
        return any(candidate.splits)
    return candidate is not None and any(candidate)


@dataclass(eq=False)
class Model:
    """The candidates of a program on one mesh, and what they cost.

    Attributes:
        mesh: of prime axes.
        fixed: the only candidate of some spaces.
        capacity: most bytes on a rank at once.
        is_tied: whether spaces take one choice that are alike with all that is near them.
        spaces: in program order.
        homes: of all containers that spaces touch, each before those that it has in loops.
    """

    program: Program
    mesh: Mesh
    fixed: Mapping[str, Candidate]
    capacity: int | None = None
    is_tied: bool = False
    spaces: list[SpaceVariable] = field(default_factory=list)
    homes: list[HomeVariable] = field(default_factory=list)
    _tilings: dict[Any, Tilings] = field(default_factory=dict)
    _uses: dict[Any, UseArrays] = field(default_factory=dict)
    _dwellings: dict[Any, HomeVariable] = field(default_factory=dict)
    _of_rims: list[UseArrays] = field(default_factory=list)

    def __post_init__(self) -> None:
        program = self.program
        self._columns = Columns(self.mesh.size)
        scores = Scores(program.machine, program.works, program.itemsizes)
        found, self._pieces_of = candidates_of(program.footprints, self.mesh, scores, self.fixed)
        uses: dict[str, list[UseArrays]] = {}
        rims = dict(self._rims())
        for name, candidates in found.items():
            self.spaces.append(self._space(name, candidates, uses, rims.get(name, frozenset())))
        for data, own in uses.items():
            self.homes += self._home(data, own).family
        self._wait_for_rims(uses)

    def _rims(self) -> Iterator[tuple[str, Set[str]]]:
        """Spaces that write small pieces, and what they touch that the large piece does too.

        They take the candidate of that one, and what they move is little beside what it moves.
        """
        footprints = self.program.footprints
        for group in self._pieces_of:
            first, *others = (footprints[name] for name in group)
            touched = {access.data for access in first.touched[0]}
            most = math.prod(extent.iterations for extent in first.space.ranges)
            for other in others:
                if _RIM * math.prod(extent.iterations for extent in other.space.ranges) <= most:
                    yield other.space.name, touched

    def _wait_for_rims(self, uses: Mapping[str, Sequence[UseArrays]]) -> None:
        """Add what it takes to wait for the little that a rim reads far from its large piece.

        Both take one candidate, so that those of the same number are compared.
        """
        large = {name: group[0] for group in self._pieces_of for name in group}
        spaces = {space.name: space for space in self.spaces}
        for own in self._of_rims:
            if not own.is_read:
                continue
            beside = [use.tiles for use in uses[own.slot.data] if use.space == large[own.space]]
            waits = np.all(
                [boxes.apart(own.tiles.bounds, other.bounds) for other in beside], axis=0
            )
            waiting = own.times * self.program.machine.alpha
            spaces[own.space].seconds[waits.any(axis=1)] += waiting

    def _space(
        self,
        name: str,
        candidates: list[Candidate],
        uses: dict[str, list[UseArrays]],
        without: Set[str],
    ) -> SpaceVariable:
        """The variable of a space; its uses are added to those of the containers.

        Args:
            name: of the space.
            candidates: of it.
            uses: of the containers so far.
            without: containers of which its uses do not matter.
        """
        program, footprint = self.program, self.program.footprints[name]
        asked = tuple(candidates)
        key = footprint.space.ranges, asked
        if key not in self._tilings:
            self._tilings[key] = Tilings.of(footprint.space, self.mesh, candidates, self._columns)
        tilings = self._tilings[key]
        hull = tilings.iterations
        busy = busiest(footprint.space, tilings.parts)
        iterations = hull * (busy / np.maximum(hull.max(axis=1), 1.0))[:, None]
        chosen = tilings.chosen_parts(footprint.space)[:, None]
        tiles, nbytes, again = (np.zeros(hull.shape) for _ in range(3))
        for place, slot in enumerate(footprint.slots(candidates)):
            alike = footprint.like, place, asked
            if alike not in self._uses:
                self._uses[alike] = self._use(footprint, slot, tilings)
            own = replace(self._uses[alike], space=name, slot=slot)
            if slot.data not in without:
                uses.setdefault(slot.data, []).append(own)
            else:
                self._of_rims.append(own)
            held = own.tiles.volumes.astype(np.float64)
            size = program.itemsizes[slot.data]
            if isinstance(slot.use, Read | Update) and slot.use.approximate:
                held = np.minimum(held, iterations)
            tiles += held * size
            touched = held * size * np.minimum(1.0, slot.use.share * chosen)
            nbytes += touched
            sweep = swept_lines(footprint.space, slot.use.index, tilings.parts)
            again += (sweep > (program.machine.near or np.inf))[:, None] * touched * LINE / size
            if isinstance(slot.use, Read | Update) and slot.use.approximate:
                is_far = own.tiles.volumes * size > (program.machine.near or np.inf)
                again += is_far * touched * CHOSEN / size
        work = program.works[name]
        each = program.machine.computing(
            work.in_tile(footprint.space, iterations, tilings.parts),
            nbytes,
            work.kind,
            tilings.working[:, None],
            again,
        )
        talking = work.talking(tilings.parts, program.machine)
        talking += self._waiting(footprint, tilings, each.max(axis=1))
        longer = 1 + _SHORTER * np.log2(self._cuts(footprint, tilings))
        seconds = (each.max(axis=1) + talking) * longer
        return SpaceVariable(name, candidates, program.times[name] * seconds, tiles.max(axis=1))

    def _waiting(self, footprint: Footprint, tilings: Tilings, seconds: NDArray[np.float64]) -> Any:
        """Seconds that ranks of a pipeline wait for each other in a run, under each candidate."""
        handing = footprint.handing
        if handing is None:
            return 0.0
        (extent,) = footprint.space.ranges
        parts = tilings.parts[:, 0]
        rows = np.ceil(extent.iterations / parts)
        return handing.waiting(self.program.machine, parts, rows, seconds)

    def _cuts(self, footprint: Footprint, tilings: Tilings) -> NDArray[np.int64]:
        """Parts into which runs of memory are cut, under each candidate."""
        last = {
            slot.use.index[-1] for slot in footprint.slots(tilings.candidates) if slot.use.index
        }
        own = [d for d, name in enumerate(footprint.space.parameters) if name in last]
        found: NDArray[np.int64] = tilings.parts[:, own].prod(axis=1)
        return found

    def _use(self, footprint: Footprint, slot: Slot, tilings: Tilings) -> UseArrays:
        tiles = footprint.boxes(slot.touched, tilings)
        written = tiles
        if not isinstance(slot.use, Read):
            written = footprint.boxes(slot.written, tilings)
        return UseArrays(
            footprint.space.name,
            slot,
            tiles,
            written,
            (operands := self._operands(footprint, slot, tilings)),
            tuple(
                self._pieces(footprint, slot, candidate, written[[number]]) if count > 1 else ()
                for number, (candidate, count) in enumerate(
                    zip(tilings.candidates, operands.tolist(), strict=True)
                )
            ),
            tuple(footprint.boxes(part, tilings) for part in slot.parts),
            tuple(self._axes(footprint, slot, each) for each in tilings.candidates),
            self.program.times[footprint.space.name],
            self._asked(slot, tiles, tilings),
        )

    def _asked(self, slot: Slot, tiles: Tiles, tilings: Tilings) -> NDArray[np.float64]:
        """Elements that the busiest rank asks for, of each candidate."""
        if not isinstance(slot.use, Read):
            return np.zeros(len(tiles))
        rewritten = {
            data
            for name, own in self.program.footprints.items()
            if self.program.times[name] > 1
            for data in own.space.writes
        }
        asked = asked_elements(slot.use, tiles.bounds, tilings.iterations, rewritten)
        found: NDArray[np.float64] = asked.max(axis=1)
        return found

    def _pieces(
        self, footprint: Footprint, slot: Slot, candidate: Candidate, written: Tiles
    ) -> tuple[Key, ...]:
        """Tiles in which each rank has a part of the result whose operand it writes."""
        along = (footprint.partials(footprint.split(candidate)) or {}).get(slot.data, frozenset())
        mesh, splits = on_its_mesh(self.mesh, candidate, len(footprint.space.parameters))
        pairs = zip(footprint.space.parameters, splits, strict=True)
        axes = {axis for name, own in pairs if name in along for axis in own}
        operand = np.zeros(self.mesh.size, np.int64)
        order = [axis for axis in mesh.names if axis in axes]
        count = math.prod(mesh[axis] for axis in order)
        for axis in order:
            operand[: mesh.size] = operand[: mesh.size] * mesh[axis] + mesh.grid[axis]
        bounds = written.bounds[0]
        cut = (in_pieces(bounds, d, operand, count) for d in range(bounds.shape[1]))
        return tuple(
            Tiles.of(self._columns, boxes.emptied(own)[None]).key(0)
            for own in cut
            if own is not None
        )

    def _operands(self, footprint: Footprint, slot: Slot, tilings: Tilings) -> NDArray[np.int64]:
        """How many ranks hold operands of each element, of each candidate."""
        found = np.ones(len(tilings.candidates), np.int64)
        if isinstance(slot.use, Read):
            return found
        parameters = footprint.space.parameters
        for number, candidate in enumerate(tilings.candidates):
            partials = footprint.partials(footprint.split(candidate)) or {}
            along = partials.get(slot.data, frozenset())
            counts = zip(parameters, tilings.parts[number].tolist(), strict=True)
            found[number] = math.prod(n for name, n in counts if name in along)
        return found

    def _axes(self, footprint: Footprint, slot: Slot, candidate: Candidate) -> Axes:
        """Axes that split each dimension of a container; on another mesh they have other names."""
        if candidate is None:
            return (("0",),) * len(slot.use.layout.extents)
        if isinstance(candidate, Grid):
            splits = tuple(tuple(f"{a} of {candidate.mesh}" for a in s) for s in candidate.splits)
        else:
            splits = candidate
        by_name = dict(zip(footprint.space.parameters, splits, strict=True))
        return tuple(() if name is None else by_name[name] for name in slot.use.index) or ((),)

    def _home(self, data: str, uses: Sequence[UseArrays]) -> HomeVariable:
        """The variable of a container; of those that are alike one is worked out."""
        compilation, program = self.program.compilation, self.program
        kind = compilation.arguments.get(data, ROOT)
        extents = tuple(int(n) for n in compilation.sdfg.arrays[data].shape)
        seen = not compilation.sdfg.arrays[data].transient
        whole = uses[0].slot.use.layout
        loaded = seen and not data.startswith("__return")
        is_loaded = loaded and needs_load(whole.root(extents), [use.slot.use for use in uses])
        stages = stages_of(compilation, data, uses)
        beyond = [rim.tiles[:1].whole for rim in self._of_rims if rim.slot.data == data]
        key = (
            program.itemsizes[data],
            extents,
            (seen, kind, is_loaded),
            tuple(use.key for use in uses),
            tuple(box.tobytes() for box in beyond),
        )
        if key in self._dwellings and not stages:
            like = self._dwellings[key]
            twin = like.container_choice.renamed(data, uses)
            pairs = [(use.space, costs) for use, (_, costs) in zip(uses, like.pairs, strict=True)]
            return HomeVariable(twin, like.own, pairs)
        container_choice = ContainerChoice(
            data,
            program.itemsizes[data],
            extents,
            uses,
            self._caller(data, kind, extents) if seen and kind not in IN_TILES else None,
            seen and kind in IN_TILES,
            is_loaded,
            program.machine,
            groups=[stage.uses for stage in stages],
            beyond=beyond,
        )
        self._dwellings[key] = HomeVariable.of(container_choice, stages, self.capacity is not None)
        return self._dwellings[key]

    def _caller(self, data: str, kind: Holding, extents: tuple[int, ...]) -> Tiles:
        """The tiles in which the caller holds a container."""
        found = np.zeros((1, self.mesh.size, len(extents), 2), np.int64)
        if isinstance(kind, Layout) and kind.ranks <= self.mesh.size:  # else as on one rank
            held_by_caller(kind, extents, self.mesh.size, f"arguments= wants {data!r}")
            found[0, : kind.ranks] = np.where((kind.volumes > 0)[:, None, None], kind.bounds, 0)
        elif kind == REPLICATED:
            found[..., 1] = extents
        else:
            found[:, 0, :, 1] = extents
        return Tiles.of(self._columns, found)

    # -- the problem ----------------------------------------------------------------------------

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """The variable of each space."""
        return {space.name: number for number, space in enumerate(self.spaces)}

    @functools.cached_property
    def homes_of(self) -> dict[str, list[HomeVariable]]:
        """The homes of what each space touches, with those that they have in loops."""
        found: dict[str, list[HomeVariable]] = {space.name: [] for space in self.spaces}
        for home in (home for home in self.homes if home.stage is None):
            pairs = (pair for member in home.family for pair in member.pairs)
            for name in dict.fromkeys(name for name, _ in pairs):
                found[name].append(home)
        return found

    @functools.cached_property
    def problem(self) -> Problem:
        """Variables are the spaces, and then the homes."""
        first = len(self.spaces)
        unary = [space.seconds for space in self.spaces]
        pairs: list[Pair] = []
        numbers = {id(home): number for number, home in enumerate(self.homes, first)}
        for number, home in enumerate(self.homes):
            unary.append(home.own.seconds)
            for space, costs in home.pairs:
                if costs.seconds.any():
                    pairs.append(Pair(first + number, self.numbers[space], costs.seconds))
            pairs += [
                Pair(numbers[id(part)], first + number, part.link.seconds) for part in home.parts
            ]
        pieces = [tuple(self.numbers[name] for name in group) for group in self._pieces_of]
        ties = tuple(joined([*pieces, *(self._ties() if self.is_tied else ())]))
        return Problem(tuple(unary), tuple(pairs), self._limits, ties)

    def _ties(self) -> list[tuple[int, ...]]:
        """Variables of layers that repeat: the same tables, and the same around them."""
        first = len(self.spaces)
        own: list[Any] = [
            (
                id(self.program.footprints[space.name].like),
                self.program.works[space.name],
                tuple(space.candidates),
            )
            for space in self.spaces
        ]
        near: list[list[tuple[int, Any]]] = [[] for _ in range(first + len(self.homes))]
        for number, home in enumerate(self.homes):
            own.append(
                (
                    id(home.own),
                    home.container_choice.caller is None,
                    home.container_choice.is_distributed,
                )
            )
            for name, costs in home.pairs:  # uses that are alike share their costs
                near[first + number].append((self.numbers[name], id(costs)))
                near[self.numbers[name]].append((first + number, id(costs)))
        whole = [not any(map(_splits, space.candidates)) for space in self.spaces]
        whole += [home.container_choice.is_whole for home in self.homes]
        return tied_variables(own, near, REACH, whole)

    def forbid(self, number: int, choice: int) -> None:
        """Take a candidate of a space out of the problem."""
        self.spaces[number].seconds[choice] = np.inf
        self.__dict__.pop("problem", None)

    @functools.cached_property
    def least_loads(self) -> NDArray[np.float64]:
        """Bytes of the busiest rank as each space runs, if each variable took the fewest.

        What one takes does not depend on the others, so that no schedule takes fewer.
        """
        change = np.zeros(len(self.spaces) + 1)
        for usage in self.usages:
            change[usage.begin] += usage.amounts.min()
            change[usage.end] -= usage.amounts.min()
        loads: NDArray[np.float64] = np.cumsum(change)
        return loads

    def tighten(self, capacity: int) -> bool:
        """Let the problem have less memory; whether anything is left that fits."""
        self.capacity = capacity
        self.__dict__.pop("problem", None)
        return bool(self.least_loads.max(initial=0) <= capacity)

    def cost_of(self, chosen: Sequence[int]) -> list[ChoiceCost]:
        """What the homes cost for choices of all spaces and homes.

        The home is the one that the lowering chooses by itself, by bytes, unless that of the
        choices takes less time, or less memory where that is limited: then the schedule gives it.
        """
        by_name = {space.name: chosen[number] for number, space in enumerate(self.spaces)}
        numbers = {id(home): number for number, home in enumerate(self.homes, len(self.spaces))}
        found: list[ChoiceCost] = []
        for home in (home for home in self.homes if home.stage is None):
            chosen_of = [chosen[numbers[id(member)]] for member in home.family]
            found += home.cost_of(chosen_of, by_name, is_limited=self.capacity is not None)
        return found

    @property
    def _limits(self) -> tuple[Limit, ...]:
        return (
            () if self.capacity is None else (Limit(float(self.capacity), self.usages, "memory"),)
        )

    @functools.cached_property
    def usages(self) -> tuple[Usage, ...]:
        """Bytes of the busiest rank over the program: homes while they live, tiles of each space.

        A container lives from its first use to its last, in loops to their end; what the caller
        holds lives throughout. A tile counts even where the space works in the home itself.
        """
        found = []
        ends = len(self.spaces)
        for number, home in enumerate(self.homes):
            begin, end = self._life(home)
            found.append(Usage(ends + number, home.volumes, begin, end))
        for number, space in enumerate(self.spaces):
            found.append(Usage(number, space.tiles, number, number + 1))
        return tuple(found)

    def _life(self, home: HomeVariable) -> tuple[int, int]:
        sdfg = self.program.compilation.sdfg
        if home.stage is not None:
            return self._extent_of(home.stage.loop)
        if not sdfg.arrays[home.container_choice.data].transient:
            return 0, len(self.spaces)
        at = [self.numbers[use.space] for use in home.container_choice.uses]
        begin, end = min(at), max(at) + 1
        # in a loop what one iteration leaves is there for the next
        for use in home.container_choice.uses:
            region = self.program.footprints[use.space].space.state.parent_graph
            if region is not sdfg:
                own = self._extent_of(region)
                begin, end = min(begin, own[0]), max(end, own[1])
        return begin, end

    def _extent_of(self, region: object) -> tuple[int, int]:
        """The first space within a loop, and the first behind it."""
        together = [n for n, each in enumerate(self.spaces) if self._is_inside(each.name, region)]
        return min(together), max(together) + 1

    def _is_inside(self, name: str, region: object) -> bool:
        around: object = self.program.footprints[name].space.state.parent_graph
        while around is not None:
            if around is region:
                return True
            around = getattr(around, "parent_graph", None)
        return False
