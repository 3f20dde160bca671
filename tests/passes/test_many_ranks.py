"""What lowering and explaining cost grows with the number of ranks, and not with its square.

Calls of functions are counted, not seconds, so that other work on the machine changes nothing.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering

N = 4096


def product(a: Any, b: Any) -> Any:
    return a @ b


def stencil(a: Any) -> None:
    for _t in range(10):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def softmax(a: Any) -> Any:
    e = np.exp(a - np.max(a, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def factors(a: Any) -> None:
    for k in range(N - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def sweeps(u: Any) -> None:
    for _t in range(10):
        for k in range(1, N):
            u[:, k] = 0.5 * u[:, k] + 0.25 * u[:, k - 1]
        for k in range(1, N):
            u[k, :] = 0.5 * u[k, :] + 0.25 * u[k - 1, :]


PROGRAMS: dict[Callable[..., Any], tuple[int, Callable[[int], dict[str, tuple[int, ...]]]]] = {
    product: (2, lambda p: {"__return": (p // 8, 4, 2)}),
    stencil: (1, lambda p: {"a": (p // 16, 16)}),
    softmax: (1, lambda p: {"__return": (p // 4, 4)}),
    factors: (1, lambda p: {"a.2": (p // 16, 16)}),
    sweeps: (1, lambda p: {"u": (p,), "u.2": (p,)}),
}


def lowered(function: Callable[..., Any], ranks: int) -> Lowering:
    arrays, schedule = PROGRAMS[function]
    sdfg = numpy_program(function, *[np.empty((N, N))] * arrays)
    return distspmd.lower(sdfg, schedule(ranks))


def calls(function: Callable[..., Any], ranks: int) -> int:
    """Calls of functions of Python and C that lowering and explaining take."""
    profiler = cProfile.Profile()
    profiler.runcall(lambda: str(distspmd.explain(lowered(function, ranks))))
    return sum(entry.callcount for entry in profiler.getstats())


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_four_times_the_ranks_take_no_more_than_four_times_the_calls(
    function: Callable[..., Any],
) -> None:
    calls(function, 16)  # what is imported and kept
    assert calls(function, 1024) <= 4 * calls(function, 256)


@pytest.mark.parametrize("function", [stencil, factors], ids=lambda function: function.__name__)
def test_the_code_of_a_program_is_as_long_for_many_ranks_as_for_few(
    function: Callable[..., Any],
) -> None:
    few, many = (
        "".join(each.clean_code for each in lowered(function, ranks).sdfg.generate_code())
        for ranks in (64, 1024)
    )
    assert len(many) == pytest.approx(len(few), rel=0.01)  # numbers have more digits or fewer
