"""Ranges of maps without what the loops around decide: the same iterations, and fewer words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from dace import SDFG, Memlet, dtypes
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from hypothesis import given
from hypothesis import strategies as st

import distspmd
from distspmd.codegen.known_bounds import drop_known_bounds
from distspmd.frontend import numpy_program
from distspmd.lowering import ATTRIBUTE


def _in_loop(first: int, end: int, begin: str, last: str, subset: str) -> tuple[SDFG, Any]:
    """A map in a loop of ``i``."""
    sdfg = SDFG("in_loop")
    sdfg.add_array("x", [100], dtypes.float64)
    loop = LoopRegion("loop", f"i < {end}", "i", f"i = {first}", "i = i + 1")
    sdfg.add_node(loop, is_start_block=True)
    state = loop.add_state(is_start_block=True)
    state.add_mapped_tasklet(
        "write",
        {"k": f"{begin}:{last} + 1"},
        {},
        "b = 1",
        {"b": Memlet(f"x[{subset}]")},
        external_edges=True,
    )
    return sdfg, state


def _ends(state: Any) -> tuple[sympy.Expr, sympy.Expr]:
    entry = next(node for node in state.nodes() if isinstance(node, nodes.MapEntry))
    ((begin, last, _),) = entry.map.range.ndrange()
    return begin, last


def test_an_element_that_a_tile_has_is_one_iteration() -> None:
    sdfg, state = _in_loop(1, 99, "Max(1, i)", "Max(Max(1, i) - 1, Min(98, i))", "k")
    drop_known_bounds(sdfg)
    assert [str(end) for end in _ends(state)] == ["i", "i"]


@pytest.mark.parametrize(("first", "end"), [(0, 99), (1, 100)])
def test_what_the_loop_does_not_decide_stays(first: int, end: int) -> None:
    sdfg, state = _in_loop(first, end, "Max(1, i)", "Min(98, i)", "k")
    drop_known_bounds(sdfg)
    assert [str(end) for end in _ends(state)] != ["i", "i"]


def test_symbols_that_a_loop_does_not_bind_are_not_compared() -> None:
    sdfg, state = _in_loop(1, 99, "Max(low, i)", "Min(98, i)", "k")
    sdfg.add_symbol("low", dtypes.int64)
    drop_known_bounds(sdfg)
    assert [str(end) for end in _ends(state)] == ["Max(i, low)", "i"]


numbers = st.integers(-4, 12)


@given(numbers, st.integers(0, 8), *[numbers] * 4, st.integers(-2, 2))
def test_a_map_has_the_same_iterations_as_before(
    first: int, length: int, low: int, high: int, shift: int, other: int, factor: int
) -> None:
    moved = f"{factor} * i + {shift}"
    texts = f"Max({low}, {moved}, {other})", f"Max(Max({low}, i) - 1, Min({high}, {moved}))"
    sdfg, state = _in_loop(first, first + length, *texts, "k")
    before = _ends(state)
    drop_known_bounds(sdfg)
    for i in range(first, first + length):
        old, new = (
            [int(end.xreplace(dict.fromkeys(end.free_symbols, i))) for end in ends]
            for ends in (before, _ends(state))
        )
        assert old == new


def swept(a):
    for i in range(1, 20):
        a[i, 1:-1] += a[i - 1, :-2]
        for j in range(1, 20):
            a[i, j] += a[i, j - 1]


def test_a_sweep_on_one_rank_writes_the_element_that_its_loops_name() -> None:
    sdfg = numpy_program(swept, np.ones((21, 21)))
    sdfg = distspmd.lower(sdfg, {}).sdfg
    sdfg.replace_dict(getattr(sdfg, ATTRIBUTE).uniform_symbols(1))
    drop_known_bounds(sdfg)
    entries = (node for node, _ in sdfg.all_nodes_recursive() if isinstance(node, nodes.MapEntry))
    ends = [end for entry in entries for dim in entry.map.range.ndrange() for end in dim[:2]]
    assert not any(sympy.sympify(end).has(sympy.Max, sympy.Min) for end in ends)
