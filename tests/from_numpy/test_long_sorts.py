"""Long lines are sorted in parts: ranks sort their own, and each element moves once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.arrays import lines
from distspmd.plans import Machine

RNG = np.random.default_rng(0)


def orders(x: Any, k: Any, z: Any) -> Any:
    y = x * 2
    y.sort()
    return (
        np.sort(x)[::-1],
        np.argsort(k, kind="stable"),
        k[k.argsort()],
        y,
        np.sort(z),
        np.sort(k > 3),
        np.sort(k.astype(np.int8)),
        np.argsort(z.reshape(-1, 1), axis=None, kind="stable"),
        np.partition(x, 5)[:5].max(),
    )


def quantiles(x: Any, k: Any) -> Any:
    return (
        np.median(x),
        np.median(k),
        np.median(x[:-1]),
        np.percentile(x, [0, 3, 50, 99.9, 100]),
        np.quantile(k, 0.3),
        np.nanmedian(np.where(x > 0.2, x, np.nan)),
        np.median(np.where(x > 0.2, x, np.nan)),
        np.quantile(x, k[:3] / 10),
        np.percentile(x[:1], 30),
        *(np.quantile(x, [0, 0.31, 1], method=m) for m in ("hazen", "inverted_cdf", "weibull")),
        *(np.quantile(x, 0.005, method=m) for m in ("lower", "closest_observation", "midpoint")),
    )


def different(x: Any, k: Any) -> Any:
    with_nan = np.where(x > 0.2, np.round(x, 1), np.nan)
    counts = np.unique(k, return_counts=True)
    return (
        np.unique(k),
        *counts,
        np.unique(with_nan),
        np.unique(with_nan, equal_nan=False).size,
        *np.unique(k, return_inverse=True),
        len(np.unique(x)),
    )


def chosen(x: Any, k: Any) -> Any:
    above = x[x > 0.3]
    return (
        above,
        np.cumsum(above),
        np.flatnonzero(k == 2),
        k[x > 9].size,
        np.nonzero(k)[0],
        x[k],
        np.compress(k > 3, x),
        np.where(x > 0)[0] * 2,
        above[-2:] * 2,
        (k > 4)[x > 0],
        x[np.flatnonzero(x < -1)],
    )


@pytest.mark.parametrize("function", [orders, quantiles, different, chosen])
def test_orders_are_those_of_numpy(
    unoptimised: None, monkeypatch: pytest.MonkeyPatch, function: Any
) -> None:
    monkeypatch.setattr(lines, "LONG", 1)
    x, k = RNG.standard_normal(211), RNG.integers(0, 9, 211)
    given = (x, k, x.round(1) + 1j * k)[: 3 if function is orders else 2]
    numpy_program(function, *given, host="refuse")
    program = distspmd.program(function)
    for found, wanted in zip(program(*given), function(*given), strict=True):
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_array_equal(found, wanted)
    program.close()


def repeated(x: Any, y: Any) -> Any:
    for _t in range(3):
        x[:] = np.sort(np.sin(x) * y)
        y[:] = y[np.argsort(x)]
        y += np.median(x) + np.percentile(x, 90)
    return np.unique(x).size


def test_a_search_splits_sorts_and_gathers_no_line() -> None:
    n = 1 << 20
    lowering = distspmd.lower(
        numpy_program(repeated, *RNG.random((2, n))), ranks=4, machine=Machine()
    )
    distspmd.verify(lowering)
    assert {sort.is_split for sort in lowering.on_lines} == {True}
    plans = [(m.data, m.solution.plan) for m in lowering.memlets if (m.times or 0) > 1]
    assert max(plan.received(rank) for _, plan in plans for rank in range(4)) < 1 << 10
    (sort, *_) = lowering.on_lines
    assert (sort.expected_bytes, sort.most_bytes) == (8 * n * 3 // 4, 8 * n)


@pytest.mark.parametrize("device", [None, pytest.param("emulated", marks=pytest.mark.slow)])
def test_sorts_are_right_on_ranks_and_in_loops(device: str | None) -> None:
    given = dict(zip("xy", RNG.random((2, 10_007)), strict=True))
    lowering = distspmd.lower(numpy_program(repeated, *given.values()), ranks=3)
    example = {"examples": given, "inputs": given, "device": device}
    distspmd.check(repeated, lowering.schedule, 3, runs=1, **example)


def closing_up(x: Any, y: Any) -> Any:
    total = 0.0
    for t in range(3):
        x *= y + 0.1
        above = np.cumsum(x[x > 0.5])
        places = np.flatnonzero(y > 0.9)
        total += above[-1] + places[t]
    return total, above


def test_chosen_elements_move_once_and_no_line_is_gathered() -> None:
    n = 1 << 20
    sdfg = numpy_program(closing_up, *RNG.random((2, n)))
    lowering = distspmd.lower(sdfg, ranks=4, machine=Machine())
    distspmd.verify(lowering)
    assert [(s.chooses, s.most_bytes) for s in lowering.on_lines] == [(True, 8 * n * 3 // 4)] * 2
    plans = [m.solution.plan for m in lowering.memlets if (m.times or 0) > 1]
    assert max(plan.received(rank) for plan in plans for rank in range(4)) < 1 << 14


def test_elements_are_chosen_on_ranks() -> None:
    given = dict(zip("xy", RNG.random((2, 40_009)), strict=True))
    lowering = distspmd.lower(numpy_program(closing_up, *given.values()), ranks=3)
    distspmd.check(closing_up, lowering.schedule, 3, examples=given, inputs=given, runs=1)
