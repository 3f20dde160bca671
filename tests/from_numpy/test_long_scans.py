"""Scans of long lines are split: blocks apart, their ends, and what is before each block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans import Machine

RNG = np.random.default_rng(0)


def scans(x: Any, k: Any) -> Any:
    return (
        np.cumsum(x * 2),
        k.cumsum(),
        np.maximum.accumulate(x[::-1]),
        np.cumprod(1 + x * 1e-4),
        np.cumsum(x.reshape(-1, 11), axis=None),
        np.minimum.accumulate(k),
    )


@pytest.mark.parametrize("length", [11 * 2979, 11 * 4400, 11 * 9091])  # 2979 * 11 is just enough
def test_long_scans_are_those_of_numpy(unoptimised: None, length: int) -> None:
    given = RNG.random(length), RNG.integers(0, 9, length).astype(np.int32)
    numpy_program(scans, *given, host="refuse")
    program = distspmd.program(scans)
    for found, wanted in zip(program(*given), scans(*given), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-11)
    program.close()


def repeated(x: Any, y: Any) -> None:
    for _t in range(4):
        x[:] = np.cumsum(np.sin(x) * y) * 1e-3


def test_a_search_splits_a_long_scan_of_which_the_ends_of_blocks_move() -> None:
    sdfg = numpy_program(repeated, *RNG.random((2, 1 << 20)))
    lowering = distspmd.lower(sdfg, ranks=4, machine=Machine())
    (parts,) = {s.parts for s in lowering.spaces if s.name in ("x", "cumsum_expr")}
    assert parts == (4,)
    plans = [m.solution.plan for m in lowering.memlets if m.times and m.times > 1]
    assert plans
    assert sum(plan.received(rank) for plan in plans for rank in range(4)) < 1 << 14


def test_a_long_scan_is_right_on_ranks() -> None:
    given = dict(zip("xy", RNG.random((2, 50_003)), strict=True))
    schedule = {"cumsum_expr": (3,), "cumsum_expr_1": (3,), "cumsum_expr_1.3": (3, 1)}
    distspmd.check(repeated, schedule, 3, examples=given, inputs=given, runs=1)
