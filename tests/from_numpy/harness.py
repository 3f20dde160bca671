"""A case by NumPy and by distspmd: parsed, lowered under a schedule of all its spaces, and run.

Two modes. On paper nothing is compiled: results have NumPy's shapes and types, and its values where
NumPy can evaluate the statements of the program; the plans are proved and simulated. On ranks the
program runs, and its results and the arrays that it changes in place are compared with those of the
plain function. Results of one rank need no launch: :func:`run_here`.
"""

from __future__ import annotations

import contextlib
import copy
import io
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dace import SDFG
from lowering.on_paper import problems

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering
from distspmd.runtime.calls.form import KeptObject, Result, call_form_of, contains_arrays
from from_numpy.conditions import movements
from from_numpy.corpus.registry import Case
from from_numpy.following import tell
from from_numpy.outcomes import (
    NOT_SPLIT,
    RIGHT,
    WRONG,
    Outcome,
    differences,
    is_python,
    listed,
    outcome_of,
    told_kind,
)
from from_numpy.printed import printed_differences
from from_numpy.statements_in_numpy import NotOnPaper, Programs, WrongOnPaper

Arguments = dict[str, Any]
NUMBERS_OF_PYTHON = "numbers of Python"
"""The field of cases whose results have to be numbers of Python where Python's are."""
Schedule = Mapping[str, tuple[int, ...]]


class _Stages:
    """The stages of a case; its first difference, or its exception, is its outcome and ends it."""

    def __init__(self, name: str) -> None:
        self.outcome = Outcome(name, RIGHT)
        self._stage, self._where = "parse", ""
        self._start = time.perf_counter()

    def __enter__(self) -> _Stages:
        return self

    def enter(self, stage: str, where: str | None = None) -> None:
        """Go on; ``where`` says of the stages from here on under which conditions they are."""
        self._stage = stage
        self._where = self._where if where is None else where

    def end(self, wrong: Iterable[str], refused: str = "") -> None:
        """End the case if something is wrong; keep what was refused of its schedule."""
        told = "; ".join(wrong)
        if told:
            raise _Differs(told)
        if refused and not self.outcome.reason:
            said = f"{NOT_SPLIT}{self._where}{refused}"
            self.outcome = replace(self.outcome, reason=said)

    def leave_values(self, said: str) -> None:
        """Keep why values are not compared."""
        self.outcome = replace(self.outcome, uncompared=said)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, KeyboardInterrupt):
            return False
        name, seconds = self.outcome.name, time.perf_counter() - self._start
        if isinstance(error, _Differs):
            self.outcome = Outcome(name, WRONG, str(error), self._stage)
        elif error is not None:
            self.outcome = outcome_of(name, self._stage, error)
        if error is not None:
            self.outcome = replace(self.outcome, reason=self._where + self.outcome.reason)
        self.outcome = replace(self.outcome, seconds=round(seconds, 2))
        return True


class _Differs(Exception):
    """Something is wrong with what a case gives."""


@dataclass(frozen=True)
class Expected:
    """What NumPy gives: the result of a case, its arguments after the call, and what it prints."""

    result: Any
    after: Arguments
    printed: str


def expected(case: Case) -> Expected:
    """Run the plain function on arguments of its own."""
    given, named = case.arguments()
    after = case.bound_to(given, named)
    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore")
        result = listed(case.function(*given, **named))
    return Expected(copy.deepcopy(result), after, out.getvalue())


def parse(case: Case) -> SDFG:
    """The case through the front end, with its arguments as examples."""
    given, named = case.arguments()
    return numpy_program(case.function, *given, **named)


# --- schedules ---


def schedule_of(sdfg: SDFG, ranks: int, dimension: int = 0) -> dict[str, tuple[int, ...]]:
    """All nameable spaces, each split over all ranks along one dimension, or its last."""
    schedule = {}
    for space in distspmd.iteration_spaces(sdfg):
        if space.parameters:
            parts = [1] * len(space.parameters)
            parts[min(dimension, len(parts) - 1)] = ranks
            schedule[space.name] = tuple(parts)
    return schedule


@dataclass(frozen=True)
class Lowered:
    """A lowered SDFG, with what was refused of the schedule that was asked for."""

    sdfg: SDFG
    lowering: Lowering
    refused: str


