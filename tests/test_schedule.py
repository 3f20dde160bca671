"""Schedules: how spaces are named, what is refused, and which iterations each rank runs."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import dace
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from distspmd.errors import ScheduleError
from distspmd.mesh import Mesh
from distspmd.pipeline import iteration_spaces
from distspmd.schedule import Tiling, resolve
from distspmd.spaces import Extent, IterationSpaces


@dace.program
def chain(x: dace.float64[10, 6], w: dace.float64[6, 4]):
    hidden = np.sin(x) + 1
    return hidden @ w


@pytest.fixture(scope="module")
def spaces() -> IterationSpaces:
    return iteration_spaces(chain.to_sdfg())


def test_a_space_is_named_by_name_label_node_or_map(spaces: IterationSpaces) -> None:
    product = spaces[-1]
    for key in ("__return", "_MatMult_", product.node):
        assert resolve({key: (2, 1, 3)}, spaces) == {"__return": (2, 1, 3)}
    first = spaces[0]
    assert resolve({first.node.map: [5, 1]}, spaces) == {"sin_x": (5, 1)}


def test_parts_are_given_in_order_or_by_parameter(spaces: IterationSpaces) -> None:
    assert resolve({"sin_x": {"__i1": 3}}, spaces) == {"sin_x": (1, 3)}
    assert resolve({"sin_x": (np.int64(2), 1)}, spaces) == {"sin_x": (2, 1)}


REFUSED: list[tuple[Any, str]] = [
    ({"sin_y": (2, 1)}, "no iteration space is called that. Did you mean 'sin_x'?"),
    ({"qqqq": (2, 1)}, "no iteration space is called that. There are 'sin_x', 'hidden'"),
    ({3: (2, 1)}, "names 3, which is no top-level map or library node"),
    ({"sin_x": (2,)}, "the parts (2,), 1 for 2 parameters"),
    ({"sin_x": (2, 1, 1)}, "3 for 2 parameters. It iterates over __i0=0:10, __i1=0:6"),
    ({"sin_x": (0, 1)}, "each must be an integer of at least 1"),
    ({"sin_x": (2, -1)}, "each must be an integer of at least 1"),
    ({"sin_x": (2.0, 1)}, "each must be an integer of at least 1"),
    ({"sin_x": (True, 1)}, "each must be an integer of at least 1"),
    ({"sin_x": 4}, "is no tuple"),
    ({"sin_x": "22"}, "is no tuple"),
    ({"sin_x": {"i": 2}}, "it has no parameter 'i'"),
    ({"__return": (2, 1, 1), "_MatMult_": (1, 2, 1)}, "gives the space '__return' two grids"),
    ([("sin_x", (2, 1))], "the schedule is a list; write a mapping"),
]


@pytest.mark.parametrize(("schedule", "message"), REFUSED)
def test_a_wrong_schedule_is_refused_with_what_to_write(
    schedule: Any, message: str, spaces: IterationSpaces
) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        resolve(schedule, spaces)


def test_a_label_of_several_spaces_is_refused_with_their_names() -> None:
    @dace.program
    def twice(x: dace.float64[4]):
        y = x + 1
        return y + x

    with pytest.raises(ScheduleError, match=r"the label of 2 iteration spaces.*'y', '__return'"):
        resolve({"_Add__map": (2,)}, iteration_spaces(twice.to_sdfg()))


extents = st.tuples(st.integers(-3, 5), st.integers(0, 12), st.integers(1, 3)).map(
    lambda e: Extent(*(sympy.Integer(n) for n in (e[0], e[0] + e[1], e[2])))
)


@given(st.lists(st.tuples(extents, st.integers(1, 5)), min_size=1, max_size=3))
def test_every_iteration_runs_on_exactly_one_rank(axes: list[tuple[Extent, int]]) -> None:
    names = [f"p{d}" for d in range(len(axes))]
    ranges = [extent for extent, _ in axes]
    tiling = Tiling.on_grid(names, ranges, [parts for _, parts in axes])
    run: Counter[tuple[int, ...]] = Counter()
    for rank in tiling.mesh:
        values = [
            range(int(lo), int(hi), int(extent.step))
            for lo, hi, extent in zip(tiling.lower[rank], tiling.upper[rank], ranges, strict=True)
        ]
        run.update(
            tuple(int(v) for v in point)
            for point in np.ndindex(*map(len, values))
            for point in [tuple(axis[i] for axis, i in zip(values, point, strict=True))]
        )
        for d, axis in enumerate(values):
            if not tiling.idle[rank]:
                assert axis[-1] == tiling.last[rank, d]
    everything = np.ndindex(*(len(_values(extent)) for extent in ranges))
    expected = {
        tuple(_values(extent)[i] for extent, i in zip(ranges, point, strict=True))
        for point in everything
    }
    assert run == Counter(expected)


def _values(extent: Extent) -> range:
    return range(int(extent.begin), int(extent.end), int(extent.step))


def test_ten_over_four_are_three_three_three_and_one() -> None:
    tiling = Tiling.on_grid(["i"], [Extent(*map(sympy.Integer, (0, 10, 1)))], [4])
    assert tiling.lower[:, 0].tolist() == [0, 3, 6, 9]
    assert tiling.upper[:, 0].tolist() == [3, 6, 9, 10]


def test_three_over_four_leave_a_rank_idle() -> None:
    tiling = Tiling.on_grid(["i"], [Extent(*map(sympy.Integer, (0, 3, 1)))], [4])
    assert tiling.idle.tolist() == [False, False, False, True]


def test_axes_that_split_nothing_replicate() -> None:
    ranges = [Extent(*map(sympy.Integer, (0, 8, 1)))]
    tiling = Tiling.of(ranges, Mesh(x=2, y=2), [("y",)])
    assert tiling.lower[:, 0].tolist() == [0, 4, 0, 4]
    assert tiling.parts == (2,)
