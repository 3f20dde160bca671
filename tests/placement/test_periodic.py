"""Periodic, reflecting and padded boundaries: halos move, and no rank holds more than others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from lowering.on_paper import problems
from ranks import periodic

import distspmd
from distspmd.analysis.iteration_spaces import ParameterRange
from distspmd.analysis.tiling import Tiling
from distspmd.frontend import numpy_program
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.plans import Machine

CHEAP = Machine(alpha=1e-12, beta=1e-16, launch=0)
"""A machine on which it is worth to split small arrays."""
STEPS = periodic.STEPS


def lowered(function, *given, ranks: int, machine: Machine | None = CHEAP) -> Lowering:
    program = numpy_program(function, *given, host="refuse")
    return distspmd.lower(program, ranks=ranks, machine=machine)


def bytes_of_steps(lowering: Lowering) -> int:
    """Bytes that all ranks receive in the steps of a run."""
    plans = [(m.times or 0, m.solution.plan) for m in lowering.memlets if (m.times or 0) > 1]
    return sum(times * plan.received(rank) for times, plan in plans for rank in range(plan.ranks))


def held(lowering: Lowering) -> np.ndarray:
    """Bytes that each rank holds in the homes of all arrays."""
    found = np.zeros(lowering.ranks, np.int64)
    for home in lowering.homes:
        volumes = home.layout.volumes * home.dtype.itemsize
        found[: len(volumes)] += volumes
    return found


@pytest.mark.parametrize("ranks", [3, 64])
@pytest.mark.parametrize(
    "program",
    [
        periodic.rolled,
        periodic.rolled_in_place,
        periodic.by_remainders,
        periodic.rims,
        periodic.joined,
    ],
    ids=lambda program: program.__name__,
)
def test_a_periodic_line_moves_two_elements_a_rank_and_step(program, ranks):
    n = 1 << 16
    lowering = lowered(program, np.zeros(n), ranks=ranks)
    reach, ends = 2, 0
    if program is periodic.by_remainders:  # which reads two before: the last one for two rims
        reach, ends = 3, 1
    if program is periodic.joined:  # whose rims lie beside the blocks
        ends = 4
    assert lowering.ranks == ranks
    assert bytes_of_steps(lowering) <= STEPS * 8 * (reach * ranks + ends)
    mine = held(lowering)
    assert mine.max() <= mine.mean() + 8 * reach * len(lowering.homes)
    assert not lowering.fetches


@pytest.mark.parametrize("ranks", [4, 64])
def test_a_periodic_grid_moves_its_rims(ranks):
    n = 512

    def heat(u):
        for _ in range(1000):
            u = u + (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1))
        return u

    lowering = lowered(heat, np.zeros((n, n)), ranks=ranks, machine=None)
    parts = max(space.parts for space in lowering.spaces if len(space.parts) == 2)
    rows, columns = n // parts[0], n // parts[1]
    rim = 8 * ((2 * columns if parts[0] > 1 else 0) + (2 * rows if parts[1] > 1 else 0))
    assert np.prod(parts) == ranks
    assert bytes_of_steps(lowering) == 1000 * ranks * rim
    mine = held(lowering)
    assert mine.max() <= 1.1 * mine.mean()


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rim_that_is_written_over_before_it_is_read_does_not_move(ranks):
    n = 512
    lowering = lowered(periodic.streamed, np.zeros((n, n, 5)), ranks=ranks)
    parts = max(space.parts for space in lowering.spaces if len(space.parts) == 3)
    assert parts in ((ranks, 1, 1), (1, ranks, 1))
    rows = sum(map(abs, periodic.SHIFTS if parts[0] > 1 else periodic.AXES))
    assert bytes_of_steps(lowering) == periodic.STEPS * ranks * int(rows) * n * 8


@pytest.mark.parametrize(
    "ranks", [pytest.param(r, marks=[] if r == 3 else pytest.mark.slow) for r in range(1, 7)]
)
def test_plans_of_boundaries_are_right_on_paper(ranks):
    for program, given_array in periodic.cases().items():
        lowering = lowered(program, given_array, ranks=ranks)
        assert list(problems(lowering)) == [], program.__name__


def test_boundaries_are_right_on_three_ranks(launch):
    launch(Path(periodic.__file__), ranks=3)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 4, 5, 6])
def test_boundaries_are_right_on_more_ranks(launch, ranks):
    launch(Path(periodic.__file__), ranks=ranks)


@settings(max_examples=6, deadline=None)
@given(
    n=st.integers(1, 40),
    ranks=st.integers(1, 6),
    shifts=st.lists(st.integers(-90, 90), min_size=1, max_size=3),
)
def test_rolls_by_any_shift_are_planned_right(n, ranks, shifts):
    def moved(u):
        for by in shifts:
            u = np.roll(u, by) + u
        return u

    assert list(problems(lowered(moved, np.zeros(n), ranks=ranks))) == []


@given(
    begin=st.integers(0, 30),
    length=st.integers(0, 30),
    step=st.integers(1, 3),
    frame=st.tuples(st.integers(-5, 20), st.integers(1, 40)),
    parts=st.integers(1, 7),
)
def test_tiles_by_a_frame_share_out_a_range(begin, length, step, frame, parts):
    end = begin + length
    around = frame[0], frame[0] + frame[1]
    extent = ParameterRange(*map(sympy.Integer, (begin, end, step)), frame=around)
    tiling = Tiling.of([extent], Mesh(x=parts), [("x",)])
    tiles = [
        range(int(low), int(last) + 1, step) if high > low else range(0)
        for low, high, last in zip(tiling.lower, tiling.upper, tiling.last, strict=True)
        for low, high, last in [(low[0], high[0], last[0])]
    ]
    assert [i for tile in tiles for i in tile] == list(range(begin, end, step))
    block = -(-frame[1] // parts)
    for rank, tile in enumerate(tiles):
        for i in tile:
            if around[0] <= i < around[1]:
                assert (i - around[0]) // block == rank


def test_an_array_that_one_rank_holds_more_of_is_named_with_its_space():
    def ends(x):
        y = 2 * x
        y[1:] = x[:-1]
        return y[0] + y[len(x) - 1]

    big = np.zeros(1 << 18)
    schedule = {"y": (4,), "y.2": (4,)}
    program = numpy_program(ends, big)
    lowering = distspmd.lower(program, schedule)
    even = [s for s in lowering.remarks if "times as much as the ranks that hold any" in s]
    assert not even
    uneven = distspmd.layouts.Layout.of_boxes(
        Mesh(x=4),
        big.shape,
        [((0, 1 << 18),), ((1 << 16, 2 << 16),), ((2 << 16, 3 << 16),), ((3 << 16, 4 << 16),)],
    )
    told = distspmd.lower(
        numpy_program(ends, big), distspmd.Schedule(schedule, homes={"y": uneven})
    ).remarks
    (sentence,) = [s for s in told if "times as much as the ranks that hold any" in s]
    assert "'y'" in sentence
    assert "rank 0" in sentence
    assert "test_periodic.py:" in sentence