def lower(parsed: SDFG, ranks: int, dimension: int = 0) -> Lowered:
    """Lower it with all spaces split; spaces that are refused are left to follow others.

    Raises:
        DistSPMDError: it is refused without any schedule as well.
    """
    schedule = schedule_of(parsed, ranks, dimension)
    first = ""
    while True:
        try:
            lowering = distspmd.lower(parsed, schedule)
            return Lowered(lowering.sdfg, lowering, first)
        except DistSPMDError as error:  # noqa: PERF203  rarely twice
            if not schedule:
                raise
            first = first or str(error)
            named = [name for name in schedule if f"'{name}'" in str(error)]
            schedule = {n: parts for n, parts in schedule.items() if named and n not in named}


# --- on paper ---


def on_paper(case: Case, ranks: int = 3, dimension: int = 0) -> Outcome:
    """What can be seen without a compiler: the results, and proved plans.

    The outcome says why values are not compared where they are not.
    """
    with _Stages(case.name) as stages:
        wanted, programs = expected(case), Programs()
        with programs.kept():
            parsed = parse(case)
        stages.end(_described_differences(parsed, wanted.result))
        try:
            stages.end(_evaluated_differences(case, wanted, programs, parsed))
        except NotOnPaper as unknown:
            stages.leave_values(str(unknown))
        stages.enter("lower", f"{ranks} ranks: ")
        lowered = lower(parsed, ranks, dimension)
        stages.end(problems(lowered.lowering), lowered.refused)
    return stages.outcome


def differences_on_paper(case: Case, programs: Programs, tolerance: float = 0.0) -> list[str]:
    """In what shapes, types and values of a case differ, evaluated without a compiler.

    Args:
        case: that is read, and evaluated.
        programs: keeps its statements.
        tolerance: of values relative to the largest, if their types allow no more.

    Raises:
        NotOnPaper: it is not evaluated.
    """
    wanted = expected(case)
    with programs.kept():
        parsed = parse(case)
    after = case.bound_to(*case.arguments())
    found = programs.run(parsed, {**case.defaults(), **after})
    described = _described_differences(parsed, wanted.result)
    return described or [*differences(listed(found), wanted.result, tolerance=tolerance)]


def _evaluated_differences(
    case: Case, wanted: Expected, programs: Programs, parsed: SDFG
) -> list[str]:
    """In what the values differ that the statements of a program compute."""
    after = case.bound_to(*case.arguments())
    try:
        result = programs.run(parsed, {**case.defaults(), **after})
    except WrongOnPaper as wrong:
        return [str(wrong)]
    found = _wrong(case, wanted, result, after)
    return found or [*printed_differences("".join(programs.printed), wanted.printed)]


def _described_differences(sdfg: SDFG, wanted: Any) -> list[str]:
    """In what shapes and types of the results differ; nothing of what the run decides."""
    names = [name for name in sdfg.arrays if name.startswith("__return")]
    names.sort(key=lambda name: (len(name), name))
    form = call_form_of(sdfg).returned
    if form is None and names:
        places = tuple(map(Result, range(len(names))))
        form = places[0] if names == ["__return"] else places
    return list(_form_differences(sdfg, names, form, wanted, "result"))


def _form_differences(
    sdfg: SDFG, names: list[str], form: Any, wanted: Any, where: str
) -> Iterator[str]:
    if isinstance(form, KeptObject):
        return
    if isinstance(form, Result):
        if not (wanted is None or isinstance(wanted, tuple | list | Mapping | str)):
            container = sdfg.arrays[names[form.number]]
            yield from _container_differences(container, form, wanted, where)
        return
    pairs = []
    if isinstance(form, tuple | list) and isinstance(wanted, tuple | list):
        if len(form) != len(wanted):
            yield f"{where}: {len(form)} values for {len(wanted)}"
        pairs = [*enumerate(zip(form, wanted, strict=False))]
    elif isinstance(form, Mapping) and isinstance(wanted, Mapping):
        if list(form) != list(wanted):
            yield f"{where}: the keys {list(form)} for {list(wanted)}"
        pairs = [(key, (form[key], wanted[key])) for key in form.keys() & wanted.keys()]
    for key, (one, other) in pairs:
        yield from _form_differences(sdfg, names, one, other, f"{where}[{key!r}]")


