"""The cost of an iteration: operations by their weight, and lines of the nearest cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.expressions.operations import OPERATIONS
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine
from distspmd.runtime.measure.hosts import EXPONENTIAL
from distspmd.scheduling.prediction import Prediction

N = 512


def added(a: Any) -> Any:
    return a + 1


def raised(a: Any) -> Any:
    return np.exp(a)


def turned(a: Any, b: Any) -> Any:
    return a.T + b


def predicted(function: Any, arrays: int, schedule: Any, machine: Machine) -> Prediction:
    sdfg = numpy_program(function, *[np.ones((N, N))] * arrays)
    held = {name: "distributed" for name in sdfg.arglist() if name in sdfg.arrays}
    lowering = distspmd.lower(sdfg, {"__return": schedule}, arguments=held, machine=machine)
    return distspmd.predict(lowering)


def test_a_function_takes_more_than_an_addition() -> None:
    machine = Machine(operation=1.0, stream=0.0, launch=0.0)
    plain, function = (predicted(f, 1, (2, 1), machine).compute for f in (added, raised))
    assert plain == N * N / 2
    assert function == 15 * plain


def raised_single(a: Any) -> Any:
    return np.exp(a.astype(np.float32))


def added_twice(a: Any) -> Any:
    return np.sqrt(a) + a * a + a * 3.0 + a + 2.0 + a * a * a


def test_functions_take_longer_where_they_are_most_of_the_work() -> None:
    machine = Machine(operation=1.0, function=3.0, single=0.5, stream=0.0, launch=0.0)
    found = [predicted(f, 1, (2, 1), machine).compute for f in (added, raised, raised_single)]
    assert found == [N * N / 2, 45 * N * N / 2, 22.5 * N * N / 2]
    plain = predicted(added_twice, 1, (2, 1), machine).compute
    assert plain == predicted(added_twice, 1, (2, 1), replace(machine, function=1.0)).compute


def test_an_exponential_is_measured_as_it_is_counted() -> None:
    assert OPERATIONS["exp"].work == EXPONENTIAL


@pytest.mark.parametrize(
    "schedule",
    [(4, 1), (1, 1), (1, 2), (1, 4), (2, 2)],
)
def test_what_is_read_across_its_rows_comes_again_where_the_nearest_cache_is_too_small(
    schedule: tuple[int, int],
) -> None:
    """A sweep along a row of the result goes through as many lines as the row has elements."""
    machine = Machine(operation=0.0, stream=1.0, launch=0.0)
    once = predicted(turned, 2, schedule, machine).compute
    ranks = schedule[0] * schedule[1]
    assert once == 3 * 8 * N * N / ranks
    for lines, again in ((N // schedule[1], 0), (N // schedule[1] - 1, 64 * N * N / ranks)):
        near = Machine(operation=0.0, stream=1.0, launch=0.0, near=64 * lines)
        assert predicted(turned, 2, schedule, near).compute == once + again


def test_a_search_splits_rows_that_the_nearest_cache_cannot_sweep() -> None:
    """The result is summed along its columns, so that to split its rows moves nothing."""

    def summed(a: Any, b: Any) -> Any:
        c = a.T + b
        return c + np.sum(c, axis=1)[:, None]

    def parts(near: float) -> str:
        machine = Machine(alpha=1e-7, beta=1e-13, copy=1e-13, stream=1e-9, near=near)
        sdfg = numpy_program(summed, np.ones((N, N)), np.ones((N, N)))
        held = {name: "distributed" for name in sdfg.arglist() if name in sdfg.arrays}
        found = distspmd.search(sdfg, 4, machine=machine, arguments=held)
        return next(space.choice for space in found.spaces if space.name == "c")

    assert "i1" not in parts(64 * N)
    assert "i1" in parts(64 * N - 1)
