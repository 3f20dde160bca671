"""Loops that fill lists stay loops if they are long, and are written out where that covers more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dace.sdfg.state import LoopRegion

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.kinds.settling import SHORT
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper

X = np.linspace(0.5, 2.0, 7)


def descended(x: Any) -> Any:
    w, losses = 3.0, []
    for _ in range(400):
        losses.append(np.mean((x - w) ** 2))
        w -= 0.01 * np.mean(w - x)
    return w, np.array(losses)


def relaxed(x: Any) -> Any:
    for _ in range(3):
        x = np.concatenate((x[1:], x[:1] * 0.5))
        x = x - 0.01 * (x - np.roll(x, 1)) * np.mean(x)
        x = np.where(x > 1, x * 0.99, x + 0.01)
    return x[::-1] + 0.0


def of_long_iterations(x: Any) -> Any:
    """Few iterations, each of which is many statements when it is written out."""
    means = []
    for _ in range(SHORT):
        for _ in (1, 2.0, 3, 4.0):
            x = relaxed(relaxed(x))
        means.append(np.mean(x))
    return means, x


def descended_while(x: Any) -> Any:
    w, losses, i = 3.0, [], 0
    while i < 300:
        losses.append(np.mean((x - w) ** 2))
        w -= 0.01 * np.mean(w - x)
        i += 1
    return losses, losses[-1] < losses[0]


def few(x: Any) -> Any:
    found = []
    for i in range(SHORT):
        found.append(x[i % 7] * i)  # noqa: PERF401
    return found


def parts_of_other_lengths(x: Any) -> Any:
    parts = []
    for i in range(SHORT + 8):
        parts.append(x[: i % 3 + 1] * i)  # noqa: PERF401
    return np.concatenate(parts)


def comprehended(x: Any) -> Any:
    angles = [np.cos(x[i % 7] * i) for i in range(200)]
    return np.array(angles), max(angles)


def element_by_element(x: Any) -> Any:
    def clipped(value: Any) -> Any:
        return value if value < 1.5 else 1.5

    return np.array([clipped(value) for value in np.concatenate([x] * 20)])


def rows_that_are_views(x: Any) -> Any:
    table = np.outer(np.arange(50.0), x)
    rows = [table[i] for i in range(50)]
    rows[3][:] = 0
    return table


def last_row_changes(x: Any) -> Any:
    rows = []
    for i in range(50):
        row = x * i
        rows.append(row)
    rows[49][0] = 4
    return np.array(rows), row


def many_views(x: Any) -> Any:
    table = np.outer(np.arange(600.0), x)
    rows = []
    for i in range(600):
        rows.append(table[i])  # noqa: PERF401
    rows[3][:] = 0
    return table


def one_of_before(x: Any) -> Any:
    first, i = x * 2, 0
    rows = [first]
    while np.sum(rows[-1]) < 100:
        rows.append(x * i)
        i += 1
    rows[0] += 1
    return first


def last_of_a_while(x: Any) -> Any:
    row, rows = x * 0, []
    while np.sum(row) < 100:
        row = row + x
        rows.append(row)
    rows[-1] += 1
    return row


def rows_of_a_table(x: Any) -> Any:
    table = np.outer(x, x)
    rows = list(table)
    while np.sum(rows[-1]) < 100:
        rows.append(rows[-1] * 2)
    rows[0][0] = 9
    return table


def own_rows(x: Any) -> Any:
    rows, i = [x * 2], 0
    while np.sum(rows[-1]) < 100:
        rows.append(x * i)
        i += 1
    rows.reverse()
    rows[0] += 1
    for row in rows:
        row *= 2
    return rows[0], rows[2]


def loops(function: Callable[..., Any]) -> int:
    """How many loops the program of a function has."""
    sdfg = numpy_program(function, X)
    return sum(isinstance(r, LoopRegion) for r in sdfg.all_control_flow_regions(recursive=True))


PROGRAMS = [
    descended,
    descended_while,
    few,
    parts_of_other_lengths,
    comprehended,
    element_by_element,
    rows_that_are_views,
    last_row_changes,
    own_rows,
    of_long_iterations,
]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_the_lists_are_those_of_numpy(function: Any) -> None:
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [X.copy()], ()))
    assert outcome.kind == "right", outcome.reason
    assert not outcome.uncompared


def test_long_loops_stay_and_short_ones_are_written_out() -> None:
    assert loops(descended) == 1
    assert loops(descended_while) == 1
    assert loops(comprehended) == 1
    assert loops(element_by_element) == 1
    assert loops(few) == 0
    assert loops(of_long_iterations) < SHORT


def test_what_lists_of_the_run_cannot_hold_is_written_out() -> None:
    assert loops(parts_of_other_lengths) == 0


SHARED = [many_views, one_of_before, last_of_a_while, rows_of_a_table]


@pytest.mark.parametrize("function", SHARED, ids=lambda f: f.__name__)
def test_elements_that_are_arrays_elsewhere_are_not_written(function: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"in Python (both change|it changes with it)"):
        numpy_program(function, X)
