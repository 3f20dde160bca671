"""Loops whose temporaries have extents that data decide become maps, if their order is free."""

import re
from typing import Any

import dace
import numpy as np
import pytest
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
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


def dead(x: Any, y: Any) -> None:
    for i in range(41):
        if x[i] > 0.5:
            continue
    y[0] = 1.0


def nothing(x: Any) -> None:
    for i in range(41):
        _ = x[i] * 2


def test_a_loop_that_leaves_nothing_behind_is_left_out() -> None:
    program = numpy_program(dead, np.ones(41), np.ones(41), host="refuse")
    (space,) = distspmd.iteration_spaces(program)
    assert list(space.writes) == ["y"]


def test_a_program_without_work_is_lowered() -> None:
    lowering = distspmd.lower(numpy_program(nothing, np.ones(41), host="refuse"), {})
    assert lowering.ranks == 1
    assert "No work" in str(lowering)


def test_a_loop_without_iterations_at_one_size_is_one_at_others() -> None:
    n = dace.symbol("n")

    def turned(x: dace.float64[n]) -> None:
        for i in range(x.shape[0] // 2):
            x[i], x[x.shape[0] - 1 - i] = x[x.shape[0] - 1 - i], x[i]

    lowering = distspmd.lower(numpy_program(turned, host="refuse"), ranks=1)
    with distspmd.compile(lowering, MPI.COMM_SELF) as compiled:
        for length in (1, 2, 7):
            x = np.arange(float(length))
            compiled(x)
            assert x.tolist() == [*reversed(range(length))]


def squared(x: Any, y: Any) -> None:
    for i in range(1, 5000):
        y[i] = 0.5 * y[i - 1] * y[i - 1] + x[i]


def halved_until(x: Any) -> Any:
    s, k = x[0], 0
    while s > 1e-9 and k < 5000:
        s *= 0.5 + x[k] * 1e-3
        k += 1
    return s


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (squared, r"the loop over 'i' is not split.* write: for i in distspmd\.map\[first:end\]"),
        (halved_until, r"the while loop is not split, with \d+% of the predicted work: [^.]*\.$"),
    ],
)
def test_the_record_says_of_a_serial_loop_what_a_user_can_do(function: Any, told: str) -> None:
    given = [np.ones(5000) for _ in function.__code__.co_varnames[: function.__code__.co_argcount]]
    lowering = distspmd.lower(numpy_program(function, *given, host="refuse"), {})
    assert any(re.search(told, remark) for remark in lowering.remarks), lowering.remarks


def spread(x: Any, y: Any) -> None:
    for e in range(5000):
        y[e] = x[e] * 2
    y += 5e-05


def test_the_exponent_of_a_number_is_no_variable_of_a_loop() -> None:
    lowering = distspmd.lower(
        numpy_program(spread, np.ones(5000), np.ones(5000), host="refuse"), {}
    )
    assert not [s for s in lowering.sdfg.all_control_flow_regions() if isinstance(s, LoopRegion)]
