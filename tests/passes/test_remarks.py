"""What a lowering says of spaces that run whole, and of loops that move more than they compute.

Bytes that are expected are those of textbooks, of matrices of N x N elements over P ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering

N, STEPS, P = 32, 5, 4
MATRIX = 8 * N * N
ROWS = sum(min(N - 1, 4 * max(1, -(-length // 4))) for length in range(N))
"""Elements of a triangle of rows, whose lengths are multiples of an eighth of the longest."""


def factors(a: Any) -> None:  # LU
    for k in range(N - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def pivoted(a: Any) -> None:  # LU with partial pivoting
    for k in range(N - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        row = np.copy(a[k])
        a[k] = a[p]
        a[p] = row
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def cholesky(a: Any) -> None:
    for k in range(N):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k + 1 :, k])


def triangular(a: Any, b: Any) -> None:
    for k in range(N):
        b[k, :] = b[k, :] / a[k, k]
        b[k + 1 :, :] -= np.outer(a[k + 1 :, k], b[k, :])


def orthogonal(a: Any) -> Any:  # QR, by the modified Gram-Schmidt process
    q = np.zeros((N, N))
    for k in range(N):
        q[:, k] = a[:, k] / np.sqrt(a[:, k] @ a[:, k])
        a[:, k + 1 :] -= np.outer(q[:, k], q[:, k] @ a[:, k + 1 :])
    return q


def classical(a: Any) -> Any:  # QR, by the classical Gram-Schmidt process
    q = np.zeros((N, N))
    for k in range(N):
        v = a[:, k] - q[:, :k] @ (q[:, :k].T @ a[:, k])
        q[:, k] = v / np.sqrt(v @ v)
    return q


def reflected(a: Any) -> None:  # QR, by Householder's reflections
    for k in range(N - 1):
        v = np.copy(a[k:, k])
        v[0] += np.sign(v[0]) * np.sqrt(v @ v)
        v /= np.sqrt(v @ v)
        a[k:, k:] -= 2 * np.outer(v, v @ a[k:, k:])


def directions(u: Any) -> None:  # ADI
    for _t in range(STEPS):
        for k in range(1, N):
            u[:, k] = 0.5 * u[:, k] + 0.25 * u[:, k - 1]
        for k in range(1, N):
            u[k, :] = 0.5 * u[k, :] + 0.25 * u[k - 1, :]


def fourier(x: Any) -> Any:
    return np.fft.fft(np.fft.fft(x, axis=1), axis=0)


def mirrored(a: Any) -> None:  # elements in order
    for i in range(1, N):
        for j in range(1, N):
            a[i, j] = a[i - 1, N - 1 - j] + a[i, j - 1]


def antidiagonals(a: Any) -> None:  # a wavefront whose maps run over what is there
    for d in range(2, N + 1):
        for i in distspmd.map[1:d]:
            a[i, d - i] = a[i - 1, d - i] + a[i, d - i - 1]


def guarded(a: Any) -> None:  # the same, whose maps run over all rows
    for d in range(2, 2 * N - 1):
        for i in distspmd.map[1:N]:
            if d - i >= 1 and d - i < N:
                a[i, d - i] = a[i - 1, d - i] + a[i, d - i - 1]


def stencil(a: Any) -> None:
    for _t in range(STEPS):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def lowered(function: Callable[..., Any], schedule: Any, arrays: int = 1) -> Lowering:
    sdfg = numpy_program(function, *[np.ones((N, N))] * arrays)
    if schedule == "all":
        spaces = distspmd.iteration_spaces(sdfg)
        schedule = {s.name: (P, *[1] * (len(s.parameters) - 1)) for s in spaces if s.parameters}
    return distspmd.lower(sdfg, schedule)


def in_loops(lowering: Lowering) -> dict[str, int]:
    """Bytes of each container that plans move in loops, without what loops choose at run time."""
    found: dict[str, int] = {}
    for memlet in lowering.memlets:
        if (memlet.times or 0) > 1:
            nbytes = (memlet.times or 0) * memlet.solution.cost.nbytes
            found[memlet.data] = found.get(memlet.data, 0) + nbytes
    return found


def said(lowering: Lowering) -> list[str]:
    return [sentence for sentence in lowering.sentences if "loops move" in sentence]


@pytest.mark.parametrize(
    ("function", "schedule", "arrays", "expected"),
    [
        (factors, {"a.2": (P, 1)}, 1, {}),  # panels alone, which loops choose
        (factors, {"a.2": (1, P)}, 1, {}),
        (cholesky, {"a.3": (P, 1)}, 1, {}),
        (cholesky, {"a.3": (1, P)}, 1, {}),
        (cholesky, {"a.3": (2, P // 2)}, 1, {}),
        (triangular, {"b.2": (P, 1)}, 2, {}),
        (triangular, {"b": (P,), "b.2": (1, P)}, 2, {}),  # right-hand sides know no other
        (
            orthogonal,  # rows: a sum of a number, and of what a row of R has
            {
                "a_slice_matmul_a_slice": (P,),
                "__return.2": (P,),
                "q_slice_matmul_a_slice": (1, P),
                "a": (P, 1),
            },
            1,
            {
                "a_slice_matmul_a_slice": 8 * 2 * (P - 1) * N,
                "q_slice_matmul_a_slice": 8 * 2 * (P - 1) * ROWS,
            },
        ),
        (
            classical,
            {
                "q_slice_T_matmul_a_slice": (1, P),
                "q_slice_matmul_expr": (P, 1),
                "__return.2": (P,),
            },
            1,
            {
                "q_slice_T_matmul_a_slice": 8 * 2 * (P - 1) * ROWS,
                "v_matmul_v": 8 * 2 * (P - 1) * N,
            },
        ),
        (directions, "all", 1, {"u": 2 * STEPS * MATRIX * (P - 1) // P}),  # two transposes a step
        (stencil, "all", 1, {"a": STEPS * 2 * (P - 1) * 8 * (N - 2)}),  # rims
    ],
)
def test_loops_of_schedules_by_experts_move_what_textbooks_say(
    function: Any, schedule: Any, arrays: int, expected: dict[str, int]
) -> None:
    found = lowered(function, schedule, arrays)
    assert in_loops(found) == expected
    assert not said(found)


def test_panels_that_a_loop_chooses_are_weighed_once_a_sweep() -> None:
    for function, name in ((factors, "a.2"), (cholesky, "a.3")):
        (home,) = lowered(function, {name: (P, 1)}).homes
        assert home.traffic < 3 * P * MATRIX  # in and out, and a matrix for each rank


def test_pivots_by_columns_move_nothing_but_panels() -> None:
    """Rows are swapped where they lie; a column is looked through, and subtracted, by all ranks."""
    found = lowered(pivoted, {"a.4": (1, P)})
    assert in_loops(found) == {}
    panels = [fetch.received or 0 for fetch in found.fetches]
    assert all(fetch.data == "a" for fetch in found.fetches)
    assert 0 < sum(panels) <= 3 * MATRIX
    assert not said(found)


def test_two_transforms_transpose_once() -> None:
    sdfg = numpy_program(fourier, np.ones((N, N), complex))
    found = distspmd.lower(sdfg, {"fft_x": (P,), "__return": (P,)})
    between = [memlet for memlet in found.memlets if memlet.data not in ("x", "__return")]
    assert sum(m.solution.cost.nbytes for m in between) == 2 * MATRIX * (P - 1) // P


@pytest.mark.parametrize(
    ("function", "schedule", "arrays", "name", "line"),
    [
        (factors, {"a": (P,), "a.2": (1, P)}, 1, "a", "for k in range(N - 1)"),
        (cholesky, "all", 1, "a", "np.sqrt(a[k, k])"),
        (triangular, "all", 2, "b", "b[k, :] / a[k, k]"),
    ],
)
def test_loops_that_move_more_than_they_compute_are_named_with_what_to_write(
    function: Any, schedule: Any, arrays: int, name: str, line: str
) -> None:
    found = lowered(function, schedule, arrays)
    (sentence,) = [each for each in said(found) if f"of {name!r}" in each]
    assert sentence.startswith("test_remarks.py:")
    assert sentence in str(found)
    assert sentence in str(distspmd.explain(found))
    instead = ast.literal_eval(sentence[sentence.index("{") : sentence.index("}") + 1])
    assert name not in in_loops(lowered(function, instead, arrays))
    assert in_loops(found)[name] > MATRIX * 4


@pytest.mark.parametrize("function", [orthogonal, classical, reflected])
def test_panels_that_each_rank_gets_often_are_named(function: Any) -> None:
    found = lowered(function, "all")
    assert any("more than 2 times for each rank" in each for each in said(found))


def test_antidiagonals_fetch_the_elements_that_they_read() -> None:
    """An element from the rows above, for each rank but the first: found when the program runs."""
    found = lowered(antidiagonals, "all")
    assert in_loops(found) == {}
    (fetch,) = found.fetches
    assert fetch.inspection == "i - 1, d - i"
    assert fetch.solution.cost.nbytes < MATRIX / 16  # what could be: a row for each
    assert not said(found)


def test_a_guard_in_a_map_does_not_hide_that_it_reads_elements() -> None:
    found = lowered(guarded, "all")
    assert in_loops(found) == {}
    (fetch,) = found.fetches
    assert fetch.inspection == "d - i - 32*int_floor(d - i + 32, 32) + 32"  # it may be below zero
    assert fetch.solution.cost.nbytes == (P - 1) * MATRIX // N  # what could be: a row for each
    assert not said(found)


def test_elements_in_order_are_computed_where_they_are() -> None:
    found = lowered(mirrored, "all")
    assert in_loops(found) == {}


def test_what_runs_whole_is_said_with_its_seconds() -> None:
    found = lowered(factors, {"a": (1,), "a.2": (1, P)})
    (sentence,) = [each for each in found.sentences if "run whole" in each]
    seconds = float(sentence.split("(")[1].split(" s")[0])
    own = sum(space.work.seconds(found.machine) for space in found.spaces if space.name == "a")
    assert seconds == pytest.approx(own, rel=0.05)
