"""The compiler: the passes in order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dace import SDFG, SDFGState, dtypes
from dace.sdfg import nodes

from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.iteration_spaces import IterationSpaces, spaces_of
from distspmd.analysis.meanings import CARRIED, meanings_of
from distspmd.dace_compat.carried import carry
from distspmd.dace_compat.fast_graphs import quick_graphs
from distspmd.dace_compat.settings import placed_by_us, rare_collections
from distspmd.errors import ArgumentError, ScheduleError, UnsupportedProgram, describe
from distspmd.lowering import CONTEXT, Graphs, Lowering
from distspmd.passes.align_maps import AlignMaps
from distspmd.passes.check_sizes import check_sizes
from distspmd.passes.compilation import Compilation, Pass, Rewrite
from distspmd.passes.deal_blocks import DealBlocks
from distspmd.passes.distribute import InsertMemlets
from distspmd.passes.exchange_rows import ExchangeRows
from distspmd.passes.fuse_maps import FuseMaps
from distspmd.passes.keep_apart import KeepApart
from distspmd.passes.normalize.pipeline import NORMALIZE, normalize
from distspmd.passes.pipelines import FormPipelines
from distspmd.passes.plan_moves import ChooseHomes, PlanMoves
from distspmd.passes.record import RecordDecisions
from distspmd.passes.select_tilings import FindSpaces, PropagateTilings, TileNamedSpaces
from distspmd.passes.sequential_reductions import SequentialReductions
from distspmd.passes.split_phases import SplitPhases
from distspmd.passes.sum_operands import SumOperands
from distspmd.placement.argument_layouts import check_arguments
from distspmd.plans.machine import Machine
from distspmd.plans.solver import Solver, is_solver
from distspmd.runtime.calls.form import call_form_of
from distspmd.runtime.launch.driver_ranks import machine_here
from distspmd.schedule import Entries, Holding, Schedule
from distspmd.solvers.plugins import known_solvers


@placed_by_us()
def list_spaces(sdfg: SDFG) -> IterationSpaces:
    """What a schedule can name: the iteration spaces of an SDFG, which stays as it is.

    They are in program order, also inside loops and nested SDFGs. Copies and single operations are
    spaces too; a library node has the space of the main map of its pure expansion. Of a program
    that cannot be lowered they are the maps and library nodes that it has.

    Raises:
        ScheduleError: the SDFG is lowered.
        UnsupportedProgram: a library node without a pure expansion.
    """
    check_not_lowered(sdfg)
    twin = copy.deepcopy(sdfg)
    pairs = zip(_nodes(twin), _nodes(sdfg), strict=True)
    originals = {id(copied): original for (copied, _), original in pairs}
    try:
        normalize(twin)
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


PIPELINE: tuple[Pass, ...] = (
    *NORMALIZE,
    Rewrite("check-sizes", check_sizes),
    FindSpaces(),
    FuseMaps(),
    AlignMaps(),
    DealBlocks(),
    TileNamedSpaces(),
    PropagateTilings(),
    KeepApart(),
    ExchangeRows(),
    SumOperands(),
    SplitPhases(),
    ChooseHomes(),
    PlanMoves(),
    InsertMemlets(),
    FormPipelines(),
    SequentialReductions(),
    RecordDecisions(),
)
"""The compiler: all passes, in the order in which they run."""

observe: Callable[[Pass, Compilation], None] | None = None
"""Called after each pass, if set; tests validate the SDFG there."""


@rare_collections()
@placed_by_us()
def lower_numbers(
    sdfg: SDFG,
    schedule: Entries,
    *,
    arguments: Mapping[str, Holding] | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
    there_are: int = 1,
) -> Lowering:
    """Run all passes on an SDFG with numbers for sizes; see :func:`distspmd.lower`.

    They rewrite a copy, which the record refers to; the SDFG itself stays as it is.
    """
    check_not_lowered(sdfg)
    twin = copy.deepcopy(sdfg)
    compilation = begin_compilation(
        twin,
        on_copy(schedule, sdfg, twin),
        arguments=arguments,
        solvers=solvers,
        machine=machine,
        deterministic=deterministic,
        fuse=fuse,
        there_are=there_are,
    )
    run_passes(compilation)
    assert compilation.lowering is not None
    lowering = replace(compilation.lowering, graphs=Graphs(twin, original=sdfg))
    carry(twin, lowering)
    return lowering


def on_copy(schedule: Entries, sdfg: SDFG, twin: SDFG) -> Entries:
    """The schedule whose keys are nodes and maps of a copy, where they were those of the SDFG."""
    if not isinstance(schedule, Mapping) or all(isinstance(key, str) for key in schedule):
        return schedule
    copies: dict[int, Any] = {}
    for (node, _), (copied, _) in zip(_nodes(sdfg), _nodes(twin), strict=True):
        copies[id(node)] = copied
        if isinstance(node, nodes.MapEntry):
            copies[id(node.map)] = copied.map
    return {copies.get(id(key), key): parts for key, parts in schedule.items()}


def begin_compilation(
    sdfg: SDFG,
    schedule: Entries,
    *,
    arguments: Mapping[str, Holding] | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
    there_are: int = 1,
) -> Compilation:
    """Check what was asked for; the compilation stands before its first pass.

    Raises:
        ScheduleError: the arguments do not fit, or the SDFG is lowered already.
        ArgumentError: solvers or a machine that are none.
    """
    check_not_lowered(sdfg)
    visible = [name for name, container in sdfg.arrays.items() if not container.transient]
    arguments = with_held(sdfg, schedule, arguments)
    if isinstance(arguments, Mapping):
        arguments = call_form_of(sdfg).as_inside(arguments)
    check_arguments(sdfg.name, visible, {} if arguments is None else arguments)
    check_options(solvers, machine)
    return Compilation(
        sdfg,
        schedule,
        solvers=solvers or known_solvers(),
        machine=machine or machine_here(),
        arguments=arguments or {},
        deterministic=deterministic,
        fuse=fuse,
        there_are=there_are,
    )


def with_held(
    sdfg: SDFG, schedule: Entries, arguments: Mapping[str, Holding] | None
) -> Mapping[str, Holding] | None:
    """Where the caller holds arguments, with what a schedule says of the others.

    Raises:
        ScheduleError: the schedule names an argument that the program does not have.
    """
    if not isinstance(schedule, Schedule) or not (schedule.held or schedule.arguments):
        return arguments
    visible = [name for name, container in sdfg.arrays.items() if not container.transient]
    for name, kind in schedule.arguments.items():
        place = schedule.places.get(f"arguments {name}", "the schedule")
        check_arguments(sdfg.name, visible, call_form_of(sdfg).as_inside({name: kind}), place)
    kinds = meanings_of(sdfg).kinds
    ways = {CARRIED: "distributed", **schedule.held} if schedule.held else {}
    held = {name: ways[kind] for name, kind in kinds.items() if kind in ways}
    return {**held, **schedule.arguments, **(arguments or {})}


def check_options(solvers: object, machine: object, what: str = "lower") -> None:
    """See to it that solvers are solvers, and that a machine is one.

    Raises:
        ArgumentError: they are something else.
    """
    if solvers is not None:
        if isinstance(solvers, str) or not isinstance(solvers, Sequence):
            raise ArgumentError(f"{what}: solvers={describe(solvers)} is no sequence of solvers.")
        for solver in solvers:
            if not is_solver(solver):
                raise ArgumentError(
                    f"{what}: {describe(solver)} in solvers= is no solver. Write some of "
                    "distspmd.solvers.SOLVERS, such as distspmd.solvers.exchange.Exchange()."
                )
    if machine is not None and not isinstance(machine, Machine):
        raise ArgumentError(f"{what}: machine={describe(machine)} is no distspmd.plans.Machine.")


def run_passes(compilation: Compilation, stop_after: str | None = None) -> None:
    """Apply the passes of :data:`PIPELINE` in order, to the end or to the one that is named.

    Raises:
        ScheduleError: there is no pass of that name.
    """
    names = [each.name for each in PIPELINE]
    if stop_after is not None and stop_after not in names:
        raise ScheduleError(
            f"there is no pass {stop_after!r}; the passes are, in order: {', '.join(names)}."
        )
    with quick_graphs():
        for each in PIPELINE:
            each.apply(compilation)
            if observe is not None:
                observe(each, compilation)
            if each.name == stop_after:
                return


def check_not_lowered(sdfg: SDFG) -> None:
    """See to it that there is an SDFG, and that it was not lowered or distributed before.

    Raises:
        UnsupportedProgram: it is no SDFG, or one whose maps DaCe has distributed.
        ScheduleError: it is lowered.
    """
    if not isinstance(sdfg, SDFG):
        raise UnsupportedProgram(
            f"an SDFG is needed, but {type(sdfg).__name__} was given. Of a @dace.program, pass "
            "program.to_sdfg()."
        )
    if CONTEXT in sdfg.arrays:
        raise ScheduleError(
            f"{sdfg.name!r} is lowered already. Pass the program that it was made of, which lower "
            "leaves as it is, to try another schedule."
        )
    for node, _ in _nodes(sdfg):
        if isinstance(node, nodes.MapEntry) and node.map.schedule is dtypes.ScheduleType.MPI:
            raise UnsupportedProgram(
                f"{sdfg.name!r}: the map {node.map.label!r} is distributed by DaCe already: its "
                "schedule is ScheduleType.MPI. Lower the program from before MPITransformMap, or "
                "give the map another schedule."
            )
