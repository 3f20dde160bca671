"""The compiler: the passes in order."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dace import SDFG, SDFGState, data
from dace.sdfg import nodes

from distspmd.analysis.constraints import Use
from distspmd.analysis.iteration_spaces import IterationSpace, IterationSpaces, spaces_of
from distspmd.analysis.loop_hulls import settled
from distspmd.analysis.tiling import Tiling
from distspmd.dace_compat.settings import placed_by_us
from distspmd.errors import NoSolver, ScheduleError, UnsupportedProgram
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import ATTRIBUTE, Dwelling, Lowering, PlannedMemlet, TiledSpace
from distspmd.nodes.distributed_memlet import CONTEXT, DistributedMemlet
from distspmd.passes.align_maps import align
from distspmd.passes.distribute import Distributor, Movement
from distspmd.passes.fuse_maps import fuse as fuse_maps
from distspmd.passes.normalize.control_flow import is_control_value
from distspmd.passes.normalize.pipeline import prepare
from distspmd.passes.sequential_reductions import reduce_in_order
from distspmd.passes.sum_operands import add_operands
from distspmd.passes.tiles import Symbols
from distspmd.placement.argument_layouts import DISTRIBUTED, ROOT, check_arguments, held_by_caller
from distspmd.placement.homes import Home, choose, moves
from distspmd.placement.propagation import Tiled, propagate
from distspmd.placement.schedule import Schedule, resolve
from distspmd.planning.select import Solution, solve
from distspmd.plans.machine import Machine
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Solver
from distspmd.solvers import SOLVERS
from distspmd.solvers.exchange import Exchange


@placed_by_us()
def iteration_spaces(sdfg: SDFG) -> IterationSpaces:
    """What a schedule can name: the iteration spaces of an SDFG, which stays as it is.

    They are in program order, also inside loops and nested SDFGs. Copies and single operations are
    spaces too; a library node has the space of the main map of its pure expansion. Of a program
    that cannot be lowered they are the maps and library nodes that it has.

    Raises:
        ScheduleError: the SDFG is lowered.
        UnsupportedProgram: a library node without a pure expansion.
    """
    _check_not_lowered(sdfg)
    twin = copy.deepcopy(sdfg)
    pairs = zip(_nodes(twin), _nodes(sdfg), strict=True)
    originals = {id(copied): original for (copied, _), original in pairs}
    try:
        prepare(twin)
    except UnsupportedProgram:
        return spaces_of(sdfg)
    found = []
    for space in spaces_of(twin):
        if is_control_value(space.node):
            continue
        node, state = originals.get(id(space.node), (space.node, space.state))
        found.append(replace(space, node=node, state=state))
    return IterationSpaces(found)


def _nodes(sdfg: SDFG) -> list[tuple[Any, SDFGState]]:
    return [(n, s) for n, s in sdfg.all_nodes_recursive() if isinstance(s, SDFGState)]


@placed_by_us()
def lower(
    sdfg: SDFG,
    schedule: Schedule,
    *,
    arguments: Mapping[str, str] | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
) -> Lowering:
    """Turn an SDFG into one that each rank of a communicator runs, in place.

    Args:
        sdfg: a program; of one with symbolic sizes see docs/sizes.md.
        schedule: name (or unique label, or DaCe node) of an iteration space -> parts along each of
            its parameters, as a tuple or by name. Spaces that it does not name follow their
            neighbours; the returned record says how.
        arguments: where the caller holds an argument or a result (``"__return"``): ``"root"``, all
            of it on rank 0 (default); ``"replicated"``, all of it on every rank of the grids; or
            ``"distributed"``, on each rank its tile of ``program.layout(name)``.
        solvers: asked for plans in this order (default: all).
        machine: decides between plans; as measured on this host where left out.
        deterministic: whether results shall have the same bits on any number of ranks, with the
            same grids: operands are combined in the order of the coordinates, and loops that reduce
            run in order.
        fuse: whether maps that pass temporaries on become one. Spaces that the schedule names take
            others in, and are not taken.

    Returns:
        The record of all decisions; the SDFG carries it too.

    Raises:
        ScheduleError: the schedule or the arguments do not fit, or the SDFG is lowered already.
        UnsupportedProgram: something that cannot be partitioned; the message names the source line.
        NoSolver: the given solvers have no plan for a redistribution.
    """
    _check_not_lowered(sdfg)
    machine, arguments = machine or Machine.measured(), arguments or {}
    visible = [name for name, container in sdfg.arrays.items() if not container.transient]
    check_arguments(sdfg.name, visible, arguments)
    prepare(sdfg)
    _check_sizes(sdfg)
    spaces, tilings = _tilings(sdfg, schedule, fuse)
    tiled = propagate(spaces, {**tilings, **_on_all_ranks(spaces, tilings)})
    ranks = max((space.tiling.mesh.size for space in tiled.values()), default=1)

    def home(data: str, uses: Sequence[Use]) -> Home:
        return _home(sdfg, data, uses, arguments.get(data, ROOT), ranks)

    spaces, tiled = add_operands(sdfg, spaces, tiled, lambda *of: home(*of).traffic)
    homes = {data: home(data, uses) for data, uses in _by_data(tiled).items()}
    solutions = _solve_all(sdfg, homes, solvers or SOLVERS, machine, deterministic)
    dtypes = {name: _dtype(sdfg, name) for name in homes}
    scalars = frozenset(
        name for name, container in sdfg.arrays.items() if isinstance(container, data.Scalar)
    )
    symbols = Symbols(sdfg)
    for space in spaces:
        if isinstance(space.node, nodes.MapEntry):
            symbols.tile_map(space.name, tiled[space.name].tiling, space.node)
    distributor = Distributor(sdfg, homes, symbols)
    distributor.run()
    memlets = tuple(_planned(move, solutions) for move in distributor.movements)
    fetches = tuple(_fetched(move, machine) for move in distributor.fetches)
    lowering = Lowering(
        spaces=tuple(_record(space, tiled[space.name]) for space in spaces),
        homes=tuple(_dwelling(home, dtypes[home.data]) for home in homes.values()),
        memlets=memlets,
        fetches=fetches,
        symbols=symbols.values,
        approximate=tuple(_approximations(tiled, distributor.fetches)),
        scalars=scalars,
        written=frozenset(home.data for home in homes.values() if home.is_written),
        machine=machine,
        deterministic=deterministic,
        held=_held(homes, arguments),
    )
    if deterministic:
        reduce_in_order(sdfg)
    setattr(sdfg, ATTRIBUTE, lowering)
    sdfg.validate()
    return lowering


def _dwelling(home: Home, dtype: np.dtype) -> Dwelling:
    return Dwelling(home.data, home.layout, home.at_caller, dtype, home.traffic, home.over)


def _held(homes: Mapping[str, Home], arguments: Mapping[str, str]) -> dict[str, Layout]:
    """Layouts of what the caller does not hold on rank 0."""
    return {
        name: home.caller
        for name, home in homes.items()
        if home.caller is not None and arguments.get(name, ROOT) != ROOT
    }


def _tilings(
    sdfg: SDFG, schedule: Schedule, fuse: bool
) -> tuple[list[IterationSpace], dict[str, Tiling]]:
    """The spaces that are tiled, and the tilings of those that the schedule names."""
    spaces: Sequence[IterationSpace] = spaces_of(sdfg)
    named = IterationSpaces([s for s in spaces if not is_control_value(s.node)])
    grids = resolve(schedule, named)
    if fuse:
        spaces = fuse_maps(sdfg, spaces, grids)
    align(sdfg)
    spaces = [settled(space) for space in spaces]
    _check_ranges(spaces)
    tilings = {
        space.name: Tiling.on_grid(space.parameters, space.ranges, grids[space.name])
        for space in spaces
        if space.name in grids
    }
    return spaces, tilings


def _on_all_ranks(
    spaces: Sequence[IterationSpace], tilings: Mapping[str, Tiling]
) -> dict[str, Tiling]:
    """Tilings of the values that control flow reads: all ranks that run anything have them."""
    ranks = max((tiling.mesh.size for tiling in tilings.values()), default=1)
    return {
        space.name: Tiling.of(space.ranges, Mesh(ranks=ranks), [()] * len(space.ranges))
        for space in spaces
        if is_control_value(space.node)
    }


def _check_not_lowered(sdfg: SDFG) -> None:
    if not isinstance(sdfg, SDFG):
        raise UnsupportedProgram(
            f"an SDFG is needed, but {type(sdfg).__name__} was given. Of a @dace.program, pass "
            "program.to_sdfg()."
        )
    if CONTEXT in sdfg.arrays:
        raise ScheduleError(
            f"{sdfg.name!r} is lowered already. Parse the program again, or keep a copy with "
            "copy.deepcopy(sdfg) before the first lower, to try another schedule."
        )


_OF_SCALAR = "__sym_"
"""How DaCe begins the symbols of scalars that bound slices."""


def _check_sizes(sdfg: SDFG) -> None:
    sizes = sorted({str(s) for container in sdfg.arrays.values() for s in container.free_symbols})
    named = (size.removeprefix(_OF_SCALAR) for size in sizes if size.startswith(_OF_SCALAR))
    taken = [name for name in named if name in sdfg.arglist()]
    if taken:
        raise UnsupportedProgram(
            f"{sdfg.name!r} has slices up to the scalar {taken[0]!r}, and plans are made "
            f"before it is known. Make it a symbol, {taken[0]} = dace.symbol({taken[0]!r}), and "
            "leave the argument out: then there is a plan for each of its values."
        )
    if sizes:
        raise UnsupportedProgram(
            f"{sdfg.name!r} has the symbolic sizes {', '.join(sizes)}, and plans are made for "
            f"numbers. Give them: sizes={{{sizes[0]!r}: 1024}}, or --size {sizes[0]}=1024."
        )


def _check_ranges(spaces: Sequence[IterationSpace]) -> None:
    for space in spaces:
        for parameter, extent in zip(space.parameters, space.ranges, strict=True):
            if not all(end.is_Integer for end in (extent.begin, extent.end, extent.step)):
                raise UnsupportedProgram(
                    f"{space.where}: the space {space.name!r} runs over {parameter}={extent}, "
                    "which is not known before the run, and cannot be partitioned yet. Give the "
                    "range as numbers, with a condition inside if need be."
                )


def _by_data(tiled: Mapping[str, Tiled]) -> dict[str, list[Use]]:
    """Uses of each container, in program order."""
    found: dict[str, list[Use]] = {}
    for use in (use for space in tiled.values() for use in space.uses):
        found.setdefault(use.data, []).append(use)
    return found


def _home(sdfg: SDFG, name: str, uses: Sequence[Use], kind: str, ranks: int) -> Home:
    """The home of a container that the caller holds in one way or another."""
    held = held_by_caller(kind, uses[0].layout.extents, ranks)
    return choose(
        name,
        _dtype(sdfg, name),
        uses,
        caller=None if sdfg.arrays[name].transient else held,
        distributed=kind == DISTRIBUTED,
        result=name.startswith("__return"),
    )


def _dtype(sdfg: SDFG, name: str) -> np.dtype:
    dtype: np.dtype = np.dtype(sdfg.arrays[name].dtype.as_numpy_dtype())
    return dtype


def _solve_all(
    sdfg: SDFG,
    homes: Mapping[str, Home],
    solvers: Sequence[Solver],
    machine: Machine,
    in_order: bool,
) -> dict[Redistribution, Solution]:
    """Plan all that the homes make necessary, before the SDFG is touched."""
    solutions: dict[Redistribution, Solution] = {}
    for name, home in homes.items():
        for _, move in moves(home, _dtype(sdfg, name)):
            if move in solutions:
                continue
            try:
                solutions[move] = solve(move, solvers, machine, in_order=in_order)
            except NoSolver as error:
                where = home.uses[0].space.where
                raise NoSolver(f"{where}: {name!r}: {error}") from None
    return solutions


def _planned(movement: Movement, solutions: Mapping[Redistribution, Solution]) -> PlannedMemlet:
    planned = PlannedMemlet(
        movement.data,
        str(movement.source or ""),
        solutions[movement.redistribution],
        movement.source_tiles,
        movement.target_tiles,
        movement.times,
    )
    node, plan = movement.node, planned.solution.plan
    if isinstance(node, DistributedMemlet):
        node.solver, node.steps = plan.solver, planned.steps
        node.received_bytes = planned.solution.cost.nbytes
        node.seconds = planned.solution.cost.seconds
    return planned


def _fetched(movement: Movement, machine: Machine | None) -> PlannedMemlet:
    """The exchange of all that could be fetched: who asks whom is planned, for what is not."""
    assert movement.inspection is not None
    return PlannedMemlet(
        movement.data,
        str(movement.source or ""),
        solve(movement.redistribution, [Exchange()], machine),
        movement.source_tiles,
        movement.target_tiles,
        movement.times,
        movement.inspection.dimensions,
        str(movement.inspection),
    )


def _record(space: IterationSpace, tiled: Tiled) -> TiledSpace:
    iterates = tuple((p, str(r)) for p, r in zip(space.parameters, space.ranges, strict=True))
    return TiledSpace(
        space.name,
        space.label,
        iterates,
        tiled.tiling.mesh,
        tiled.tiling.parts,
        tiled.chosen_by,
        str(space.source or ""),
    )


def _approximations(spaces: Mapping[str, Tiled], fetches: Sequence[Movement]) -> list[str]:
    fetched = {id(fetch.inspection) for fetch in fetches}
    return [
        f"{use.space.where}: the space {name!r} reads all of dimension "
        f"{', '.join(map(str, use.approximate))} of {use.data!r}, because an index is not known "
        "before the run."
        for name, tiled in spaces.items()
        for use in tiled.uses
        if use.approximate and id(use.inspection) not in fetched
    ]
