"""How often loops run what is in them, what of it ranks do, and what that costs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from dace.subsets import Range
from hypothesis import given
from hypothesis import strategies as st

import distspmd
from distspmd.analysis.loop_runs import Runs, _most_within, times, times_exactly
from distspmd.analysis.passing import is_read_as_written
from distspmd.frontend import numpy_program


def of(n: int) -> Any:
    """Elements of n x n in order, and a matrix whose rows get shorter."""

    def mirrored(a: Any) -> None:
        for i in range(1, n):
            for j in range(1, n):
                a[i, j] = a[i - 1, n - 1 - j] + a[i, j - 1]

    def triangle(a: Any) -> None:
        for i in range(1, n):
            for j in range(i):
                a[i, j] = a[i, j] + a[i - 1, j] * a[j, i]

    return mirrored, triangle


def lowered(function: Any, n: int, schedule: Any = None) -> Any:
    return distspmd.lower(numpy_program(function, np.ones((n, n))), schedule or {})


@given(st.integers(0, 30), st.integers(0, 20), st.integers(1, 9))
def test_the_tile_that_has_most_of_an_interval(begin: int, length: int, tile: int) -> None:
    own = range(begin, begin + length)
    held = [sum(place in own for place in range(at, at + tile)) for at in range(0, 60, tile)]
    found = _most_within(np.array([begin]), np.array([begin + length]), np.array([[tile]]))
    assert found.tolist() == [[max(held)]]


@pytest.mark.parametrize("n", [5, 40, 400])
def test_runs_of_loops_that_begin_where_others_say_are_counted(n: int) -> None:
    sdfg = numpy_program(of(n)[1], np.ones((n, n)))
    state = next(s for s in sdfg.states() if s.nodes())
    runs = Runs.of(state)
    assert times(state) == pytest.approx(n * (n - 1) // 2, rel=0.01)
    assert times_exactly(state) == (n * (n - 1) // 2 if n < 400 else None)
    assert (runs.values["j"] < runs.values["i"]).all()
    assert len(runs.weights) <= 2000


def test_the_work_of_elements_in_order_is_their_own() -> None:
    """It was that of the whole matrix for each of them."""
    small, large = (distspmd.predict(lowered(of(n)[0], n)).compute for n in (20, 40))
    assert 3 < large / small < 6
    alone, split = (lowered(of(40)[0], 40, {"a": parts}) for parts in ((1,), (4,)))
    assert distspmd.predict(split).compute >= 0.99 * distspmd.predict(alone).compute


def test_elements_in_order_are_not_split() -> None:
    found = distspmd.search(numpy_program(of(64)[0], np.ones((64, 64))), 4)
    assert not found.is_split


def test_what_is_found_for_loops_takes_no_longer_than_it_says_or_than_one_rank() -> None:
    def orthogonal(a: Any) -> Any:
        q = np.zeros((256, 256))
        for k in range(256):
            q[:, k] = a[:, k] / np.sqrt(a[:, k] @ a[:, k])
            a[:, k + 1 :] -= np.outer(q[:, k], q[:, k] @ a[:, k + 1 :])
        return q

    machine = distspmd.plans.Machine()
    sdfg = numpy_program(orthogonal, np.ones((256, 256)))
    alone = distspmd.predict(distspmd.lower(numpy_program(orthogonal, np.ones((256, 256))), {}))
    found = distspmd.search(sdfg, 4, machine=machine)
    lowering = distspmd.lower(sdfg, found, machine=machine)
    assert distspmd.predict(lowering).seconds == pytest.approx(found.cost, rel=0.1)
    assert found.cost < 0.6 * alone.seconds
    assert not any("loops move" in sentence for sentence in lowering.sentences)


def test_a_sum_into_a_part_is_split_where_no_other_part_is_read() -> None:
    def sums(a: Any) -> Any:
        total = np.zeros(8)
        for k in range(7):
            total[k + 1 :] += a[:, k] @ a[:, k + 1 :]
        return total

    sdfg = numpy_program(sums, np.ones((8, 8)))
    space = next(s for s in distspmd.iteration_spaces(sdfg) if len(s.parameters) == 2)
    (written,) = space.writes
    assert is_read_as_written(space.state, written)
    distspmd.lower(copy.deepcopy(sdfg), {space.name: (1, 4)})
    read = [
        edge
        for state in sdfg.states()
        for node in state.data_nodes()
        for edge in state.out_edges(node)
        if node.data == written
    ]
    for edge in read:  # the rest of it, too
        edge.data.subset = Range([(0, 6, 1)])
    assert not is_read_as_written(space.state, written)
    with pytest.raises(distspmd.errors.UnsupportedProgram, match="a part of"):
        distspmd.lower(sdfg, {space.name: (1, 4)})


def test_runs_that_stand_for_many_differ_in_the_variables_of_all_loops() -> None:
    mirrored, triangle = of(2000)
    for function, expected in ((mirrored, 1999**2), (triangle, 1999 * 2000 / 2)):
        sdfg = numpy_program(function, np.ones((2000, 2000)), host="refuse")
        runs = max((Runs.of(state) for state in sdfg.states()), key=lambda own: own.count)
        assert runs.count == pytest.approx(expected, rel=0.01)
        assert len(runs.weights) <= 2 << 10
        for values in runs.values.values():
            assert len(np.unique(values)) >= 16
            assert values.max() - values.min() > 1000


def test_an_element_in_two_loops_costs_its_own_bytes() -> None:
    mirrored, _ = of(900)
    lowering = lowered(mirrored, 900)
    spaces = [space for space in lowering.spaces if space.work.times > 1000]
    assert spaces
    assert all(space.work.nbytes < 100 for space in spaces)
