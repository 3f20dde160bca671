"""What a pass is, and what the passes of one compilation know of each other's decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from dace import SDFG

from distspmd.analysis.apart import Picking
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Use
from distspmd.analysis.work import Work
from distspmd.layouts.layout import Layout
from distspmd.lowering import FusedSpace, Lowering
from distspmd.nodes.handing_on import HandingOn
from distspmd.passes.fold_indices import Fold
from distspmd.passes.movement import Movement
from distspmd.passes.tiles import Symbols
from distspmd.passes.windows import Windows
from distspmd.placement.argument_layouts import (
    GATHERED,
    IN_TILES,
    ROOT,
    held_by_caller,
    ranks_of,
)
from distspmd.placement.homes import Home, choose, question
from distspmd.placement.phases import LoopHome
from distspmd.placement.propagation import Tiled
from distspmd.planning.select import Solution
from distspmd.plans.machine import Machine
from distspmd.plans.pipeline import Pipeline
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.row_exchange import RowExchange
from distspmd.plans.solver import Solver
from distspmd.runtime.calls.form import CallForm
from distspmd.schedule import Entries, Grid, Holding, Schedule


@dataclass
class Compilation:
    """One lowering under way: what was asked for, and what has been decided so far.

    Attributes:
        sdfg: the program; passes rewrite it in place.
        schedule: as :func:`distspmd.lower` takes it; each entry has its mesh.
        solvers: whom to ask for plans, in this order.
        machine: what messages and bytes are taken to cost.
        arguments: where the caller holds arguments and results that are not whole on rank 0.
        deterministic: whether results have the same bits on any number of ranks.
        fuse: whether maps that pass temporaries on become one.
        there_are: ranks, as far as they are known: each has what the caller holds replicated.
        spaces: the iteration spaces that are left, in program order.
        named: names of the spaces that a schedule can name.
        grids: of the spaces that the schedule names.
        remarks: what the schedule leaves idle, as sentences.
        warned: those of them of which the caller is warned.
        fused: spaces that run in others.
        folded: of spaces with parameters that are dealt, or follow such: how each was folded, and
            its digits.
        tilings: of the spaces whose grid does not follow from their neighbours.
        works: what an iteration of each space costs, as it was before it was tiled.
        tiled: every space with its tiling and what each rank reads and writes.
        homes: the placement of each container between its uses.
        dtypes: the type of the elements of each of them.
        call_form: how the caller passes arguments and gets results.
        solutions: the plan of each redistribution that the homes make necessary.
        windows: its parts, of one that loops choose ever less of.
        movements: redistributions of the program, in the order of their numbers.
        fetches: the same of what data decide.
        pipelines: loops in order that ranks run one behind the other, with their marks.
        tiles: layout of each tile, by its container.
        stores: the container that holds the tiles of each home.
        apart: spaces that run on operands that lie apart: what they pick, if that is known.
        row_exchanges: of rows that data choose, in the order of their numbers.
        copy_homes: layouts of copies that loops work on, which the schedule gives.
        lowering: the record of all decisions, at the end.
    """

    sdfg: SDFG
    schedule: Entries
    solvers: Sequence[Solver]
    machine: Machine
    arguments: Mapping[str, Holding] = field(default_factory=dict)
    deterministic: bool = False
    fuse: bool = True
    there_are: int = 1
    spaces: Sequence[IterationSpace] = ()
    named: frozenset[str] = frozenset()
    grids: dict[str, Grid] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    fused: tuple[FusedSpace, ...] = ()
    folded: dict[str, dict[str, tuple[Fold, tuple[str, ...]]]] = field(default_factory=dict)
    tilings: dict[str, Tiling] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    tiled: dict[str, Tiled] = field(default_factory=dict)
    homes: dict[str, Home] = field(default_factory=dict)
    dtypes: dict[str, np.dtype[Any]] = field(default_factory=dict)
    call_form: CallForm = field(default_factory=CallForm)
    solutions: dict[Redistribution, Solution] = field(default_factory=dict)
    windows: dict[tuple[Use, Redistribution], Windows] = field(default_factory=dict)
    movements: Sequence[Movement] = ()
    fetches: Sequence[Movement] = ()
    pipelines: Sequence[tuple[Pipeline, HandingOn]] = ()
    tiles: Mapping[str, Layout] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, Picking | None] = field(default_factory=dict)
    row_exchanges: Sequence[RowExchange] = ()
    copy_homes: dict[str, Layout] = field(default_factory=dict)
    lowering: Lowering | None = None

    def __post_init__(self) -> None:
        self.symbols = Symbols(self.sdfg)
        """Symbols of the lowered program, with the value of each on each rank."""
        self._homes: dict[tuple[Any, ...], Home] = {}

    @property
    def ranks(self) -> int:
        """Ranks of the largest mesh so far, and those that the caller's arguments need."""
        meshes = (space.tiling.mesh.size for space in self.tiled.values())
        return max([ranks_of(self.arguments, self.there_are), *meshes])

    def dtype(self, name: str) -> np.dtype[Any]:
        """The type of a container's elements."""
        dtype: np.dtype[Any] = np.dtype(self.sdfg.arrays[name].dtype.as_numpy_dtype())
        return dtype

    def choose_home(self, name: str, uses: Sequence[Use], ranks: int) -> Home:
        """The home of a container that the caller holds in one way or another."""
        kind = self.arguments.get(name, ROOT)
        said = f"{self.sdfg.name!r}: arguments= wants {name!r}"
        held = held_by_caller(kind, uses[0].layout.extents, ranks, said)
        home = self.choose(
            name,
            uses,
            caller=None if self.sdfg.arrays[name].transient else held,
            distributed=kind in IN_TILES,
            result=name.startswith("__return"),
            parted=kind == GATHERED,
            given=self.given_homes.get(name),
        )
        return replace(home, is_gathered=kind == GATHERED)

    @property
    def given_homes(self) -> Mapping[str, Layout]:
        """Layouts of arrays, and of copies that loops work on, that the schedule gives."""
        given = self.schedule.homes if isinstance(self.schedule, Schedule) else {}
        own = {name: layout for name, layout in given.items() if LoopHome.parse(name) is None}
        return own | self.copy_homes

    @property
    def loop_homes(self) -> Mapping[LoopHome, Layout]:
        """Layouts of arrays in loops that the schedule gives."""
        given = self.schedule.homes if isinstance(self.schedule, Schedule) else {}
        pairs = ((LoopHome.parse(name), layout) for name, layout in given.items())
        return {loop: layout for loop, layout in pairs if loop is not None}

    def choose(
        self,
        name: str,
        uses: Sequence[Use],
        caller: Layout | None = None,
        distributed: bool = False,
        result: bool = False,
        parted: bool = False,
        given: Layout | None = None,
    ) -> Home:
        """The home of a container; where layers are alike, those of the first serve them all."""
        dtype = self.dtype(name)
        key = question(dtype, uses, caller, distributed, result, parted, given)
        if key not in self._homes:
            self._homes[key] = choose(
                name,
                dtype,
                uses,
                caller=caller,
                distributed=distributed,
                result=result,
                parted=parted,
                given=given,
            )
        return replace(self._homes[key], data=name, uses=tuple(uses))


class Pass(Protocol):
    """One step of the compiler: it rewrites the SDFG, or decides something, or both."""

    @property
    def name(self) -> str:
        """Name in kebab-case, by which ``distspmd lower --stop-after`` knows it."""

    def apply(self, compilation: Compilation) -> None:
        """Do the step; errors name the source line of what cannot be partitioned."""


@dataclass(frozen=True)
class Rewrite:
    """A pass that is one function on the SDFG and takes part in no decision."""

    name: str
    rewrite: Callable[[SDFG], None]

    def apply(self, compilation: Compilation) -> None:
        """Rewrite the SDFG in place."""
        self.rewrite(compilation.sdfg)
