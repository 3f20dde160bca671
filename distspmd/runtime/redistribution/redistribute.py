"""Redistribution of NumPy arrays on the ranks of a communicator.

The first call of a redistribution makes its plan, communicators and staging buffers, which are kept
with the communicator; a further call with the same layouts only moves data.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from distspmd.errors import ArgumentError, DistSPMDError, NoSolver, PlanError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.reductions import find_reduction
from distspmd.layouts.types import find_dtype
from distspmd.planning.block_cyclic import plan_block_cyclic
from distspmd.planning.planner import fault_of_options
from distspmd.planning.planner import plan as make_plan
from distspmd.plans.encoding import Storage
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.solver import Solver
from distspmd.runtime.engine import arrays
from distspmd.runtime.engine.engine import Engine, runnable
from distspmd.runtime.engine.ufuncs import addresses_of_ufuncs
from distspmd.runtime.launch.driver_ranks import Driven
from distspmd.runtime.redistribution.kept_engines import Known
from distspmd.runtime.redistribution.ready_calls import UNKNOWN, Asked, Ready, pointers_of
from distspmd.runtime.watch.agreement import REDISTRIBUTION, Agreement, Call

if TYPE_CHECKING:  # tiles of the host need nothing of it
    from distspmd.runtime.devices.kinds import Device

Tile = NDArray[Any]


def redistribute(
    comm: Any,
    tile: Tile | None,
    source: Layout,
    target: Layout,
    *,
    out: Tile | None = None,
    dtype: np.dtype[Any] | str | None = None,
    solver: str | Solver | None = None,
    max_memory: int | None = None,
    machine: Machine | None = None,
) -> Tile | None:
    """Bring an array from one layout to another; all ranks of the communicator call it together.

    Args:
        comm: an mpi4py communicator with a rank for each rank of both layouts; or ranks that this
            process drives: it passes and gets whole arrays and handles (docs/driver.md).
        tile: this rank's tile of the source, contiguous or not; None where it holds nothing. It may
            lie in the memory of a device (docs/gpu.md), and so may ``out``.
        source: which box of the array each rank holds.
        target: which box it wants.
        out: where to put the tile of the target; elements that no source tile has stay as they are.
        dtype: of the array; for ranks that have neither a tile nor ``out``. Also by names of
            ml_dtypes, such as ``"bfloat16"``.
        solver: see :func:`distspmd.plan`; so is ``max_memory``.
        machine: what messages and bytes cost; as measured on rank 0's host where left out.

    Returns:
        ``out``, or a new tile of the shape of this rank's target box (zeros where nothing arrives;
        the neutral element of the reduction where the target is partial),
        of the kind of ``tile``; None where the rank wants nothing.

    Raises:
        ArgumentError: on all ranks: a tile is missing or of another shape or type than its box.
        DisagreementError: on all ranks: they ask for different things, or one of them has ended.
        NoSolver: no plan fits.
    """
    options = (dtype, solver, max_memory, machine)
    if isinstance(comm, Driven):
        brought: Tile | None = comm.redistribute(tile, source, target, out, options)
        return brought
    known = known_of(comm)
    if not (_is_of_host(tile) and _is_of_host(out)):
        from distspmd.runtime.devices.tiles import DeviceTiles

        lent = DeviceTiles.of(known.agreement.rank, tile, source, target, out)
        made = _redistribute(known, lent.tile, source, target, lent.out, options, lent.device)
        found: Tile | None = made if lent.result is None else lent.result
        return found
    return _redistribute(known, tile, source, target, out, options)


def _is_of_host(tile: Any) -> bool:
    """Whether something can only be an array of the host, or none."""
    return tile is None or isinstance(tile, np.ndarray)


def _redistribute(
    known: Known,
    tile: Tile | None,
    source: Layout,
    target: Layout,
    out: Tile | None,
    options: tuple[Any, Any, Any, Any],
    device: Device | None = None,
) -> Tile | None:
    """The same with tiles as plans see them, of which some may lie in the memory of a device."""
    dtype, solver, max_memory, machine = options
    agreement = known.agreement
    look = known.look
    pointers: tuple[int | None, ...] = ()
    try:
        kind = device.kind if device else ""
        asked = (source, target, dtype, solver, max_memory, machine, look(tile), look(out), kind)
        ready = known.ready.get(asked, UNKNOWN)
    except TypeError:  # a type that is a list, or what is wrong, as all ranks will hear
        asked, ready = None, UNKNOWN
    if ready.offsets is not None:
        pointers = pointers_of((tile, out), ready.offsets)
        if not ready.takes(*pointers):
            ready = UNKNOWN
    outer = agreement.enter(ready.call or Asked(source, target))
    try:
        tag = REDISTRIBUTION + 1 + ready.serial
        is_met = ready.offsets is not None
        if is_met and agreement.meet(tag) == tag:
            if ready.neutral is not None and out is not None and device is None:
                out[...] = ready.neutral
            known.run(ready.serial, pointers, (tile, out))
            return out
        # A rank that knew an engine has just heard that others do not.
        move, problem = _checked(
            known, tile, source, target, out, dtype, (solver, max_memory, machine)
        )
        serial = -1 if is_met else agreement.meet(tag, problem) - REDISTRIBUTION - 1
        assert move is not None
        if serial < 0:
            serial = _engine_of(known, move, solver, max_memory, machine, device)
        engine = known.engines[serial]
        pointers = engine.pointers(0, move.tiles)
        if asked is not None:
            known.ready[asked] = move.ready(serial, pointers)
        move.fill(device)
        known.run(serial, pointers, move.tiles)
        return move.tiles[1]
    finally:
        agreement.leave(outer)


def _checked(known: Known, *call: Any) -> tuple[_Move | None, ArgumentError | None]:
    """A call with its tiles, and what is wrong with it; it is one of both."""
    try:
        move = _Move(known, *call)
        return move, move.problem()
    except Exception as error:  # all ranks must learn of it, whatever it is
        problem = ArgumentError(
            f"redistribute: the arguments cannot be used: {type(error).__name__}: {error}"
        )
        problem.__cause__ = error
        return None, problem


def _engine_of(
    known: Known,
    move: _Move,
    solver: str | Solver | None,
    max_memory: int | None,
    machine: Machine | None,
    device: Device | None,
) -> int:
    """The number of the engine for what all ranks ask for, which is made if it is new.

    Raises:
        DisagreementError: the ranks ask for different things.
        NoSolver: no plan fits.
    """
    agreement = known.agreement
    options = {"solver": _name(solver), "max_memory": max_memory, "machine": machine}
    shared = (*move.layouts, move.dtype, *options.values())
    named = [f"{name}={value}" for name, value in options.items() if value is not None]
    what = ", ".join([f"{move.layouts[0]} -> {move.layouts[1]}", f"dtype={move.dtype}", *named])
    agreement.compare(shared, f"redistribute({what})", "ask for different redistributions")
    memory = device.kind if device else "host" if any(t is not None for t in move.tiles) else ""
    mine = (move.strides(), *map(known.place, move.tiles), memory)
    told = agreement.allgather(mine)
    found = known.find((shared, solver, tuple(told)))
    if agreement.meet(REDISTRIBUTION + 1 + found) > REDISTRIBUTION:
        return found
    model = machine or known.machine
    name = f"the redistribution {move.layouts[0]} -> {move.layouts[1]}"
    chosen: tuple[Plan, tuple[Storage, Storage]] | None = None
    error: Exception | None = None
    try:
        chosen = move.planned(solver, max_memory, model)
    except DistSPMDError as problem:
        error = problem
    except Exception as problem:
        error = PlanError(f"{name} cannot be planned: {type(problem).__name__}: {problem}")
        error.__cause__ = problem
    agreement.check(error)
    assert chosen is not None
    plan = runnable(chosen[0])
    comm = agreement.comm
    engine = Engine(comm, [(name, plan, chosen[1])], functions=addresses_of_ufuncs(plan))
    if agreement.ranks > 1:
        engine.share(known.shared_node(), [move.tiles], model)
    serial = known.add(engine)
    memories = {memory for *_, memory in told if memory}
    if memories - {"host"}:
        from distspmd.runtime.devices.tiles import transport_between

        known.transports[serial] = transport_between(device, engine, agreement, memories)
    return serial


def _name(solver: str | Solver | None) -> str | None:
    """The name of a solver."""
    return solver if solver is None or isinstance(solver, str) else solver.name


def allocate(comm: Any, shape: Sequence[int] | int, dtype: DTypeLike = float) -> Tile:
    """An array of zeros that the other ranks of the node see; all ranks call it together.

    A redistribution out of such tiles is one copy on each rank, without messages. Shapes may differ
    between ranks. The memory is kept with the communicator, and used again when the arrays that it
    was lent to are gone on all ranks, or given back with the communicator. Where shared memory has
    no room, it is memory of the rank alone.
    """
    known: Any = comm if isinstance(comm, Driven) else known_of(comm, _ALLOCATES)
    agreement: Agreement = known.agreement
    wanted: tuple[tuple[int, ...], np.dtype[Any]] | None = None
    error: Exception | None = None
    try:
        held = (shape,) if isinstance(shape, int) else tuple(shape)
        wanted = (tuple(operator.index(extent) for extent in held), find_dtype(dtype))
    except (TypeError, ValueError) as problem:
        error = ArgumentError(
            f"allocate: {shape!r} and {dtype!r} are no shape and type of an array: {problem}."
        )
    with agreement.calling(_ALLOCATES):
        agreement.check(error)
        assert wanted is not None
        found: Tile = known.shared_node().allocate(*wanted)
        return found


_ALLOCATES, _REDISTRIBUTES = Call.of("allocate(...)"), Call.of("redistribute(...)")


def known_of(comm: Any, call: Call = _REDISTRIBUTES) -> Known:
    """What a communicator keeps; it is made at the first call, which is given."""
    agreement = Agreement.of(comm, call)
    known: Known | None = agreement.kept
    if known is None:
        with agreement.calling(call):
            agreement.check()
            known = agreement.kept = Known(agreement)
    return known


class _Move:
    """One call: its tiles, checked against the layouts."""

    def __init__(
        self,
        known: Known,
        tile: Any,
        source: Layout,
        target: Layout,
        out: Any,
        dtype: np.dtype[Any] | str | None,
        options: tuple[Any, Any, Any],
    ) -> None:
        self.rank, self.ranks = known.agreement.rank, known.agreement.ranks
        self.layouts = (source, target)
        self.given = (tile, out)
        self.dtype, self.fault = arrays.type_of(dtype, (tile, out), self.rank)
        self.fault = self.fault or self._find_problem() or fault_of_options(*options)
        self.tiles: tuple[Tile | None, Tile | None] = (tile, out)
        if not self.fault:
            self.block_cyclic = source.is_block_cyclic or target.is_block_cyclic
            self.tiles = (arrays.aligned(tile), self._target(out))
            if self._is_overwritten():
                self.tiles = (tile.copy(), out)

    def problem(self) -> ArgumentError | None:
        """What is wrong with the arguments of this rank, if anything."""
        return ArgumentError(self.fault) if self.fault else None

    def _find_problem(self) -> str:
        given: tuple[Any, Any] = self.layouts
        for layout in given:
            if not isinstance(layout, Layout):
                kind = type(layout).__name__
                return f"{layout!r} is a {kind}; a layout is a distspmd.layouts.Layout."
        needed = max(layout.ranks for layout in self.layouts)
        if needed > self.ranks:
            return f"the layouts have {needed} ranks, but the communicator has {self.ranks}."
        reduced = any(layout.partial is not None for layout in self.layouts)
        fault = arrays.fault_of_type(self.dtype, reduced)
        return fault or self._find_problem_of_tiles()

    def _find_problem_of_tiles(self) -> str:
        for side, (layout, tile) in enumerate(zip(self.layouts, self.given, strict=True)):
            shape = layout.shape(self.rank)
            what = f"the {('source', 'target')[side]} tile of rank {self.rank}"
            if tile is None:
                if side == 0 and 0 not in shape:
                    return f"{what} is missing; {layout} gives it {self._held(layout)}."
            elif not arrays.is_plain(tile):
                return f"{what} is a {type(tile).__name__}; pass a NumPy array without a mask."
            elif 0 not in shape and tile.shape != shape:
                return (
                    f"{what} has the shape {tile.shape}, but {layout} gives it "
                    f"{self._held(layout)}, {shape}."
                )
            elif tile.dtype != self.dtype:
                return f"{what} has the type {tile.dtype}, but the array {self.dtype}."
            elif side == 1 and not (tile.flags.writeable and arrays.aligned(tile) is tile):
                return f"{what} cannot be written in place; pass a contiguous array as out."
            elif side == 1 and arrays.overlaps_itself(tile):
                return f"{what} has elements in one place; pass a contiguous array as out."
        return ""

    def _is_overwritten(self) -> bool:
        """Whether elements of the source may be lost before they are sent.

        They are not where each element of the array has one place in both tiles.
        """
        tile, out = self.tiles
        if tile is None or out is None or not np.may_share_memory(tile, out):
            return False
        if self.block_cyclic or any(layout.partial for layout in self.layouts):
            return True
        places = []
        for side, own in enumerate((tile, out)):
            strides = self._element_strides(side)
            at = sum(
                lo * stride
                for (lo, _), stride in zip(self.layouts[side].box(self.rank), strides, strict=True)
            )
            places.append((own.ctypes.data - at * own.itemsize, strides))
        return places[0] != places[1]

    def _held(self, layout: Layout) -> str:
        """What a layout gives this rank."""
        if layout.is_block_cyclic:
            return "block-cyclic blocks"
        return f"[{intervals.box_text(layout.box(self.rank))}]"

    def _target(self, out: Tile | None) -> Tile | None:
        shape = self.layouts[1].shape(self.rank)
        return out if out is not None or 0 in shape else np.zeros(shape, self.dtype)

    @property
    def neutral(self) -> Any:
        """What a partial target holds where no operand arrives; None for any other."""
        partial = self.layouts[1].partial
        return partial and find_reduction(partial.reduction).identity(self.dtype)

    def fill(self, device: Device | None) -> None:
        """Fill a partial target; tiles of devices are made so."""
        if self.layouts[1].partial and self.tiles[1] is not None and device is None:
            self.tiles[1][...] = self.neutral

    def planned(
        self, solver: str | Solver | None, max_memory: int | None, machine: Machine
    ) -> tuple[Plan, tuple[Storage, Storage]]:
        """The plan, and this rank's storage of its tiles.

        Raises:
            NoSolver: no plan fits.
        """
        source, target = self.layouts
        if not self.block_cyclic:
            chosen = make_plan(source, target, self.dtype, solver, max_memory, machine)
            return chosen, (self._storage(0), self._storage(1))
        if solver not in (None, "exchange") or max_memory is not None:
            raise NoSolver(
                f"{source} -> {target}: block-cyclic layouts are exchanged, without a bound on "
                "memory. Leave out solver and max_memory."
            )
        exchange = plan_block_cyclic(source, target, self.dtype)
        strides = [self._element_strides(side) for side in (0, 1)]
        storages = (
            exchange.storage(0, self.rank, strides[0]),
            exchange.storage(1, self.rank, strides[1]),
        )
        return exchange.merged, storages

    def _element_strides(self, side: int) -> tuple[int, ...]:
        tile = self.tiles[side]
        return () if tile is None else arrays.element_strides(tile)

    def _storage(self, side: int) -> Storage:
        """Where the tile of a side lies in memory."""
        box, tile = self.layouts[side].box(self.rank), self.tiles[side]
        if tile is None or intervals.is_empty(box):
            return Storage.of(box)
        return Storage(tuple(lo for lo, _ in box), self._element_strides(side))

    def ready(self, serial: int, pointers: Sequence[int | None]) -> Ready:
        """What to know of the call for the next one like it."""
        offsets = self._offsets(pointers)
        source, target = pointers
        call = Asked(*self.layouts)
        if offsets is None or source is None or target is None:
            return Ready(serial, offsets, call=call, neutral=self.neutral)
        assert offsets[0] is not None
        assert offsets[1] is not None
        between = offsets[0] - offsets[1]
        before, behind = (arrays.span(tile) for tile in self.tiles)
        apart = between - behind, between + before
        made = Ready(serial, offsets, apart, call=call, neutral=self.neutral)
        return made if made.takes(source, target) else replace(made, distance=target - source)

    def _offsets(self, pointers: Sequence[int | None]) -> tuple[int | None, ...] | None:
        """From the pointers of an engine to the tiles, if these are the caller's own."""
        if self.block_cyclic or any(
            one is not two for one, two in zip(self.tiles, self.given, strict=True)
        ):
            return None
        return tuple(
            None if tile is None or pointer is None else tile.ctypes.data - pointer
            for tile, pointer in zip(self.tiles, pointers, strict=True)
        )

    def strides(self) -> tuple[tuple[int, ...] | None, ...]:
        """Strides of both tiles, for which an engine is made."""
        return tuple(None if tile is None else tile.strides for tile in self.tiles)
