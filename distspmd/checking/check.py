"""Checks a lowering: proves its plans, and compares it with NumPy on random inputs.

This process lowers the program and compiles both versions; :func:`check` starts ranks, which load
and run both. A program that ends its process thus ends the ranks alone, and this process needs no
MPI.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dace import SDFG, data

from distspmd.api.steps import undecorated
from distspmd.cache.scratch import scratch_folder
from distspmd.checking import trials
from distspmd.checking.compare import Comparison
from distspmd.checking.prove_program import prove_program
from distspmd.checking.python_oracle import python_function
from distspmd.checking.trials import (
    Arguments,
    Run,
    Sets,
    Trial,
    call_with_copies,
    perform,
    read,
    write_object,
)
from distspmd.codegen.build import build_unlowered
from distspmd.errors import ArgumentError, CheckError, DistSPMDError, ScheduleError
from distspmd.execution.builds import build_for
from distspmd.frontend.from_numpy.program import numpy_program
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.passes.check_sizes import check_sizes
from distspmd.pipeline import lower_numbers
from distspmd.plans.machine import Machine
from distspmd.plans.solver import Solver
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.calls.form import call_form_of
from distspmd.runtime.launch import driver_ranks as driven
from distspmd.runtime.launch.mpiexec import launch
from distspmd.runtime.watch.agreement import Agreement, Call
from distspmd.schedule import Entries, Holding, as_entries
from distspmd.symbolic_lowering import SymbolicLowering, with_sizes
from distspmd.tables import Table, as_html, as_text

Generator = np.random.Generator
Source = SDFG | Lowering | SymbolicLowering | Callable[..., Any]
Inputs = Mapping[str, Any] | Callable[[Generator], Mapping[str, Any]]


@dataclass(frozen=True)
class Checked:
    """A lowering that was checked: what was proved, run and compared; prints as a table."""

    lowering: Lowering
    ranks: int
    runs: tuple[Run, ...]
    oracle: str
    """What the results were compared with."""

    @property
    def largest(self) -> float:
        """Largest difference of all arrays, relative to the largest value of each."""
        return max((c.largest for run in self.runs for c in run.comparisons), default=0.0)

    @property
    def difference(self) -> Comparison | None:
        """The first array that differs."""
        every = (c for run in self.runs for c in run.comparisons)
        return next((c for c in every if c.first is not None), None)

    @property
    def _table(self) -> Table:
        rows = tuple(
            (
                str(run.seed),
                each.name,
                each.dtype,
                f"{each.size:,}",
                f"{each.wrong:,}",
                f"{each.largest:.1e}",
                f"{each.tolerance:.1e}",
            )
            for run in self.runs
            for each in run.comparisons
        )
        head = ("seed", "array", "dtype", "elements", "differ", "largest difference", "allowed")
        plans = len(self.lowering.memlets + self.lowering.fetches)
        return Table(
            f"{plans} plans proved, {len(self.runs)} runs on {self.ranks} ranks, compared with "
            f"{self.oracle}",
            head,
            rows,
        )

    def __str__(self) -> str:
        return as_text([self._table])

    def _repr_html_(self) -> str:
        return as_html([self._table])


def check(
    program: Source,
    schedule: Entries | str | os.PathLike[str] | None = None,
    ranks: int | None = None,
    *,
    mesh: Mesh | Mapping[str, int] | None = None,
    examples: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    reference: Callable[..., Any] | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    runs: int = 2,
    timeout: float | None = None,
    arguments: Mapping[str, Holding] | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
    device: str | None = None,
) -> Checked:
    """Lower a program, prove every plan, run it on ranks, and compare it with NumPy.

    One process calls it, such as a test of pytest, and it starts the ranks itself, or takes those
    that :func:`distspmd.ranks` has started if they are as many. Where mpiexec has started the
    process, all ranks call it together, and it is they who run the program.

    Args:
        program: a function, a ``@dace.program`` or an SDFG; it stays as it is. What is compared
            with is the Python function, run by NumPy; for an SDFG, and where Python cannot run the
            function, the SDFG in one process. The result says which. Or what :func:`distspmd.lower`
            or :func:`distspmd.load` returned, which is compared with the SDFG as it was before.
        schedule, mesh: as for :func:`distspmd.lower`; none of what is lowered.
        ranks: how many to start; of what is lowered, as many as it needs where left out.
        examples: arguments by name, for types and shapes that annotations do not give; what a
            program is made for is passed to the function, too.
        sizes: numbers for symbolic sizes.
        inputs: by name of an argument: its value, or a function of a generator that draws it, or
            the ends ``(low, high)`` of integers, ``high`` excluded, as for indices. Or a function
            of a generator that returns such a mapping. Others are drawn by dtype.
        reference: what to compare with instead: a function of the same arguments.
        tolerance: largest difference relative to the largest value of an array; by dtype where left
            out, and always none for integers.
        seed: of the first run; each run has the next one.
        runs: how often to run, with other inputs each time.
        timeout: seconds after which the ranks are ended.
        arguments, solvers, machine, deterministic, fuse: as for :func:`distspmd.lower`.
        device: as for :func:`distspmd.compile`.

    Raises:
        CheckError: the results differ: the first array and index that do, and both values.
        PlanError: a plan is wrong, or does not fit the program.
        LaunchError: the ranks did not end well.
    """
    if runs < 1:
        raise ArgumentError(f"check: {runs} runs compare nothing; ask for 1 or more.")
    lowering = _decided(program, schedule, sizes)
    if ranks is None:
        if lowering is None:
            raise ArgumentError("check: on how many ranks? Write ranks=4.")
        ranks = lowering.ranks
    entries = as_entries(schedule, mesh)
    source: Any = undecorated(program) if lowering is None else lowering.original
    sdfg = source if isinstance(source, SDFG) else numpy_program(source, **(examples or {}))
    fixed = call_form_of(sdfg).fixed
    sdfg = with_sizes(sdfg, sizes) if sizes and lowering is None else sdfg
    check_sizes(sdfg, of_temporaries=False)
    wanted, oracle = reference, "the given reference" if reference else _ONE_PROCESS

    def make() -> Trial:
        nonlocal wanted, oracle
        if wanted is None:
            given = arguments_of(sdfg, seed, inputs)
            inside = call_form_of(sdfg).inside
            wanted, oracle = oracle_of(source, sizes or {}, given, inside, fixed)
        return prepare_trial(
            sdfg,
            entries,
            ranks,
            lowering=lowering,
            tolerance=tolerance,
            seed=seed,
            original=wanted is None,
            oracle=oracle,
            device=device,
            arguments=arguments,
            solvers=solvers,
            machine=machine,
            deterministic=deterministic,
            fuse=fuse,
        )

    def sets() -> Sets:
        for number in range(runs):
            given = arguments_of(sdfg, seed + number, inputs)
            yield given, call_with_copies(wanted, given) if wanted else None

    if launched_ranks() is None:
        trial = make()
        there = driven.started()
        if there is not None and there.Get_size() == ranks:
            found = there.together(trials.perform_served, trial, list(sets()), runs)
        else:
            found = _launched(trial, ranks, sets(), timeout)
    else:
        trial, found = _together(make, ranks, sets(), runs)
    checked = Checked(trial.lowering, ranks, found, trial.oracle)
    _refuse_difference(checked, sdfg.name)
    return checked


def _decided(program: Any, schedule: Any, sizes: Mapping[str, int] | None) -> Lowering | None:
    """The lowering that is to be checked, of a program that is lowered already.

    Raises:
        ArgumentError: it is of symbolic sizes that are not given, or the program as it was is not
            known.
        ScheduleError: a schedule is given as well.
    """
    found = program.at(**(sizes or {})) if isinstance(program, SymbolicLowering) else program
    if not isinstance(found, Lowering):
        return None
    if schedule is not None:
        raise ScheduleError("check: what is lowered has its schedule. Leave out schedule=.")
    if found.original is None:
        raise ArgumentError(
            "check: the program as it was before is not known, with which to compare. Check what "
            "distspmd.lower returned, or what lowering.save(...) wrote and distspmd.load reads."
        )
    return found


_ONE_PROCESS = "the SDFG in one process"


def oracle_of(
    program: Source,
    sizes: Mapping[str, int],
    given: Arguments,
    inside: Mapping[str, str] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> tuple[Callable[..., Any] | None, str]:
    """The function that NumPy runs, if it can, and what is said of it.

    Args:
        program: whose function it is.
        sizes: values of its symbols.
        given: its arguments, by their names in the SDFG.
        inside: these, for arguments that have other names in the function.
        fixed: arguments for whose values the program was made.
    """
    python = python_function(program, sizes)
    if python is None:
        return None, _ONE_PROCESS
    own = {name: its for its, name in (inside or {}).items()}

    def function(**named: Any) -> Any:
        passed = {own.get(name, name): value for name, value in named.items()}
        return python(**{n: v for n, v in (fixed or {}).items() if n.isidentifier()}, **passed)

    try:
        call_with_copies(function, given)
    except Exception as problem:  # whatever the user's function raises
        return None, f"{_ONE_PROCESS}: Python cannot run the function ({problem})"
    return function, "the Python function, run by NumPy"


def _launched(trial: Trial, ranks: int, sets: Sets, timeout: float | None) -> tuple[Run, ...]:
    """Start ranks, which find all that they need in a folder, and leave there what they found."""
    with scratch_folder() as place:
        runs = 0
        write_object(place / "trial", trial)
        for runs, inputs in enumerate(sets, start=1):
            write_object(place / f"set{runs - 1}", inputs)
        argv = ["-m", "distspmd.checking.trials", str(place), str(runs)]
        launch(argv, ranks=ranks, timeout=timeout, capture=True).check()
        found: tuple[Run, ...] = read(place / "runs")
        return found


def _together(
    make: Callable[[], Trial], ranks: int, sets: Sets, runs: int
) -> tuple[Trial, tuple[Run, ...]]:
    """Check on the ranks of this launch; rank 0 lowers and compiles."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    call = Call.of("check(...)", ranks, runs)
    agreement = Agreement.of(comm, call)
    with agreement.calling(call):
        trial: Trial | None = None
        error: Exception | None = None
        if agreement.ranks != ranks:
            error = ArgumentError(
                f"check: {ranks} ranks are asked for, but mpiexec started {agreement.ranks}. Call "
                "it in a process without mpiexec, or ask for these."
            )
        agreement.check(error)
        if agreement.rank == 0:
            try:
                trial = make()
            except DistSPMDError as problem:
                error = problem
        agreement.wait(error)
        shared: Trial = agreement.bcast(trial)
    found: tuple[Run, ...] = comm.bcast(perform(shared, comm, sets, runs))
    return shared, found


