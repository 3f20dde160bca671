"""The public functions that lower and compile a program, with numbers or with symbols for sizes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from dace import SDFG

from distspmd import pipeline
from distspmd.codegen.build import prepare
from distspmd.errors import ScheduleError
from distspmd.execution import program
from distspmd.execution.program import Program
from distspmd.execution.symbolic_program import SymbolicProgram
from distspmd.lowering import ATTRIBUTE, Lowering
from distspmd.pipeline import iteration_spaces
from distspmd.placement.argument_layouts import check_arguments
from distspmd.placement.schedule import Schedule, resolve
from distspmd.plans.machine import Machine
from distspmd.plans.solver import Solver
from distspmd.symbolic_lowering import SymbolicLowering, symbols_of


def lower(
    sdfg: SDFG,
    schedule: Schedule | None = None,
    *,
    arguments: Mapping[str, str] | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
) -> Lowering | SymbolicLowering:
    """Turn an SDFG into one that each rank of a communicator runs, in place.

    A program with symbolic sizes is checked as far as it can be before they are known; each call
    then lowers it for the sizes of its arguments.

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
    prepare()
    schedule = {} if schedule is None else schedule
    options: dict[str, Any] = {
        "arguments": arguments,
        "solvers": solvers,
        "machine": machine,
        "deterministic": deterministic,
        "fuse": fuse,
    }
    if not isinstance(sdfg, SDFG) or not symbols_of(sdfg):
        return pipeline.lower(sdfg, schedule, **options)
    if hasattr(sdfg, ATTRIBUTE):
        raise ScheduleError(
            f"{sdfg.name!r} is lowered already. Parse the program again, or keep a copy with "
            "copy.deepcopy(sdfg) before the first lower, to try another schedule."
        )
    grids = resolve(schedule, iteration_spaces(sdfg))
    visible = [name for name, container in sdfg.arrays.items() if not container.transient]
    check_arguments(sdfg.name, visible, arguments or {})
    lowering = SymbolicLowering(copy.deepcopy(sdfg), grids, options, symbols_of(sdfg))
    setattr(sdfg, ATTRIBUTE, lowering)
    return lowering


def compile(
    sdfg: SDFG | None, comm: Any, *, arithmetic: str = "vector"
) -> Program | SymbolicProgram:
    """Compile a lowered SDFG on rank 0, and load it on all ranks of a communicator.

    One with symbolic sizes is compiled for the sizes of each call, when it comes first.

    Args:
        sdfg: what :func:`distspmd.lower` lowered; ranks other than 0 may pass None.
        comm: an mpi4py communicator with at least ``lowering.ranks`` ranks; it is duplicated.
        arithmetic: of loops that the compiler vectorises. ``"vector"``: functions such as ``exp``
            come from the vector library, with errors of up to 4 units in the last place; not if
            ``"strict"``; ``"fast"``: sums may be taken in another order. Deterministic is strict.

    Raises:
        ScheduleError: the SDFG is not lowered, or its grids need more ranks.
        ArgumentError: an unknown kind of arithmetic, or no communicator.
        CompilationError: on all ranks, with the compiler's message.
        ToolchainError: on all ranks, if the compiler or the BLAS is missing.
    """
    if not hasattr(comm, "Dup"):
        return program.compile(sdfg, comm, arithmetic=arithmetic)
    lowering = getattr(sdfg, ATTRIBUTE, None) if comm.Get_rank() == 0 else None
    symbolic = lowering if isinstance(lowering, SymbolicLowering) else None
    if not comm.bcast(symbolic is not None):
        return program.compile(sdfg, comm, arithmetic=arithmetic)
    return SymbolicProgram(symbolic, comm, arithmetic)
