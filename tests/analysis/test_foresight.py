"""What loops choose is foreseen by all ranks: nobody asks, and bytes are known before the run.

Bytes that are expected are those of textbooks, of matrices of N x N elements over P ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering
from distspmd.plans.heuristics import HEURISTICS

N, P = 32, 4


def cholesky(a: Any) -> None:  # right-looking
    for k in range(N):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k + 1 :, k])


def factors(a: Any) -> None:  # LU
    for k in range(N - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def triangular(a: Any, b: Any) -> None:
    for k in range(N):
        b[k, :] = b[k, :] / a[k, k]
        b[k + 1 :, :] -= np.outer(a[k + 1 :, k], b[k, :])


def shortest(p: Any) -> None:  # Floyd and Warshall
    for k in range(N):
        p[:] = np.minimum(p, np.add.outer(p[:, k], p[k, :]))


def eliminated(a: Any, b: Any) -> None:  # Gauss and Jordan
    for k in range(N):
        a[k, k + 1 :] = a[k, k + 1 :] / a[k, k]
        b[k] = b[k] / a[k, k]
        for i, j in distspmd.map[0:N, k + 1 : N]:
            if i != k:
                a[i, j] -= a[i, k] * a[k, j]
        for i in distspmd.map[0:N]:
            if i != k:
                b[i] -= a[i, k] * b[k]


def permuted(x: Any, y: Any, index: Any) -> None:
    for k in range(N):
        for i in distspmd.map[0:N]:
            y[i] += x[index[i], k]
        for i in distspmd.map[0:N]:
            x[i, k] = y[i]


def lowered(function: Callable[..., Any], schedule: Any, *shapes: tuple[int, ...]) -> Lowering:
    arrays = [np.ones(shape) for shape in shapes or [(N, N)]]
    return distspmd.lower(numpy_program(function, *arrays), schedule)


def received(lowering: Lowering) -> int:
    """Elements that ranks receive in loops, of plans and of what is foreseen."""
    planned = (m for m in lowering.memlets if m.times != 1)
    nbytes = sum((m.times or 0) * m.solution.cost.nbytes for m in planned)
    assert all(memlet.foreseen_by is not None for memlet in lowering.fetches)
    return (nbytes + sum(memlet.received or 0 for memlet in lowering.fetches)) // 8


PANELS = N * (N - 1) // 2
"""Elements right of the diagonal: each once, as row or column k is finished."""


@pytest.mark.parametrize(
    ("function", "schedule", "shapes", "least", "most"),
    [
        # Each panel to all others, but those parts of it that they hold.
        (factors, {"a.2": (P, 1)}, 1, PANELS * (P - 1) / 2, PANELS * (P - 1)),
        (factors, {"a.2": (1, P)}, 1, PANELS * (P - 1) / 2, PANELS * (P - 1)),
        (cholesky, {"a.3": (P, 1)}, 1, PANELS * (P - 1) / 2, PANELS * (P - 1) + N * P),
        (cholesky, {"a.3": (1, P)}, 1, PANELS * (P - 1) / 2, PANELS * 2 * (P - 1)),
        # Half a panel to each rank of a row of the grid, and half of one to each of a column.
        (factors, {"a.2": (2, 2)}, 1, PANELS, 2 * PANELS + N * P),
        # Row k of the right-hand sides to those that have rows below.
        (triangular, {"b.2": (P, 1)}, 2, N * N * (P - 1) / 2, N * N * (P - 1)),
        (triangular, {"b": (P,), "b.2": (1, P)}, 2, 0, 0),
        (shortest, {"p": (P, 1)}, 1, N * N * (P - 1), N * N * (P - 1)),
        (shortest, {"p": (2, 2)}, 1, 2 * N * N, 2 * N * N),
    ],
)
def test_loops_receive_what_textbooks_say(
    function: Any, schedule: Any, shapes: int, least: float, most: float
) -> None:
    found = received(lowered(function, schedule, *[(N, N)] * shapes))
    assert least <= found <= most


def test_rows_of_an_elimination_go_to_all_once() -> None:
    found = lowered(eliminated, {"a.2": (P, 1)}, (N, N), (N,))
    assert received(found) <= (PANELS + 2 * N) * (P - 1)


def test_bytes_are_those_of_each_iteration() -> None:
    """LU by even columns: column k to the ranks with columns right of k, but its own."""
    found = lowered(factors, {"a.2": (1, P)})
    (columns,) = [m for m in found.fetches if m.inspection == "__i0, k"]
    tiles = [(low, high) for _, (low, high) in found.homes[0].layout.boxes]
    wanted = sum(
        8 * (N - 1 - k)
        for k in range(N - 1)
        for low, high in tiles
        if high > k + 1 and not low <= k < high
    )
    assert columns.received == wanted
    assert columns.times == N - 1


def test_what_is_foreseen_is_explained_and_counts() -> None:
    found = lowered(factors, {"a.2": (1, P)})
    explained = distspmd.explain(found)
    planned = sum((m.times or 0) * m.solution.cost.nbytes for m in found.memlets)
    assert explained.nbytes == planned + sum(memlet.received or 0 for memlet in found.fetches)
    for memlet in found.fetches:
        assert f"foreseen by all ranks: {memlet.received:,} bytes received in a run" in str(
            explained
        )
        assert f"{memlet.received:,} in a run" in str(found)


def test_what_data_decide_is_asked_for() -> None:
    sdfg = numpy_program(permuted, np.ones((N, N)), np.ones(N), np.arange(N))
    found = distspmd.lower(sdfg, {"y": (P,)})
    decided = [memlet for memlet in found.fetches if "indices" in memlet.inspection]
    assert decided
    assert all(memlet.foreseen_by is None and memlet.received is None for memlet in decided)


def test_loops_of_too_many_iterations_are_foreseen_but_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    from distspmd.analysis import foresight

    few = replace(HEURISTICS, foreseen_iterations=P * (N - 2))
    monkeypatch.setattr(foresight, "HEURISTICS", few)
    found = lowered(factors, {"a.2": (1, P)})
    assert all(m.foreseen_by is not None and m.received is None for m in found.fetches)


@pytest.mark.parametrize(
    "ranks", [4, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (2, 6))]
)
def test_ranks_receive_what_was_foreseen_and_ask_nobody(
    launch: Any, root: Path, ranks: int
) -> None:
    assert "all right" in launch(root / "tests" / "ranks" / "panels.py", ranks=ranks).stdout
