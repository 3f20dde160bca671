"""A program in steps: its spaces, a schedule, the lowered program, and the compiled one."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.execution import program as programs
from distspmd.execution.program import Program
from distspmd.execution.symbolic_program import SymbolicProgram
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.plans.machine import Machine
from distspmd.plans.solver import Solver
from distspmd.runtime.launch.driver_ranks import ranks_here
from distspmd.runtime.notices import notice
from distspmd.runtime.watch.agreement import Agreement
from distspmd.schedule import Entries, Holding, as_entries, as_schedule, is_of_axes

if TYPE_CHECKING:
    from dace import SDFG
    from dace.frontend.python.parser import DaceProgram

    from distspmd.analysis.iteration_spaces import IterationSpaces
    from distspmd.scheduling.result import SearchResult
    from distspmd.symbolic_lowering import SymbolicLowering

Source: TypeAlias = "SDFG | DaceProgram | Callable[..., Any]"
"""A program: an SDFG, a @dace.program, or a Python function whose annotations give the shapes."""
Lowered: TypeAlias = "SDFG | Lowering | SymbolicLowering | programs.Started"
"""What :func:`lower` returned, or its SDFG."""

_NO_RANKS = (
    "lowered for one rank, for no ranks were started with this process: write "
    "lower(..., ranks=4) to search for a schedule of 4 ranks, or name one"
)


def lower(
    program: Source,
    schedule: Entries | SearchResult | str | os.PathLike[str] | None = None,
    *,
    ranks: int | None = None,
    memory: int | str | None = None,
    search: bool = True,
    mesh: Mesh | Mapping[str, int] | None = None,
    arguments: Mapping[str, Holding] | None = None,
    results: Holding | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
    host: str = "tell",
) -> Lowering | SymbolicLowering:
    """Turn a program into one that each rank of a communicator runs.

    The program stays as it is: the result refers to a new SDFG. A program with symbolic sizes is
    checked as far as possible before the sizes are known; each call then lowers it for the sizes of
    its arguments.

    Args:
        program: an SDFG, or a function, which is parsed first; of symbolic sizes see docs/sizes.md.
        schedule: name (or unique label, or DaCe node) of an iteration space -> parts along each of
            its parameters, as a tuple or by name; or axes of the mesh by parameter,
            ``{"q": {"b": "x", "h": ("y", "z")}}``, minor first; or the name of a file, as
            ``lowering.schedule.save`` writes it; or what :func:`search` found. Spaces that it does
            not name follow their neighbours, or are searched for where that leaves work whole that
            is worth it; the returned record says how. Without any schedule
            the best one is searched for, on the ranks that were started with this process; what is
            found is kept in the cache. ``{}`` leaves all on rank 0.
        ranks: search for the best schedule on so many ranks, of all that ``schedule`` does not
            name, as :func:`search` does.
        memory: most bytes that may live on a rank at once, for that search: a number, or a text
            such as ``"80 GB"``.
        search: whether to search for what a schedule leaves open; if not, that follows its
            neighbours, and all stays on rank 0 where there is no schedule.
        mesh: sizes of axes by name, major first, ``{"x": 8, "y": 4}``, which spaces share that the
            schedule gives axes.
        arguments: where the caller holds an argument or a result (``"__return"``): ``"root"``, all
            of it on rank 0 (default); ``"replicated"``, all of it on every rank of the grids, and
            of those that are searched for; a :class:`Layout`, a tile of it on each of its ranks; or
            in tiles of ``program.layout(name)``: ``"distributed"``; ``"gathered"`` frees copies of
            it.
        results: the same of all results that ``arguments`` does not name: ``"replicated"`` gives
            them to every rank.
        solvers: asked for plans in this order (default: all).
        machine: decides between plans; as measured on this host where left out.
        deterministic: whether results shall have the same bits on any number of ranks, with the
            same grids: operands are combined in the order of the coordinates, and loops that reduce
            run in order.
        fuse: whether maps that pass temporaries on become one. Spaces that the schedule names take
            others in, and are not taken.
        host: of statements that are no array work: ``"tell"`` has Python run them and says so at
            the first call, ``"allow"`` says nothing, and ``"refuse"`` refuses them (docs/host.md).

    Returns:
        The record of all decisions, which :func:`compile` takes; ``.sdfg`` is the lowered SDFG.

    Raises:
        ScheduleError: the schedule or the arguments do not fit, or the SDFG is lowered already.
        UnsupportedProgram: something that cannot be partitioned; the message names the source line.
        NoSolver: the given solvers have no plan for a redistribution.
    """
    from distspmd import pipeline
    from distspmd.codegen.build import warm_up
    from distspmd.scheduling.search import Options, lower_open, lower_searched
    from distspmd.symbolic_lowering import lower_symbols, symbols_of

    warm_up()
    ranks = _ranks_of_search(schedule, ranks, memory, search)
    wanted = None if ranks is None else Options(ranks, memory)
    sdfg = parse_source(program, host=host)
    entries = as_entries(schedule, mesh)
    if results is not None:
        own = (name for name in sdfg.arrays if name.startswith("__return"))
        arguments = {**dict.fromkeys(own, results), **(arguments or {})}
    options: dict[str, Any] = {"arguments": arguments, "solvers": solvers, "machine": machine}
    options |= {"deterministic": deterministic, "fuse": fuse}
    if symbols_of(sdfg):
        return lower_symbols(sdfg, entries, options, wanted, is_followed=not search)
    if wanted is not None:
        return lower_searched(sdfg, entries, wanted, **options)
    lowered = lower_open if search else pipeline.lower_numbers
    return lowered(sdfg, entries, **options)


def _ranks_of_search(
    schedule: Any, ranks: int | None, memory: int | str | None, search: bool
) -> int | None:
    """For how many ranks to search; None for none.

    Raises:
        ArgumentError: options of a search, where there is none.
    """
    if not search and (ranks is not None or memory is not None):
        raise ArgumentError(
            "lower: ranks= and memory= are of a search, but search=False was given."
        )
    if ranks is None and schedule is None and search:
        ranks = ranks_here()
        if ranks is None and memory is None:
            notice(_NO_RANKS)
    if ranks is None and memory is not None:
        raise ArgumentError("lower: memory= is of a search. Write ranks= beside it.")
    return None if ranks == 1 and schedule is None and memory is None else ranks


def search(
    program: Source,
    ranks: int,
    *,
    machine: Machine | None = None,
    memory: int | str | None = None,
    fixed: Entries | SearchResult | str | os.PathLike[str] | None = None,
    arguments: Mapping[str, Holding] | None = None,
    seconds: float = 60.0,
    tied: bool | None = None,
    mesh: Mesh | Mapping[str, int] | None = None,
    fuse: bool = True,
    progress: Callable[[float, float, float], None] | None = None,
) -> SearchResult:
    """Search for the schedule of least predicted time; the program stays as it is.

    Args:
        program: as :func:`lower` takes it, with numbers for sizes.
        ranks: that there are; some may stay idle.
        machine: what messages, bytes and operations cost; as measured on this host where left out.
        memory: most bytes that may live on a rank at once: a number, or a text such as ``"80 GB"``.
        fixed: a schedule of spaces that stay as they are; the others are searched for.
        arguments, fuse: as of :func:`lower`.
        seconds: after which the best so far is the answer.
        tied: whether layers that are alike take one choice; by default where spaces are many.
        mesh: on whose axes to search, major first; those of all prime factors where left out.
        progress: is told seconds, cost and bound whenever one of the latter has improved.

    Returns:
        The schedule, its cost, and a bound that no candidate undercuts; :func:`lower` takes it.

    Raises:
        NoSchedule: nothing fits the memory; says the least that would do, and which arrays hold it.
        ScheduleError: the fixed spaces or the arguments do not fit, or the SDFG is lowered already.
        ArgumentError: no number of ranks, bytes or seconds, or sizes that are symbols.
        UnsupportedProgram: something that cannot be partitioned; the message names the source line.
    """
    from distspmd.pipeline import check_not_lowered
    from distspmd.scheduling.search import Options, search_numbers
    from distspmd.symbolic_lowering import symbols_of

    check_not_lowered(sdfg := parse_source(program))
    if symbols := symbols_of(sdfg):
        sizes = ", ".join(f"{name!r}: 1024" for name in symbols)
        raise ArgumentError(
            f"search: {sdfg.name!r} has symbolic sizes. Write sdfg.replace_dict({{{sizes}}})."
        )
    axes = Mesh.of(mesh) if isinstance(mesh, Mapping) else mesh
    given: Any = as_schedule(fixed)
    of_axes = isinstance(given, Mapping) and any(map(is_of_axes, given.values()))
    entries = as_entries(given, axes if of_axes else None)
    asked = Options(ranks, memory, seconds, axes, tied, progress)
    return search_numbers(sdfg, asked, entries, arguments=arguments, machine=machine, fuse=fuse)


def iteration_spaces(program: Source) -> IterationSpaces:
    """What a schedule can name, in program order; the program stays as it is.

    Raises:
        ScheduleError: the SDFG is lowered.
        UnsupportedProgram: a program that cannot be parsed, or a library node without a pure
            expansion.
    """
    from distspmd import pipeline

    return pipeline.list_spaces(parse_source(program))


def compile(
    lowered: Lowered | Callable[[], Lowered] | None,
    comm: Any,
    *,
    arithmetic: str = "vector",
    device: str | None = None,
) -> Program | SymbolicProgram:
    """Compile a lowered program on rank 0, and load it on all ranks of a communicator.

    One with symbolic sizes is compiled for the sizes of each call, when it comes first.

    Args:
        lowered: what :func:`lower` returned, or its ``.sdfg``; or a function that
            returns it, ``lambda: distspmd.lower(f, schedule)``, which rank 0 alone calls: so the
            others start sooner, for they need not import DaCe. These may pass None.
        comm: an mpi4py communicator with at least ``lowering.ranks`` ranks; it is duplicated.
        arithmetic: of loops that the compiler vectorises. ``"vector"``: functions such as ``exp``
            come from the vector library, with errors of up to 4 units in the last place; not if
            ``"strict"``; ``"fast"``: sums may be taken in another order. Deterministic is strict.
            On a device also ``"tf32"`` and ``"bfloat16"``: as ``"vector"``, but products of
            matrices of float32 and complex64 take operands that are rounded to these.
        device: on which each rank works: ``"cuda"``, a GPU, or ``"emulated"``, one in the memory of
            the host (docs/gpu.md); None for the host's cores, unless the environment variable
            ``DISTSPMD_DEVICE`` names another.

    Raises:
        ScheduleError: the program is not lowered, or its grids need more ranks.
        Exception: on all ranks; what the function raises on rank 0.
        ArgumentError: an unknown kind of arithmetic or of device, or no communicator.
        DeviceError: on all ranks; there is no such device or no compiler for it, or it has no
            memory for the program.
        DisagreementError: on all ranks: they compile different programs, or one of them has ended.
        LaunchError: the processes that were started together are no ranks of one program.
        CompilationError: on all ranks, with the compiler's message.
        ToolchainError: on all ranks, if the compiler or the BLAS is missing.
    """
    device = device or os.environ.get("DISTSPMD_DEVICE")
    agreement = Agreement.of(comm, programs.COMPILES)
    with agreement.calling(programs.COMPILES):
        agreement.check()
        found: Any = lowered
        error: Exception | None = None
        if inspect.isroutine(lowered) or isinstance(lowered, functools.partial):
            found = None
            if agreement.rank == 0:
                try:
                    found = lowered()
                except Exception as problem:  # whatever it raises
                    error = problem
        agreement.wait(error)
        symbolic = _symbolic(found) if agreement.rank == 0 else None
        if agreement.bcast(symbolic is not None):
            return SymbolicProgram(symbolic, agreement.comm, arithmetic, device)
        return programs.compile_together(agreement, found, arithmetic, device)


def _symbolic(lowered: Any) -> SymbolicLowering | None:
    """The lowering of symbolic sizes that this is, if it is one."""
    if "distspmd.symbolic_lowering" not in sys.modules:
        return None  # nobody can have made one
    from distspmd.symbolic_lowering import SymbolicLowering

    return lowered if isinstance(lowered, SymbolicLowering) else None


class Decorated:
    """A function under a decorator of ours: what reads it reads the function itself.

    Attributes:
        function: the function itself.
    """

    function: Callable[..., Any]


def undecorated(program: Any) -> Any:
    """A program without a decorator of ours."""
    return program.function if isinstance(program, Decorated) else program


def parse_source(
    program: Any, examples: Mapping[str, Any] | None = None, host: str = "tell"
) -> SDFG:
    """The SDFG of a program; arguments give shapes and types where annotations do not."""
    from dace import SDFG

    from distspmd.frontend.from_numpy.program import DEFAULT

    if isinstance(program, SDFG):
        return program
    program = undecorated(program)
    if not callable(program):
        raise UnsupportedProgram(
            f"a program is needed, but {type(program).__name__} was given. Pass an SDFG, a "
            "@dace.program, or a Python function."
        )
    from distspmd.frontend.from_numpy.api import read_program

    return read_program(program, DEFAULT, (), examples or {}, host=host)
