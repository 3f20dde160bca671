"""Long lines are sorted in parts: ranks sort their own, and each element moves once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.numpy import sorting
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


@pytest.mark.parametrize("function", [orders, quantiles, different])
def test_orders_are_those_of_numpy(
    unoptimised: None, monkeypatch: pytest.MonkeyPatch, function: Any
) -> None:
    monkeypatch.setattr(sorting, "_LONG", 1)
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
    assert {sort.is_split for sort in lowering.sorts} == {True}
    plans = [(m.data, m.solution.plan) for m in lowering.memlets if (m.times or 0) > 1]
    assert max(plan.received(rank) for _, plan in plans for rank in range(4)) < 1 << 10
    (sort, *_) = lowering.sorts
    assert (sort.expected_bytes, sort.most_bytes) == (8 * n * 3 // 4, 8 * n)


@pytest.mark.parametrize("device", [None, pytest.param("emulated", marks=pytest.mark.slow)])
def test_sorts_are_right_on_ranks_and_in_loops(device: str | None) -> None:
    given = dict(zip("xy", RNG.random((2, 10_007)), strict=True))
    lowering = distspmd.lower(numpy_program(repeated, *given.values()), ranks=3)
    example = {"examples": given, "inputs": given, "device": device}
    distspmd.check(repeated, lowering.schedule, 3, runs=1, **example)
