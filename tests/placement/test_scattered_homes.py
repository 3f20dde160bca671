"""Results of which ranks write operands: parts of them live on the ranks where that moves less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dace
import numpy as np
import pytest
from lowering.on_paper import problems

import distspmd
from distspmd.plans.collectives import StepKind

N, K = 64, 48


def product(a: dace.float32[N, K], b: dace.float32[K, N]):
    return a @ b


def transposed_times_vector(a: dace.float32[N, K], x: dace.float32[N]):
    return a.T @ x


def sums_of_rows(a: dace.float32[N, K]):
    return np.sum(a, axis=1)


def gradient(x: dace.float32[N, K], g: dace.float32[N, 30]):
    return x.T @ g


def uneven(a: dace.float32[13, K], b: dace.float32[K, 7]):
    return a @ b


def gradient_step(x: dace.float32[N, K], g: dace.float32[N, 30], w: dace.float32[K, 30]):
    w -= 0.1 * (x.T @ g)


def of_result(function: Callable[..., Any], schedule: Mapping[str, Any], **options: Any) -> Any:
    lowering = distspmd.lower(function, schedule, **options)
    assert not [*problems(lowering)]
    return [memlet for memlet in lowering.memlets if memlet.solution.plan.redistribution.reduction]


@pytest.mark.parametrize(
    ("function", "grid", "nbytes"),
    [
        (product, (1, 1, 4), 3 * 4 * N * N),
        (product, (2, 1, 2), 4 * N * N),
        (product, (2, 2, 2), 4 * N * N),
        (transposed_times_vector, (1, 4), 3 * 4 * K),
        (sums_of_rows, (1, 4), 3 * 4 * N),
        (gradient, (1, 1, 4), 3 * 4 * K * 30),
        (uneven, (2, 1, 3), 2 * 4 * 13 * 7),
    ],
)
def test_a_result_in_tiles_is_reduced_in_parts(
    function: Callable[..., Any], grid: tuple[int, ...], nbytes: int
) -> None:
    (memlet,) = of_result(function, {"__return": grid}, results="distributed")
    kinds = {step.kind for step in memlet.solution.plan.steps} - {StepKind.COPY}
    assert kinds == {StepKind.REDUCE_SCATTER}
    assert memlet.solution.cost.nbytes == nbytes  # of an all-reduce twice as many


def test_what_all_ranks_want_is_reduced_for_all() -> None:
    (memlet,) = of_result(product, {"__return": (1, 1, 4)}, results="replicated")
    target = memlet.solution.plan.redistribution.target
    assert str(target) == "[64, 64]"


def test_what_rank_0_wants_is_reduced_for_it() -> None:
    (memlet,) = of_result(product, {"__return": (1, 1, 4)})
    assert memlet.to_caller


def test_a_search_knows_that_results_are_reduced_in_parts() -> None:
    lowering = distspmd.lower(gradient, {"__return": (1, 1, 4)}, ranks=4, results="distributed")
    (home,) = [home for home in lowering.homes if home.data == "__return"]
    assert [home.layout.shape(rank) for rank in range(4)] == [(12, 30)] * 4
