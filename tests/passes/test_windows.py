"""Sums of what loops choose ever less of: a run adds up about what it wrote, by one of some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering
from distspmd.passes import windows

N = 20


def shrinking(a: Any) -> Any:
    found = np.zeros(N)
    for k in range(N):
        sums = np.sum(a[:, : N - k], axis=0)
        found[: N - k] += sums * sums
    return found


def growing(a: Any) -> Any:
    found = np.zeros(N)
    for k in range(N):
        sums = np.sum(a[:, :k], axis=0)
        found[:k] += sums * sums
    return found


def of_steps(a: Any) -> Any:  # all of it, in each run
    found = np.zeros(N)
    for k in range(N):
        sums = np.sum(a * k, axis=0)
        found += sums * sums
    return found


def of_columns(a: Any) -> Any:  # a triangle of sums of products
    found = np.zeros((N, N))
    for k in range(1, N):
        found[:k, k] = a[:, :k].T @ a[:, k]
    return found


def if_positive(a: Any) -> Any:  # nobody knows how often
    found = np.zeros(N)
    for k in range(N):
        if a[k, 0] > 0.5:
            sums = np.sum(a[:, : N - k], axis=0)
            found[: N - k] += sums * sums
    return found


def lowered(function: Callable[..., Any], ranks: int = 4) -> Lowering:
    """With all sums split."""
    sdfg = numpy_program(function, np.ones((N, N)))
    names = {}
    for space in distspmd.iteration_spaces(sdfg):
        if any(word in space.name for word in ("sum", "matmul")):
            names[space.name] = (1,) * (len(space.parameters) - 1) + (ranks,)
    return distspmd.lower(sdfg, names)


def sums(lowering: Lowering) -> list[tuple[int | None, tuple[int, ...]]]:
    """How often arrays of which length are added up in loops."""
    moves = [(m.times, m.solution.plan.redistribution) for m in lowering.memlets]
    return [(times, move.source.extents) for times, move in moves if move.source.partial]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (shrinking, [(3, 3), (3, 6), (3, 9), (3, 12), (3, 15), (3, 18), (2, 20)]),
        (growing, [(4, 3), (3, 6), (3, 9), (3, 12), (3, 15), (3, 18), (1, 19)]),
        (of_columns, [(3, 3), (3, 6), (3, 9), (3, 12), (3, 15), (3, 18), (1, 19)]),
        (of_steps, [(20, 20)]),
    ],
)
def test_a_run_adds_up_about_what_it_wrote(function: Any, expected: Any) -> None:
    found = [(times, extents[0]) for times, extents in sums(lowered(function))]
    assert found == expected


def test_where_the_runs_are_not_known_all_is_added_up() -> None:
    assert [extents for _, extents in sums(lowered(if_positive))] == [(N,)]


def test_few_windows_that_spare_little_are_not_worth_their_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    monkeypatch.setattr(windows, "HEURISTICS", replace(windows.HEURISTICS, window_gain=0.5))
    assert [extents for _, extents in sums(lowered(shrinking))] == [(N,)]


def test_predicted_bytes_are_those_of_the_windows() -> None:
    lowering = lowered(shrinking)
    moved = sum((m.times or 0) * m.solution.cost.nbytes for m in lowering.memlets if m.times != 1)
    assert moved == 8 * 2 * 3 * (3 * (3 + 6 + 9 + 12 + 15 + 18) + 2 * 20)
    assert distspmd.predict(lowering).communication > 0


@pytest.mark.parametrize("function", [shrinking, pytest.param(growing, marks=pytest.mark.slow)])
def test_windows_are_right_on_ranks(function: Any) -> None:
    sdfg = numpy_program(function, np.ones((N, N)))
    names = {s.name: (1, 3) for s in distspmd.iteration_spaces(sdfg) if "sum" in s.name}
    checked = distspmd.check(sdfg, names, 3)
    assert checked.difference is None
    assert len(sums(checked.lowering)) == 7
