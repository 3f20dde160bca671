"""All programs of the corpus, as plain NumPy runs them: ``python -m from_numpy.run_in_numpy``."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import traceback
import warnings
from collections import Counter

import numpy as np

from from_numpy.conditions import moved
from from_numpy.corpus import CORPUS, Case
from from_numpy.outcomes import differences


def problem(case: Case) -> str:
    """What is wrong with a program that NumPy runs: an exception or an unmeant warning."""
    arguments, named = case.arguments()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore" if case.warns else "error")
            case.function(*arguments, **named)
    except Exception:
        return traceback.format_exc(limit=-1)
    return ""


def sensitivity(case: Case) -> str:
    """What of the results changes by more than is allowed where inputs change by a rounding."""
    arguments, named = case.arguments()
    others, also_named = case.arguments()
    rng = np.random.default_rng(0)
    others, also_named = moved(others, rng), moved(also_named, rng)
    allowed = case.tolerance()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        wanted = case.function(*arguments, **named)
        found = case.function(*others, **also_named)
    return "; ".join(differences(found, wanted, tolerance=allowed))


def main() -> None:
    """Run all; print those that end in an exception, and how many there are of each field."""
    start, bad = time.perf_counter(), 0
    for case in CORPUS.values():
        begin = time.perf_counter()
        found = problem(case) or sensitivity(case)
        seconds = time.perf_counter() - begin
        if found or seconds > 0.5:
            bad += bool(found)
            print(f"{case.name}: {seconds:.2f} s {found}")
    programs = {case.function: case.field for case in CORPUS.values()}
    for field, count in sorted(Counter(programs.values()).items()):
        print(f"{field:24}{count:4}")
    print(f"{len(programs)} programs, {len(CORPUS)} cases, {time.perf_counter() - start:.1f} s")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
