"""The record of a lowering: grids, homes, distributed memlets with their plans, and rank symbols.

It travels between processes without the SDFG, which carries it and which it names.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, TypeAlias

import numpy as np

import distspmd
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.select import Solution
from distspmd.plans.exchange import Exchange
from distspmd.plans.line_exchange import LineExchange
from distspmd.plans.machine import RATES, Machine
from distspmd.plans.matrix_exchange import MatrixExchange
from distspmd.plans.pipeline import Pipeline
from distspmd.plans.row_exchange import RowExchange
from distspmd.plans.tile_work import TileWork
from distspmd.runtime.calls.form import CallForm
from distspmd.schedule import Axes, Holding, OnMesh, Schedule
from distspmd.tables import Table, as_html, as_text

__all__ = ["Lowering"]

ATTRIBUTE = "_distspmd_lowering"
"""Name under which a lowered SDFG carries its lowering."""
_WORTH_TELLING = 0.01
"""The part of the work of a space that the opening of the record names."""
_MUCH = 0.5
"""The part of the work that no ranks share, of which callers are told."""
CONTEXT = "distspmd_context"
"""Scalar argument of a lowered program: the handle of the runtime's plans."""
RECORD = "distspmd"
"""Name under which the global code of a lowered SDFG has its record, where it is saved by itself.

No target of DaCe's has this name, so that no code is made of it.
"""


class SpaceOrigin(Enum):
    """Where an iteration space comes from; each has a table of its own in the record."""

    PROGRAM = "Iteration spaces and their grids"
    CONTROL_FLOW = "Values that control flow reads, on every rank"
    LOWERING = "Spaces that the lowering added"


class Reason(Enum):
    """Why an iteration space has its grid."""

    SCHEDULE = "the schedule"
    NEIGHBOUR = "its neighbour"
    OPERANDS = "the operands that it adds up"
    PHASE = "the loop that works on its copy"
    ROWS = "the rows that its readers need"
    RESULTS = "rank 0: where its results live"
    NO_NEIGHBOUR = "rank 0: no neighbour"
    ONCE = "rank 0: Python runs it once"


@dataclass(frozen=True)
class Choice:
    """What gave an iteration space its grid; prints as in the table of spaces.

    Attributes:
        reason: why.
        neighbour: the space that it follows, if it follows one.
        whole: whether each rank runs all of it, because it cannot be split as its neighbour is.
    """

    reason: Reason
    neighbour: str = ""
    whole: bool = False

    def __str__(self) -> str:
        follows = f" {self.neighbour}" if self.neighbour else ""
        return f"{self.reason.value}{follows}{', whole on each rank' * self.whole}"


@dataclass(frozen=True)
class TiledSpace:
    """An iteration space and the grid that it runs on."""

    name: str
    label: str
    iterates: tuple[tuple[str, str], ...]
    """Each parameter with its range."""
    mesh: Mesh
    parts: tuple[int, ...]
    splits: tuple[tuple[str, ...], ...]
    """Axes of the mesh that split each parameter, minor first."""
    chosen_by: Choice
    """What gave the space its grid: the schedule, its neighbours, or nothing (rank 0)."""
    source: str
    origin: SpaceOrigin = SpaceOrigin.PROGRAM
    work: TileWork = field(default_factory=TileWork)
    asked: Mapping[str, Axes] | None = field(default_factory=dict)
    """Axes by parameter, as a schedule asks for them; None where none can say it."""
    can_split: bool = True
    """Whether it has several iterations."""
    node: str = ""
    """The ``guid`` of its map or library node in the lowered SDFG."""
    python: str = ""
    """What Python runs there: lines of the program, or a function; empty for compiled code."""
    bounds: Numbers | None = field(default=None, repr=False, compare=False)
    """First value and end of each parameter on each rank, shape (ranks, parameters, 2)."""

    @property
    def why_whole(self) -> str:
        """Why no ranks share it, if none do."""
        if self.origin is SpaceOrigin.CONTROL_FLOW:
            return "control flow reads it on every rank"
        if self.python:
            return f"Python runs {self.python}"
        if not self.can_split:
            return "one call that no ranks share" if self.work.kind in RATES else "one iteration"
        return str(self.chosen_by)

    @property
    def where(self) -> str:
        """The ranks that run it, in words."""
        if self.mesh.size == 1:
            return "rank 0"
        if max(self.parts) == 1:
            return f"whole on each of {self.mesh.size} ranks"
        return f"grid {_grid(self)}"


@dataclass(frozen=True)
class FusedSpace:
    """An iteration space that runs in another one, which reads what it writes."""

    name: str
    label: str
    iterates: tuple[tuple[str, str], ...]
    """Each parameter with its range."""
    into: str
    """The space that took it in."""
    source: str


