"""Temporaries that are only added to are found; other programs are left alone.

The harness of lowering asks this of each program of the suite that it parses.
"""

from __future__ import annotations

import dace
import numpy as np
import pytest
from dace import SDFG, Memlet
from lowering.harness import Case, prepared
from lowering.run_on_paper import problem

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.passes.normalize.uninitialised import find_uninitialised, initialise


@dace.program
def adds(x: dace.float64[6, 4]):
    y = np.empty((6,), np.float64)
    for i, j in dace.map[0:6, 0:4]:
        y[i] += x[i, j]
    return y * 2


@dace.program
def adds_to_zeros(x: dace.float64[6, 4]):
    y = np.zeros((6,), np.float64)
    for i, j in dace.map[0:6, 0:4]:
        y[i] += x[i, j]
    return y * 2


def summed(name: str, *, zeroed: bool) -> SDFG:
    """``name`` is a sum over the rows of ``x``."""
    sdfg = SDFG("summed")
    sdfg.add_array("x", [6, 4], dace.float64)
    sdfg.add_array("y", [4], dace.float64)
    sdfg.add_transient(name, [4], dace.float64)
    state = sdfg.add_state()
    _, _, leave = state.add_mapped_tasklet(
        "add",
        {"i": "0:6", "j": "0:4"},
        {"a": Memlet("x[i, j]")},
        "b = a",
        {"b": Memlet(f"{name}[j]", wcr="lambda p, q: p + q")},
        external_edges=True,
    )
    state.out_edges(leave)[0].dst.setzero = zeroed
    state.add_nedge(state.out_edges(leave)[0].dst, state.add_write("y"), Memlet(f"{name}[0:4]"))
    return sdfg


def test_a_temporary_that_starts_as_anything_is_refused_with_its_line() -> None:
    sdfg = adds.to_sdfg()
    with pytest.raises(UnsupportedProgram, match=r"test_uninitialised.py:\d+.*nothing gives it"):
        distspmd.lower(sdfg, {})


def test_a_temporary_that_starts_from_zero_is_not() -> None:
    assert find_uninitialised(adds_to_zeros.to_sdfg()) == []


def test_memory_that_is_zeroed_becomes_a_map() -> None:
    sdfg = summed("t", zeroed=True)
    initialise(sdfg)
    assert sdfg.start_block.label == "zero_t"
    assert not any(node.setzero for state in sdfg.states() for node in state.data_nodes())
    x = np.random.default_rng(0).random((6, 4))
    y = np.empty(4)
    sdfg(x=x, y=y)
    assert np.allclose(y, x.sum(0))


def test_gradients_that_are_sums_start_from_zero() -> None:
    sdfg = summed("gradient_t", zeroed=False)
    assert [found.name for found in find_uninitialised(sdfg)] == ["gradient_t"]
    initialise(sdfg)
    assert find_uninitialised(sdfg) == []


def test_an_alarm_about_a_program_of_the_suite_is_its_problem() -> None:
    case = Case(adds, {}, 1)
    assert "['y'] of" in problem(case)
    assert "['y'] of" in prepared(case).problem
    assert not problem(Case(adds_to_zeros, {}, 1))
