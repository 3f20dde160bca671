"""Variables after loops are what they were in the last iteration, before it moved on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramError
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT


def counters(x):
    i = k = 0
    while x[i] < 1.0 and i < 4:
        i += 1
        doubled = i * 2
        pair = (i, x[i])
        table = {"i": i + 1}
        several = [i, k]
        k += 3
    for j in range(3):
        k += 2
        known = k + j
        if x[j] > 0.9:
            break
    return doubled, pair, table["i"], several[1], k, known, i


def first_above(x, threshold):
    i = 0
    while True:
        i += 1
        if x[i] > threshold:
            return i, x[i]


def arrays(x):
    total, a, b = 1.0, 1, 1
    u = x.copy()
    for t in range(4):
        before, part = u, u[1:]
        last_total = total
        pair = (a, b)
        a, b = b, a + b
        total = total + x[t]
        chosen = x[u > 0.3]
        u = u * 0.5
    part += 1
    return before, part, u, last_total, total, pair, chosen


def steps(x):
    i = 0
    while i < 4:
        yield i, x[i]
        i += 1
    for k in range(2):
        yield k + 10, x[k]


def nested_and_generated(x):
    total = 0
    for i in range(3):
        k = 0
        while x[k] < 0.9 and k < 5:
            last = k
            k += 1
        total += last + i
    for number, value in steps(x):
        found = (number, value)
    return total, last, found, first_above(x, 0.2), closures(x)


def closures(x):
    n = 0
    while n < 3:
        window = x[n : n + 2]
        n += 1
    window = window * 2
    return window, n


def no_iteration(x):
    i, last = 0, -1
    while i < 4 and x[i] > 5:
        last = i
        i += 1
    return last, i


def all_of_them(x):
    return counters(x), arrays(x), nested_and_generated(x), no_iteration(x)


def find(x, threshold):  # noqa: RET503
    for i in range(5):
        if x[i] > threshold:
            return i


def newton(f, slope, x, tolerance):
    for k in range(6):
        step = f(x) / slope(x)
        x = x - step
        if abs(step) < tolerance:
            return x, k
    return None


def bisect(f, low, high):
    if f(low) * f(high) >= 0:
        return None
    for _ in range(8):
        middle = (low + high) / 2
        if f(low) * f(middle) < 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def sign(value):  # noqa: RET503
    if value > 0.5:
        return 1.0
    if value <= 0.5:
        return -1.0


def or_else(value, other):
    if value is None:
        return other
    return value + 1.0


def absent_or_not(x):
    root, count = newton(lambda y: y * y - x[0], lambda y: 2 * y, 1.0, 1e-6)
    missing = bisect(lambda y: y - x[0] - 100, 0.0, 2.0)
    there = bisect(lambda y: y - x[0], 0.0, 2.0)
    out = np.zeros(5)
    out[0] = 5.0 if missing is None else missing
    if there is not None:
        out[1] = there
    out[2] = there * 2
    nowhere, somewhere = find(x, 50.0), find(x, 0.5)
    if nowhere is None:
        out[3] = x[somewhere] if somewhere is not None else 0.0
    best = None
    for i in range(4):
        if x[i] > 0.3 and (best is None or x[i] < best):
            best = x[i]
    out[4] = or_else(best, -1.0) + or_else(missing, -1.0) + sign(x[1]) + sign(x[2])
    return out, root, count, best, nowhere


def outcome_of(function: Any) -> Any:
    return run_here(
        Case(function.__name__, function, "", "", lambda rng: (0.1 + 0.7 * rng.random(7),), ())
    )


@pytest.mark.parametrize("function", [all_of_them, absent_or_not])
def test_results_are_numpys(function: Any) -> None:
    found = outcome_of(function)
    assert found.kind == RIGHT, found.reason


def needs_a_root(x):
    return bisect(lambda y: y - x[0] - 100, 0.0, 2.0) * 2


def test_none_that_is_computed_with_ends_the_program() -> None:
    lowering = distspmd.lower(numpy_program(needs_a_root, np.zeros(3)))
    with (
        distspmd.compile(lowering, MPI.COMM_SELF) as program,
        pytest.raises(TypeError, match=r"'result' is None or .* it is None"),
    ):
        program(x=np.zeros(3))


def lowest(x: Any, limit: int) -> Any:
    """Numbers of which the run decides whether they are whole, and whether Python's."""
    best = first = float("inf")
    largest, half = 0, 0
    for v in x:
        if v < best:
            best = v
        first = min(first, int(v))
        if v > largest:
            largest = v / 2
    if x[0] > limit:
        half = 0.5
    pair = (float("inf"), None)
    for i in range(len(x) - 1):
        if abs(x[i] - x[i + 1]) < pair[0]:
            pair = (abs(x[i] - x[i + 1]), i)
    below = x[0] if x[0] < limit else limit + 0.5
    return best, first, largest, half, pair, below, best / 2


@pytest.mark.usefixtures("unoptimised")
def test_the_run_decides_types() -> None:
    x = np.array([5, 2, 8, 2])
    lowering = distspmd.lower(numpy_program(lowest, x, limit=4))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        for values in (x, -x, x * 0 + 9, x * 0):
            found, wanted = program(x=values), lowest(values, 4)
            assert str(found) == str(wanted)  # np.int64(2), and 2, and 2.0
        with pytest.raises(ProgramError, match=r"9.22.*e.18 is kept as float64, and may be"):
            program(x=x * 0 + (2**63 - 1))


def test_numbers_of_types_that_the_run_decides_are_printed_as_what_they_are() -> None:
    def told(x: Any) -> Any:
        best = np.inf
        for v in x:
            if v < best:
                best = v
        print(f"the least is {best}")
        return best

    for given in (np.arange(3), np.arange(3, dtype=float), np.full(3, np.inf)):
        case = Case("told", told, "", "", lambda _, x=given: [x.copy()], ())  # type: ignore[misc]
        assert on_paper(case).kind == "right"


def test_numbers_are_copied_and_typed_only_where_it_is_seen() -> None:
    def orbit(x: Any) -> Any:
        z, best = x[0], np.inf
        for n in range(9):
            if z < 4.0:
                t = z * z
                z = t
            if n * 2 > best:
                best = n
        return z, best + 0.5

    arrays = set(numpy_program(orbit, np.ones(3)).arrays)
    assert "z" in arrays or "__return_0" in arrays
    assert not arrays & {"z_1", "best_type", "best_type_1"}
