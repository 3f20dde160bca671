"""Grids of the spaces that a schedule does not name."""

import dace
import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering, Reason


@dace.program
def network(
    x: dace.float64[8, 6], w: dace.float64[6, 10], b: dace.float64[10], v: dace.float64[10, 4]
):
    hidden = x @ w + b
    active = np.maximum(hidden, 0)
    return active @ v


@dace.program
def transposing(x: dace.float64[8, 6]):
    a = np.sin(x)
    b = np.transpose(a)
    return b * 2


@dace.program
def apart(x: dace.float64[8], y: dace.float64[6]):
    return x + 1, y * 2


@dace.program
def summed(x: dace.float64[8, 6]):
    a = x * 2
    s = np.sum(a, axis=1)
    return s + 1


@dace.program
def centred(x: dace.float64[8, 6]):
    m = np.sum(x) / 48
    return x - m


@dace.program
def shifted(x: dace.float64[8]):
    y = np.zeros((8,), np.float64)
    for i in dace.map[1:7]:
        y[i] = x[i - 1] + x[i + 1]
    return y * 2


def grids(program, schedule) -> dict[str, tuple[int, ...]]:
    return {space.name: space.parts for space in lowered(program, schedule).spaces}


def lowered(program, schedule) -> Lowering:
    return distspmd.lower(program.to_sdfg(), schedule)


def inside(lowering: Lowering) -> list[str]:
    return [m.data for m in lowering.memlets if not m.from_caller and not m.to_caller]


def test_with_no_schedule_everything_runs_on_rank_0():
    lowering = lowered(network, {})
    assert lowering.ranks == 1
    assert lowering.memlets == ()


def test_the_rest_of_a_network_follows_its_rows():
    lowering = lowered(network, {"x_matmul_w": (4, 1, 1)})
    found = {space.name: space.parts for space in lowering.spaces}
    assert {parts[0] for parts in found.values()} == {4}
    assert inside(lowering) == []


def test_the_rest_of_a_network_follows_its_columns_until_they_are_summed():
    lowering = lowered(network, {"x_matmul_w": (1, 2, 1)})
    found = {space.name: space.parts for space in lowering.spaces}
    assert found["active"] == (1, 2)
    assert found["__return"] == (1, 1, 2)
    assert [m.data for m in lowering.memlets if "partial" in m.layouts] == ["__return"]


def test_spaces_before_the_one_that_is_named_follow_too():
    assert grids(network, {"__return": (2, 1, 2)})["active"] == (2, 2)


def test_a_transposition_exchanges_the_axes():
    found = grids(transposing, {"a": (2, 3)})
    assert found["a"] == (2, 3)
    assert found["__return"] == (3, 2)
    assert inside(lowered(transposing, {"a": (2, 3)})) == []


def test_what_shares_no_array_stays_on_rank_0():
    assert grids(apart, {"__return_0": (4,)}) == {"__return_0": (4,), "__return_1": (1,)}


def test_a_reduction_splits_what_its_operand_is_split_along():
    found = grids(summed, {"a": (2, 3)})
    assert found["s"] == (2, 3)


def test_what_has_nothing_to_split_and_feeds_others_is_computed_where_they_are():
    lowering = lowered(centred, {"sum_x": (4, 1)})
    assert [m.data for m in lowering.memlets if "partial" in m.layouts] == ["sum_x"]
    result = next(space for space in lowering.spaces if space.name == "__return")
    assert result.parts == (4, 1)


def test_tiles_that_are_shifted_are_followed():
    found = grids(shifted, {"__return": (4,)})
    assert set(found.values()) == {(4,)}


def turned(w: dace.float64[8, 8], x: dace.float64[6, 8]):
    t = 2 * w.T
    y = x @ t
    w -= 0.5
    return y


def test_what_all_ranks_have_is_no_reason_to_split_what_they_need_whole():
    """The update is split, and its result gathered; the operand of the product never moves."""
    schedule, held = {"__return": (2, 1, 1), "w": (2, 1)}, {"w": "replicated"}
    lowering = distspmd.lower(numpy_program(turned), schedule, arguments=held)
    assert next(space for space in lowering.spaces if space.name == "t").parts == (1, 1)
    assert [m.data for m in lowering.memlets if m.data not in ("x", "__return")] == ["w"]
    lowering = distspmd.lower(numpy_program(turned), schedule, arguments={"w": "distributed"})
    assert next(space for space in lowering.spaces if space.name == "t").parts == (1, 2)


def test_the_schedule_wins_over_what_neighbours_suggest():
    found = grids(network, {"x_matmul_w": (4, 1, 1), "active": (1, 2)})
    assert found["active"] == (1, 2)


def test_the_same_schedule_gives_the_same_program():
    first, second = (lowered(network, {"x_matmul_w": (2, 2, 1)}) for _ in range(2))
    assert str(first) == str(second)
    assert first.symbols == second.symbols


@pytest.mark.parametrize("name", ["hidden", "active"])
def test_any_space_of_a_chain_may_be_the_one_that_is_named(name):
    found = grids(network, {name: (4, 1)})
    assert found["active"] == (4, 1)
    assert found["x_matmul_w"][0] == 4


def test_the_record_says_which_spaces_were_named():
    lowering = lowered(network, {"active": (2, 1)})
    assert [
        space.name for space in lowering.spaces if space.chosen_by.reason is Reason.SCHEDULE
    ] == ["active"]


@dace.program
def learning(w: dace.float64[6, 10], x: dace.float64[10, 8]):
    y = np.tanh(w @ x)
    gradient = y @ np.transpose(x)
    w[:] = w - gradient


def test_a_gradient_is_summed_where_its_batch_is_and_scattered_to_who_wants_it():
    lowering = lowered(learning, {"w_matmul_x": (1, 4, 1), "w": (4, 1)})
    found = {space.name: space.parts for space in lowering.spaces}
    assert (found["y"], found["gradient"]) == ((1, 4), (1, 1, 4))
    (summed,) = (m for m in lowering.memlets if m.data == "gradient")
    assert summed.steps == "reduce_scatter"
    assert inside(lowering) == [
        "gradient"
    ]  # copies of w are read before it is written, and not after


def test_a_space_follows_who_reads_its_result_before_who_writes_its_operands_later():
    assert grids(learning, {"y": (1, 4), "w": (4, 1)})["w_matmul_x"] == (1, 4, 1)
