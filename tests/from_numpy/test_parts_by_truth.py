"""Truth values as indices, masked parts of new arrays, and lengths of the run in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.masked_rows import CASES, turned_around

X = np.random.default_rng(3).random(6)


def one_truth_value(x):
    m = np.sum(x) > 1
    out = np.empty(x.shape)
    out[m] = x[m] * 2
    out[~m] = 3.0
    y = np.zeros(3)
    y[x[0] > 0.5] = 1
    a = np.asarray(x[0])
    a[a > 0.2] = 7
    z = np.zeros(())
    z[x[1] < 0.9] = x[1]
    w = np.ones((2, 3))
    w[~m] += x[:3]
    return out, y, x[m], x[~m], a, z, x[True], x[False].shape, x[m, 1:3], w, len(w[~m])


def parts_of_new_arrays(x):
    """Of an array that nothing has written a mask leaves any elements."""
    linear = x < 0.4
    out = np.empty(x.shape)
    out[linear] = x[linear] / 12.92
    out[~linear] = x[~linear] ** 2.4
    rows = np.empty((len(x), 2))
    rows[linear, 0] = x[linear]
    rows[~linear, 0] = 1
    rows[:, 1] = out
    kept = np.empty(x.shape)
    kept[:] = 4.0
    kept[linear] = 1.0
    return np.ones((2, 2)) @ rows.T, kept


def lengths_in_branches(x):
    m = x > 0.5
    if np.any(m):
        q = np.zeros(len(x[m]))
        q[:] = x[m] + 1
        x[m] = q
        q = np.ones(int(x[0] * 3))
    else:
        q = np.ones(3)
    return x, q


def lengths_in_loops(x):
    total, k = 0.0, 0
    for i in range(40):
        q = np.ones(int(x[i % 5] * 4) + i % 2)
        total += q.sum() + len(q)
    while k < 6:
        n = int(x[k % 5] * 3)
        z = np.zeros((n, 2))
        z += k
        total += z.sum()
        k += 1 + n
    return total


PROGRAMS = [one_truth_value, parts_of_new_arrays, lengths_in_branches, lengths_in_loops]


def case_of(function: Any) -> Case:
    return Case(function.__name__, function, "", "", lambda _: [X.copy()], ())


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs_mean_what_numpy_means(function: Any) -> None:
    outcome = on_paper(case_of(function))
    assert outcome.kind == "right", outcome.reason


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("function", PROGRAMS)
def test_compiled_programs_mean_what_numpy_means(function: Any) -> None:
    outcome = run_here(case_of(function))
    assert outcome.kind == "right", outcome.reason


def test_rows_that_a_mask_keeps_are_those_of_numpy(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.masked_rows", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


def test_rows_that_a_mask_keeps_stay_where_they_are() -> None:
    f, m = np.ones((64, 32, 4)), np.ones((64, 32), bool)
    lowering = distspmd.lower(numpy_program(turned_around, f, m, host="refuse"), ranks=4)
    assert lowering.ranks == 4
    row = 32 * 4 * 8
    moved = [
        (move.times or 0) * move.solution.cost.nbytes
        for move in lowering.memlets
        if (move.times or 0) > 1
    ]
    assert sum(moved) <= 3 * 4 * 2 * row