@dataclass(frozen=True)
class ContainerHome:
    """A container and the layout of its home."""

    data: str
    layout: Layout
    at_caller: bool
    """Whether the caller's array is the home."""
    dtype: np.dtype[Any]
    traffic: float = 0.0
    """Bytes that ranks receive because of it, and those that they copy, at half their weight."""
    over: tuple[tuple[Layout, float], ...] = ()
    """The layouts that it was chosen over, with their traffic."""
    store: str = ""
    """The container of the lowered SDFG that holds its tiles."""

    @property
    def nbytes(self) -> int:
        """Bytes of the largest tile that a rank holds."""
        return max(map(intervals.volume, self.layout.boxes)) * self.dtype.itemsize


@dataclass(frozen=True)
class PlannedMemlet:
    """A distributed memlet of the program, and the plan that carries it out."""

    data: str
    source: str
    solution: Solution
    source_tiles: Layout | None
    """Tiles of the storage that it moves from; None for the caller's array."""
    target_tiles: Layout | None
    """Tiles of the storage that it moves to."""
    times: int | None = 1
    """How often it moves in a run; None where that is not known before the run."""
    asked: tuple[int, ...] = ()
    """Dimensions in which only what data decide is fetched, of what the plan could bring."""
    inspection: str = ""
    """What the ranks compute to find that out."""
    foreseen_by: tuple[str, ...] | None = None
    """Symbols by which each rank foresees that for all ranks; None where they ask each other."""
    received: int | None = None
    """Bytes that all ranks together receive in a run, where that is foreseen."""
    stores: tuple[str, str] = ("", "")
    """The containers of the lowered SDFG that it moves from and to."""
    elements: float = 0.0
    """That a rank asks for each time at most, of what data decide."""

    @property
    def from_caller(self) -> bool:
        """Whether it moves from the caller's array."""
        return self.source_tiles is None

    @property
    def to_caller(self) -> bool:
        """Whether it moves to the caller's array."""
        return self.target_tiles is None

    @property
    def layouts(self) -> str:
        """Source and target layout."""
        return f" {self.arrow} ".join(self.ends)

    @property
    def ends(self) -> tuple[str, str]:
        """Source and target layout, each as text."""
        move = self.solution.plan.redistribution
        source = layout_text(move.source, self.from_caller)
        return source, layout_text(move.target, self.to_caller)

    @property
    def arrow(self) -> str:
        """Between the layouts: whether the target accumulates, or is filled in place."""
        move = self.solution.plan.redistribution
        return "+>" if move.accumulate else "=>" if move.in_place else "->"

    @property
    def found(self) -> str:
        """How its plan was found, or what it fetches."""
        if not self.asked:
            return self.solution.plan.solver
        return "resolved at run time" if self.foreseen_by is None else "foreseen by all ranks"

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive each time, or in a run."""
        if self.received is not None:
            return f"{self.received:,} in a run"
        return f"{'at most ' * bool(self.asked)}{self.solution.cost.nbytes:,}"

    @property
    def steps(self) -> str:
        """Calls of the plan."""
        if self.asked:
            return f"{'ask for, ' if self.foreseen_by is None else ''}fetch {self.inspection}"
        return " + ".join(str(step.kind) for step in self.solution.plan.steps)


RecordedMove: TypeAlias = PlannedMemlet | Exchange
"""Communication of a lowered program."""


@dataclass(frozen=True)
class Graphs:
    """The SDFGs of a lowering.

    Attributes:
        sdfg: the lowered one.
        original: the program as it was, which it is compared with.
    """

    sdfg: Any
    original: Any = None


@dataclass(frozen=True)
class Lowering:
    """The record of one lowering; prints as tables, and in Jupyter as a picture and tables.

    Attributes:
        spaces: all iteration spaces with their grids, in program order.
        homes: where each container lives.
        memlets: communication that is planned, in the order of the plans' numbers.
        fetches: communication of what data decide, resolved at run time, in the order of numbers.
        searched: why its schedule was found to be the best; empty where none was searched for.
        row_exchanges: all-to-alls of rows that data choose, in the order of numbers.
        on_lines: calls on lines that lie in parts, and writes at indices that do, in the order of
            numbers.
        matrices: functions of LAPACK on one matrix in parts, in the order of numbers behind those.
        pipelines: loops in order that ranks run one behind the other, numbered behind those.
        symbols: value of each symbol on the first ranks; it is 0 on all further ones.
        approximate: reads of which a dimension was taken whole, as sentences.
        remarks: what the schedule leaves idle or whole, as sentences.
        warned: those of them of which the caller was warned.
        places: name of the space of each map and library node of the SDFG, by the node's guid.
        tiles: layout of each tile, as text, by its container in the SDFG.
        call_form: how the caller passes arguments and gets results.
        written: containers that some space writes.
        machine: what messages and bytes were taken to cost.
        deterministic: whether results have the same bits on any number of ranks.
        argument_layouts: of each argument and result that the caller does not hold on rank 0.
        arguments: how the caller holds them, as :func:`distspmd.lower` is told.
        fused: iteration spaces that run in others, in program order.
        name: of the program.
        graphs: its SDFGs; None once the record has travelled to another process.
    """

    spaces: tuple[TiledSpace, ...]
    homes: tuple[ContainerHome, ...]
    memlets: tuple[PlannedMemlet, ...]
    fetches: tuple[PlannedMemlet, ...]
    symbols: dict[str, list[int]]
    approximate: tuple[str, ...]
    call_form: CallForm
    written: frozenset[str]
    machine: Machine = field(default_factory=Machine)
    deterministic: bool = False
    argument_layouts: Mapping[str, Layout] = field(default_factory=dict)
    arguments: Mapping[str, Holding] = field(default_factory=dict)
    fused: tuple[FusedSpace, ...] = ()
    remarks: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    row_exchanges: tuple[RowExchange, ...] = ()
    on_lines: tuple[LineExchange, ...] = ()
    matrices: tuple[MatrixExchange, ...] = ()
    pipelines: tuple[Pipeline, ...] = ()
    searched: str = ""
    places: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    tiles: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    name: str = ""
    graphs: Any = field(default=None, repr=False, compare=False)
    is_lowering: ClassVar = True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "graphs": None}

    def __deepcopy__(self, memo: Any) -> Lowering:
        return replace(self, graphs=None)  # nothing else in it changes

    @property
    def sdfg(self) -> Any:
        """The lowered SDFG; None once the record has travelled to another process."""
        return self.graphs and self.graphs.sdfg

    @property
    def original(self) -> Any:
        """The SDFG as it was before, if it is known."""
        return self.graphs and self.graphs.original

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that a process needs to compile and check it; :func:`distspmd.load` reads it.

        Raises:
            SavedError: the file cannot be written, or the program has code of somebody else in it.
        """
        distspmd.saved.save(self, path)

    @property
    def ranks(self) -> int:
        """Ranks that the program needs at least."""
        held = (layout.ranks for layout in self.argument_layouts.values())
        return max([1, *(space.mesh.size for space in self.spaces), *held])

    @property
    def talks(self) -> tuple[Exchange, ...]:
        """Library calls in which ranks talk, by the numbers of their nodes."""
        return (*self.on_lines, *self.matrices, *self.pipelines)

    @property
    def within_nodes(self) -> tuple[Exchange, ...]:
        """What nodes move themselves."""
        return (*self.row_exchanges, *(talk for talk in self.talks if talk.is_split))

    @property
    def schedule(self) -> Schedule:
        """Where each space of the program runs, named or not: a schedule that names them all.

        It says how arguments are held, too.
        """
        return Schedule(
            {
                space.name: OnMesh(space.mesh, space.asked)
                for space in self.spaces
                if space.origin is SpaceOrigin.PROGRAM and space.asked is not None
            },
            arguments=self.arguments,
        )

    @property
    def asked(self) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], tuple[str, ...], bool]:
        """What a user has asked of it: grids, what the caller holds, whether sums keep an order."""
        spaces = [space for space in self.spaces if space.chosen_by.reason is Reason.SCHEDULE]
        grids = tuple((space.name, space.parts) for space in spaces)
        return grids, tuple(sorted(self.argument_layouts)), self.deterministic

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the record says beside its tables."""
        return (*self.approximate, *self.remarks)

    @property
    def shares(self) -> dict[str, float]:
        """The part of the predicted work of all ranks that each space is, by its name."""
        work = {s.name: math.prod(s.parts) * s.work.seconds(self.machine) for s in self.spaces}
        total = sum(work.values())
        return {name: own / total if total else 1 / len(work) for name, own in work.items()}

    @property
    def whole(self) -> float:
        """The part of the predicted work that no ranks share."""
        shares = self.shares
        return min(1.0, sum(shares[s.name] for s in self.spaces if math.prod(s.parts) == 1))

    @property
    def opening(self) -> str:
        """How much of the work is split, and which lines stay whole, with the reason."""
        if self.ranks == 1:
            why = self.searched or "nothing asks for more"
            return f"No work is split: one rank runs all of it, because {why}."
        said = f"{1 - self.whole:.0%} of the predicted work is split over {self.ranks:,} ranks."
        shares = self.shares
        whole = [
            space
            for space in sorted(self.spaces, key=lambda space: -shares[space.name])
            if math.prod(space.parts) == 1 and shares[space.name] >= _WORTH_TELLING
        ]
        told = [f"{shares[s.name]:.0%} {s.source or s.name} ({self._why_whole(s)})" for s in whole]
        return f"{said} Whole: {'; '.join(told)}." if told else said

    def _why_whole(self, space: TiledSpace) -> str:
        is_found = self.searched and space.chosen_by.reason is Reason.SCHEDULE
        return "to split it would take longer" if is_found and space.can_split else space.why_whole

    def idle_sentence(self, name: str, ranks: int) -> str:
        """What a program leaves idle or whole of so many ranks; empty where that is little.

        Args:
            name: of the program.
            ranks: that there are.
        """
        if ranks == 1 or (self.ranks >= ranks and self.whole < _MUCH):
            return ""
        asked = any(space.chosen_by.reason is Reason.SCHEDULE for space in self.spaces)
        why = self.searched or "its schedule splits no more"
        if not asked:
            why = "nothing asks for more: name a schedule or, of PyTorch, a preset such as "
            why += f"data_parallel({ranks}), or let lower(..., ranks={ranks}) search for one"
        if self.ranks < ranks:
            idle = f"{ranks - self.ranks:,} of {ranks:,} ranks are idle"
            return f"{name}: {idle}, and {self.whole:.0%} of the work stays whole: {why}."
        return f"{name}: {self.whole:.0%} of the work stays whole on {ranks:,} ranks: {why}."

    def symbol_values(self, rank: int) -> dict[str, int]:
        """Value of each symbol on a rank."""
        return {
            name: values[rank] if rank < len(values) else 0 for name, values in self.symbols.items()
        }

    def uniform_symbols(self, ranks: int) -> dict[str, int]:
        """Symbols that have one value on all of that many ranks."""
        return {
            name: values[0]
            for name, values in self.symbols.items()
            if ranks <= len(values) and len(set(values[:ranks])) == 1
        }

    def _tables(self) -> list[Table]:
        homes = [(home.data, str(home.layout), _mesh(home.layout.mesh)) for home in self.homes]
        moves = [
            (
                memlet.data,
                memlet.layouts,
                memlet.found,
                memlet.steps,
                memlet.bytes_text,
                memlet.source,
            )
            for memlet in self.memlets + self.fetches + self.within_nodes
        ]
        calls = ("array", "from -> to", "solver", "calls", "bytes received", "source")
        return [
            *(table for origin in SpaceOrigin if (table := self._space_table(origin)).rows),
            Table("Homes of the arrays", ("array", "lives in", "on"), tuple(homes)),
            Table("Communication", calls, tuple(moves)),
        ]

    def _space_table(self, origin: SpaceOrigin) -> Table:
        """The spaces of one origin; a fused one stands before the one that it runs in."""
        rows, shares = [], self.shares
        for space in self.spaces:
            if space.origin is not origin:
                continue
            rows += [
                (fused.name, _ranges(fused), "", "", f"fused into {fused.into}", fused.source)
                for fused in self.fused
                if fused.into == space.name
            ]
            weight, why = f"{shares[space.name]:.0%}", str(space.chosen_by)
            rows.append((space.name, _ranges(space), _grid(space), weight, why, space.source))
        head = ("name", "runs", "grid", "of the work", "chosen by", "source")
        return Table(origin.value, head, tuple(rows))

    def __str__(self) -> str:
        return "\n".join([self.opening, "", as_text(self._tables()), *self.sentences])

    def _repr_html_(self) -> str:
        picture = self.sdfg._repr_html_() if self.sdfg is not None else ""
        notes = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences)
        opening = f"<p>{html.escape(self.opening)}</p>"
        return f"{picture}{opening}{as_html(self._tables())}{notes}"


def lowering_of(lowered: Any) -> Any:
    """The lowering that something is, or that an SDFG carries; None if it is not lowered.

    Raises:
        SavedError: an SDFG was lowered by another version.
    """
    if getattr(lowered, "is_lowering", False):
        return lowered
    if (found := getattr(lowered, ATTRIBUTE, None)) is not None:
        return found
    code = getattr(lowered, "global_code", None)
    if isinstance(code, dict) and RECORD in code:
        return distspmd.saved.carried_record(lowered)
    return None


def layout_text(layout: Layout, at_caller: bool) -> str:
    """A layout as text; the caller's own says so."""
    where = "root" if layout.mesh.size == 1 else "caller's"
    return f"{where} {layout}" if at_caller else str(layout)


def _mesh(mesh: Mesh) -> str:
    return str(mesh) or "rank 0"


def _ranges(space: TiledSpace | FusedSpace) -> str:
    return ", ".join(f"{parameter}={extent}" for parameter, extent in space.iterates)


def _grid(space: TiledSpace) -> str:
    """Parts along each parameter."""
    return "(" + ", ".join(map(str, space.parts)) + ("," if len(space.parts) == 1 else "") + ")"