def _container_differences(container: Any, form: Result, wanted: Any, where: str) -> Iterator[str]:
    value = np.asarray(wanted)
    dtype = np.dtype(container.dtype.as_numpy_dtype())
    if dtype != value.dtype and not form.types:
        yield f"{where}: dtype {dtype} for {value.dtype}"
    if form.is_python and not is_python(wanted):
        yield f"{where}: {told_kind(form.is_python)} for {told_kind(is_python(wanted))}"
    shape = tuple(map(str, container.shape))
    if all(extent.isdigit() for extent in shape) and not form.lengths:
        extents = tuple(map(int, shape))
        if extents != value.shape and not (extents == (1,) and value.shape == ()):
            yield f"{where}: shape {list(extents)} for {list(value.shape)}"


# --- on ranks ---


def on_ranks(case: Case, comms: Mapping[int, Any], world: Any, dimension: int = 0) -> Outcome:
    """Run a case on each number of ranks, which follow; rank 0 of the world calls it.

    Args:
        case: on rank 0.
        comms: by their size, communicators of the first so many ranks.
        world: communicator of all.
        dimension: of each space, that is split.
    """
    with _Stages(case.name) as stages:
        wanted, parsed = expected(case), parse(case)
        for ranks, comm in comms.items():
            stages.enter("lower", f"{ranks} ranks: ")
            lowered = lower(parsed, ranks, dimension)
            stages.end(problems(lowered.lowering), lowered.refused)
            stages.enter("compile")
            tell(world, ranks)
            stages.end(_ran(case, wanted, lowered.sdfg, comm, stages), lowered.refused)
    tell(world, 0)
    return stages.outcome


def _ran(case: Case, wanted: Expected, sdfg: SDFG, comm: Any, stages: _Stages) -> list[str]:
    """In what a lowered program differs from NumPy, when it is called on the ranks of comm."""
    with distspmd.compile(sdfg, comm) as program:
        stages.enter("run")
        after = case.bound_to(*case.arguments())
        signature, form = program.signature, program.signature.call_form
        passed = _passed(case, after, {*signature.parameters, *form.inside, *form.parts})
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = program(**passed)
    found = _wrong(case, wanted, result, after)
    return found or [*printed_differences(out.getvalue(), wanted.printed)]


def _passed(case: Case, bound: Arguments, parameters: Collection[str]) -> Arguments:
    """Of the arguments those that the program takes; the others have become part of it."""
    every = {**case.defaults(), **bound}
    return {name: value for name, value in every.items() if name in parameters}


def _wrong(case: Case, wanted: Expected, result: Any, after: Arguments) -> list[str]:
    """In what results differ from NumPy's, by more than its own do where rounding differs."""
    result = listed(result)
    found = _differences(case, wanted, result, after, {})
    if not found:
        return found
    changed = {name: v for name, v in wanted.after.items() if _is_compared(v)}
    return _differences(case, wanted, result, after, movements(case, wanted.result, changed))


def _differences(
    case: Case, wanted: Expected, result: Any, after: Arguments, rounding: Mapping[str, float]
) -> list[str]:
    tolerance, kinds = case.tolerance(), case.field == NUMBERS_OF_PYTHON
    said = differences(result, wanted.result, "result", tolerance, kinds=kinds, rounding=rounding)
    found = list(said)
    for name, value in wanted.after.items():
        if _is_compared(value):
            found += differences(after[name], value, name, tolerance, rounding=rounding)
    return found


def _is_compared(value: Any) -> bool:
    return isinstance(value, np.ndarray) or contains_arrays(value)


def run_here(case: Case) -> Outcome:
    """Run a case on this one rank, without a launch."""
    from mpi4py import MPI

    with _Stages(case.name) as stages:
        wanted, parsed = expected(case), parse(case)
        stages.enter("lower")
        lowered = lower(parsed, 1)
        stages.enter("compile")
        stages.end(_ran(case, wanted, lowered.sdfg, MPI.COMM_SELF, stages), lowered.refused)
    return stages.outcome
