"""Loops whose temporaries have extents that data decide become maps, if their order is free."""

import dace
import numpy as np
import pytest
from dace.sdfg import nodes

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.passes.normalize.pipeline import normalize


@dace.program
def sums_of_runs(begin: dace.int64[6], x: dace.float64[20], y: dace.float64[5]):
    for i in range(5):
        run = x[begin[i] : begin[i + 1]] * 2
        y[i] = np.sum(run)


@dace.program
def running_sums(begin: dace.int64[6], x: dace.float64[20], y: dace.float64[6]):
    for i in range(5):
        run = x[begin[i] : begin[i + 1]] * 2
        y[i + 1] = y[i] + np.sum(run)


@dace.program
def repeated(begin: dace.int64[6], x: dace.float64[20], y: dace.float64[5]):
    for _ in range(3):
        for i in range(5):
            run = x[begin[i] : begin[i + 1]] * 2
            y[i] += np.sum(run)


@dace.program
def plain_loop(x: dace.float64[20], y: dace.float64[5]):
    for i in range(5):
        y[i] = x[2 * i]


def ranges(program):
    sdfg = program.to_sdfg()
    normalize(sdfg)
    found = [(n, s) for s in sdfg.states() for n in s.nodes() if isinstance(n, nodes.MapEntry)]
    return [(str(n.map.range), s.parent_graph is sdfg) for n, s in found if s.entry_node(n) is None]


def test_a_loop_over_runs_of_data_is_one_map():
    assert ranges(sums_of_runs) == [("0:5", True)]
    (space,) = distspmd.iteration_spaces(sums_of_runs.to_sdfg())
    assert space.name == "y"
    assert space.source is not None


def test_the_loop_around_it_stays():
    assert ranges(repeated) == [("0:5", False)]


def test_other_loops_stay():
    assert ("0:5", True) not in ranges(plain_loop)


def test_a_loop_whose_iterations_depend_on_each_other_is_refused():
    with pytest.raises(UnsupportedProgram, match="symbolic sizes"):
        distspmd.lower(running_sums.to_sdfg(), {})
