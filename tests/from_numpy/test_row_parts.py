"""Parts whose lengths an element of a loop's row decides are read as such."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Launch
from dace import SDFG
from dace.sdfg.nodes import MapEntry
from dace.sdfg.state import LoopRegion

import distspmd
from from_numpy.row_parts import APART, CASES, IN_ORDER, products, rows, two_lengths

ROWS = 61


def lowered(function: Any) -> tuple[SDFG, int]:
    """A function lowered for rows, and how many values these have."""
    given = rows(np.random.default_rng(0), ROWS)
    program = distspmd.program(function, host="refuse", schedule={}, search=False)
    return program.lower(*given).sdfg, len(given[0])


def loops_of(sdfg: SDFG) -> list[LoopRegion]:
    """Loops that stay in order, of those outside of maps."""
    regions = sdfg.all_control_flow_regions(recursive=False)
    return [region for region in regions if isinstance(region, LoopRegion)]


def as_long_as_all(sdfg: SDFG, length: int) -> Iterator[str]:
    """Temporaries and maps, in loops and inside of maps, that have a length."""
    for inner in sdfg.all_sdfgs_recursive():
        arrays = inner.arrays.items()
        yield from (n for n, a in arrays if a.transient and a.total_size == length)
    for loop in loops_of(sdfg):
        for state in loop.states():
            for node, _ in state.all_nodes_recursive():
                if isinstance(node, MapEntry) and node.map.range.num_elements() == length:
                    yield str(node)


@pytest.mark.parametrize("function", [*APART, *IN_ORDER])
def test_nothing_in_a_loop_over_rows_is_as_long_as_all_of_them(function: Any) -> None:
    sdfg, length = lowered(function)
    assert not [*as_long_as_all(sdfg, length)]


@pytest.mark.parametrize("function", APART)
def test_rows_that_do_not_need_each_other_have_no_order(function: Any) -> None:
    sdfg, _ = lowered(function)
    assert not loops_of(sdfg)


def test_ranks_share_the_rows() -> None:
    given = rows(np.random.default_rng(0), ROWS)
    program = distspmd.program(
        products, host="refuse", schedule={"__return.2": (3, 1)}, search=False
    )
    found = program.lower(*given).spaces
    assert {each.name: each.parts[0] for each in found}["__return.2"] == 3


def test_parts_of_different_lengths_are_told_where_they_meet() -> None:
    data, indices, first, x = rows(np.random.default_rng(0), ROWS)
    with pytest.raises(ValueError, match="could not be broadcast"):
        distspmd.program(two_lengths, host="refuse", schedule={})(data, indices, first[:-1], x[:2])


def test_results_are_those_of_numpy_on_two_ranks(launch: Launch) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.row_parts", ranks=2)
    assert f"{len(CASES)} of {len(CASES)} right" in done.stdout, done.stdout