def prepare_trial(
    sdfg: SDFG,
    schedule: Entries,
    ranks: int,
    *,
    lowering: Lowering | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    original: bool = True,
    oracle: str = _ONE_PROCESS,
    device: str | None = None,
    **options: Any,
) -> Trial:
    """Lower a copy, prove it, and compile it, and the original if it is compared with.

    Raises:
        PlanError: a plan is wrong.
        ScheduleError: the grids need more ranks, and as for lower.
    """
    if lowering is None:
        lowering = lower_numbers(sdfg, schedule, **options)
    prove_program(lowering)
    built, lowering = build_for(
        lowering.sdfg, ranks, device=device or os.environ.get("DISTSPMD_DEVICE")
    )
    folder = str(build_unlowered(sdfg)) if original else None
    return Trial(built, lowering, folder, tolerance, seed, oracle)


def _refuse_difference(checked: Checked, name: str) -> None:
    found = checked.difference
    if found is None:
        return
    run = next(run for run in checked.runs if found in run.comparisons)
    others = [c.name for c in run.comparisons if c.first is not None and c is not found]
    also = f" {', '.join(others)} differ as well." if others else ""
    writers = [m.source for m in checked.lowering.memlets if m.data == found.name and m.source]
    at = f" It is moved for {', '.join(dict.fromkeys(writers))}." if writers else ""
    grids = ", ".join(f"{s.name}={s.parts}" for s in checked.lowering.spaces)
    raise CheckError(
        f"{name} on {checked.ranks} ranks with {grids} differs from {checked.oracle}: {found}."
        f"{also}{at} The inputs are those of the seed {run.seed}."
    )


