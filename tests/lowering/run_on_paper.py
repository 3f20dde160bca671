"""Cases that are not compiled in the quick tier, seen on paper by all cores."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from kernels import KERNELS, ranks_of
from watching import validate_after

from distspmd import pipeline
from distspmd.lowering import ATTRIBUTE
from lowering.harness import Case, parsed
from lowering.mechanisms import COMPILED, COMPILED_KERNELS
from lowering.on_paper import problems
from lowering.programs import CASES

PLANNED: dict[str, Case] = {case.name: case for case in CASES if case.name not in COMPILED} | {
    case.name: case
    for kernel in KERNELS
    for case in [kernel.case(ranks_of(kernel))]
    if kernel.name not in COMPILED_KERNELS
}

_COMPILED_PROGRAMS = {id(case.program) for case in CASES if case.name in COMPILED}

ONCE = frozenset(
    {
        id(case.program): name
        for name, case in reversed(PLANNED.items())
        if id(case.program) not in _COMPILED_PROGRAMS
    }.values()
)
"""Of each program that the quick tier does not compile, the case that it sees on paper."""


def problem(case: Case) -> str:
    """What is wrong with the lowering of a case."""
    try:
        sdfg = case.lowered(parsed(case.program, case.frontend))
        sdfg.validate()
        return "; ".join(problems(getattr(sdfg, ATTRIBUTE)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def problems_of_all(cases: Sequence[Case]) -> dict[str, str]:
    """What is wrong with each case, by its name; the cores share the programs."""
    runs: dict[int, list[Case]] = {}
    for case in cases:
        runs.setdefault(id(case.program), []).append(case)
    names = [[case.name for case in run] for run in runs.values()]
    workers = min(len(os.sched_getaffinity(0)), len(names))
    if workers < 2:
        return _of_names([case.name for case in cases])
    found: dict[str, str] = {}
    # a fresh process each: a copy of this one would have its threads' locks, but not its threads
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for some in pool.map(_of_names, names):
            found |= some
    return found


def _of_names(names: Sequence[str]) -> dict[str, str]:
    """Cases travel as names: programs of DaCe do not. Each pass leaves a valid SDFG."""
    pipeline.observe = validate_after
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: problem(PLANNED[name]) for name in names}
