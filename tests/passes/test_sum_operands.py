"""Which sums of partial values are made before they are reduced, counted in bytes of the plans."""

from __future__ import annotations

from typing import Any

import dace
import dace.autodiff  # registers requires_grad_, backward and grad
import numpy as np
import pytest
from parsed_by_dace import numpy_program

import distspmd
from distspmd.lowering import Lowering, Reason
from distspmd.passes import sum_operands

F, N = dace.float64, dace.int64


@dace.program
def added(a: F[10, 7], x: F[10], b: F[10, 7], y: F[10]):
    return np.sum(a, axis=0) + np.sum(b, axis=0)


@dace.program
def scaled(a: F[10, 7], b: F[10, 7], alpha: F):
    return alpha * np.sum(a, axis=0) - alpha * np.sum(b, axis=0) / 3


@dace.program
def scaled_by_arrays(a: F[10, 7], b: F[10, 7], c: F[7]):
    return c * np.sum(a, axis=0) - c * np.sum(b, axis=0)


@dace.program
def through(a: F[10, 7], b: F[10, 7], c: F[7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return np.tanh(2 * p - c - 3 * q)


@dace.program
def read_twice(a: F[10, 7], b: F[10, 7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return np.tanh(p + q), np.sin(p + q)


@dace.program
def multiplied(a: F[10, 7], b: F[10, 7]):
    return np.sum(a, axis=0) * np.sum(b, axis=0)


@dace.program
def also_alone(a: F[10, 7], b: F[10, 7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return p + q, np.sin(p)


@dace.program
def broadcast(a: F[10, 7], b: F[10, 7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    out = np.empty((9, 7), np.float64)
    for i, j in dace.map[0:9, 0:7]:
        out[i, j] = p[j] + q[j]
    return out


@dace.program
def greatest(a: F[10, 7], b: F[10, 7]):
    return np.max(a, axis=0) + np.max(b, axis=0)


@dace.program
def whole_numbers(a: N[10, 7], b: N[10, 7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return np.maximum(p + 2 * q, 3)


@dace.program
def fractions(a: N[10, 7], b: N[10, 7]):
    return np.sum(a, axis=0) // 2 + np.sum(b, axis=0) // 2


@dace.program
def transposed(a: F[10, 7, 5], b: F[10, 5, 7]):
    return np.sum(a, axis=0) + np.transpose(np.sum(b, axis=0))


@dace.program
def by_steps(a: F[10, 7], b: F[10, 7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    t = 2 * p
    return np.tanh(t + q), np.sin(t + q)


@dace.program
def doubled(a: F[10, 7]):
    return 2 * np.sum(a, axis=0)


@dace.program
def tied(x: F[8, 6], w: F[6, 6]):
    w.requires_grad_()
    h = np.tanh(x @ w)
    y = h @ w
    loss = np.sum(y * y)
    loss.backward()
    return w.grad


def lowered(program: Any, **parts: int) -> Lowering:
    """The program with its sums split over ranks along what they add up."""
    sdfg = program.to_sdfg()
    schedule = {
        space.name: {space.parameters[-1]: parts.get(space.name, 4)}
        for space in distspmd.iteration_spaces(sdfg)
        if space.name in ("sum_a", "sum_b", "max_a", "max_b", "p", "q")
    }
    lowering = distspmd.lower(sdfg, schedule)
    for memlet in lowering.memlets:
        distspmd.verify(memlet.solution.plan)
    return lowering


def reduced(lowering: Lowering) -> dict[str, int]:
    """Bytes that ranks receive of what is reduced."""
    return {
        memlet.data: memlet.solution.cost.nbytes
        for memlet in lowering.memlets
        if memlet.solution.plan.redistribution.source.partial
    }


OPERAND = 7 * 8
ONE = 3 * OPERAND
"""Bytes that move where the operands of four ranks are reduced."""


@pytest.mark.parametrize("program", [added, scaled])
def test_a_map_that_is_linear_runs_on_operands(program: Any) -> None:
    assert reduced(lowered(program)) == {"__return": ONE}


@pytest.mark.parametrize("program", [through, read_twice, whole_numbers])
def test_a_sum_that_others_read_is_made_once_and_reduced_once(program: Any) -> None:
    assert reduced(lowered(program)) == {"p_sum": ONE}


@pytest.mark.parametrize(
    "program", [multiplied, also_alone, broadcast, greatest, fractions, scaled_by_arrays]
)
def test_what_is_not_linear_or_costs_more_stays(program: Any) -> None:
    found = reduced(lowered(program))
    assert len(found) == 2
    assert set(found.values()) == {ONE}


def test_operands_of_different_ranks_are_reduced_apart() -> None:
    assert len(reduced(lowered(added, sum_b=2))) == 2
    assert len(reduced(lowered(added, sum_a=4, sum_b=4))) == 1


@pytest.mark.parametrize(("program", "name"), [(added, "__return"), (through, "p_sum")])
def test_idle_ranks_have_no_operand(program: Any, name: str) -> None:
    parts = dict.fromkeys(("sum_a", "sum_b", "p", "q"), 6)
    lowering = lowered(program, **parts)  # 10 rows in tiles of 2: the last rank has none
    (layout,) = {
        str(m.solution.plan.redistribution.source)
        for m in lowering.memlets
        if m.solution.plan.redistribution.source.partial
    }
    assert reduced(lowering) == {name: 4 * OPERAND}
    assert "4:" in layout
    assert "5:" not in layout


@pytest.mark.parametrize(("program", "name"), [(transposed, "__return"), (by_steps, "q_sum")])
def test_what_moves_or_scales_operands_runs_on_them_for_a_sum(program: Any, name: str) -> None:
    assert reduced(lowered(program)).keys() == {name}


def test_what_scales_operands_for_nobody_stays() -> None:
    lowering = lowered(doubled)
    assert reduced(lowering) == {"sum_a": ONE}
    assert not [s for s in lowering.spaces if s.chosen_by.reason is Reason.OPERANDS]


def test_gradients_of_a_parameter_with_two_uses_are_reduced_once() -> None:
    sdfg = numpy_program(tied)
    lowering = distspmd.lower(sdfg, {"x_matmul_w": {"__i0": 4}}, arguments={"w": "replicated"})
    assert reduced(lowering) == {"__return": 3 * 6 * 6 * 8}


def test_a_space_that_the_schedule_names_keeps_its_grid() -> None:
    sdfg = added.to_sdfg()
    lowering = distspmd.lower(sdfg, {"sum_a": (1, 4), "sum_b": (1, 4), "__return": (4,)})
    (space,) = (space for space in lowering.spaces if space.name == "__return")
    assert space.parts == (4,)
    assert reduced(lowering) == {"sum_a_sum": ONE}  # a reduce-scatter


def test_the_record_says_which_spaces_add_operands() -> None:
    lowering = lowered(through)
    (space,) = (space for space in lowering.spaces if space.name == "p_sum")
    assert space.chosen_by.reason is Reason.OPERANDS
    assert "p_sum" in str(lowering)


def test_without_the_pass_both_are_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sum_operands, "add_operands", lambda _, spaces, tiled, __: (spaces, tiled))
    for program in (added, scaled, through, read_twice, whole_numbers):
        assert sorted(reduced(lowered(program)).values()) == [ONE, ONE]