# --- inputs ---


def arguments_of(sdfg: SDFG, seed: int, inputs: Inputs | None = None) -> Arguments:
    """Arguments of a program: those that are given, and the others drawn by dtype.

    Raises:
        ArgumentError: a name that the program does not have.
    """
    rng = np.random.default_rng(seed)
    form = call_form_of(sdfg)
    given = form.as_inside(inputs(rng) if callable(inputs) else inputs or {})
    names = [
        name
        for name, container in sdfg.arrays.items()
        if not container.transient and not name.startswith("__return")
    ]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ArgumentError(
            f"inputs: {sdfg.name!r} has no argument {unknown[0]!r}; it has {', '.join(names)}."
        )
    found = {name: _input(name, sdfg.arrays[name], given.get(name), rng) for name in names}
    return {n: v.reshape(()) if n in form.points else v for n, v in found.items()}


def _input(name: str, container: data.Data, given: Any, rng: Generator) -> Any:
    dtype = np.dtype(container.dtype.as_numpy_dtype())
    shape = tuple(int(extent) for extent in container.shape)
    if callable(given):
        given = given(rng)
    if isinstance(given, tuple):
        if len(given) != 2 or dtype.kind not in "iu":
            raise ArgumentError(
                f"inputs: {given!r} for {name!r} of {dtype}; ends (low, high) are for integers. "
                "Give an array, or a function of a generator."
            )
        given = rng.integers(*given, shape)
    value = np.array(_drawn(dtype, shape, rng) if given is None else given, dtype)
    if value.shape != shape and not value.size == math.prod(shape) == 1:
        raise ArgumentError(
            f"inputs: {name!r} has the shape {list(value.shape)}, the program wants {list(shape)}."
        )
    return value.reshape(-1)[0] if isinstance(container, data.Scalar) else value


def _drawn(dtype: np.dtype[Any], shape: tuple[int, ...], rng: Generator) -> Any:
    """Floats in [0, 1), integers in [0, 10), bools."""
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 10, shape)
    if dtype.kind == "c":
        return rng.random(shape) + 1j * rng.random(shape)
    return rng.random(shape)
