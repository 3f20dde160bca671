"""Programs that say how long their parts take: clocks are read while they run."""

from __future__ import annotations

import datetime
import random
import time
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from conftest import Launch
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.host import clocks
from from_numpy.outcomes import check_same

HERE = Path(__file__).parent


class _Timer:
    def __init__(self) -> None:
        self.begin = 0.0

    def start(self) -> None:
        self.begin = perf_counter()

    def lap(self) -> Any:
        return perf_counter() - self.begin


def ordered(x: Any) -> Any:
    """Readings of clocks, with array work and lines of output between them."""
    timer = _Timer()
    timer.start()
    begin, began = time.perf_counter(), time.perf_counter_ns()
    laps = np.zeros(3)
    for i in range(3):
        x[:] = 2 * x + 1
        laps[i] = time.perf_counter()
        print(f"step {i}: {laps[i] - begin:.9f} s")
    end = time.perf_counter()
    if end < begin:
        x = x * 0
    return x, begin, laps, end, time.perf_counter_ns() - began, timer.lap()


def check_ordered(found: Any, before: float, after: float) -> None:
    """The clock goes on from reading to reading, within a call."""
    x, begin, laps, end, nanoseconds, lap = found
    assert (x == 7).all()
    assert before < begin < laps[0] < laps[1] < laps[2] < end < after
    assert type(nanoseconds) is int
    assert 0 < nanoseconds < lap * 1e9 < (after - before) * 1e9


def repeated(x: Any) -> Any:
    """Equal calls that nothing tells apart, and of which nobody reads the first."""
    time.monotonic()
    first = time.monotonic()
    second = time.monotonic()
    return np.sqrt(x), second - first


def test_equal_readings_of_a_clock_stay_apart_and_in_their_order() -> None:
    sdfg = numpy_program(ordered, np.ones(5))
    calls = [s.label for s in distspmd.iteration_spaces(sdfg) if "perf_counter" in s.label]
    assert len(calls) == 7  # the one of the loop is a space, and runs three times
    sdfg = numpy_program(repeated, np.ones(5))
    calls = [s.label for s in distspmd.iteration_spaces(sdfg) if "monotonic" in s.label]
    assert len(calls) == 3


@pytest.mark.usefixtures("unoptimised")
def test_clocks_are_read_while_the_program_runs(capfd: pytest.CaptureFixture[str]) -> None:
    lowering = distspmd.lower(numpy_program(ordered, np.ones(5)))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        for _ in range(2):
            before = time.perf_counter()
            check_ordered(program(x=np.zeros(5)), before, time.perf_counter())
    assert capfd.readouterr().out.count("step 2: 0.") == 2


def test_all_ranks_have_the_clock_of_rank_0(launch: Launch) -> None:
    assert launch(HERE / "clocks_on_ranks.py", ranks=2).stdout.count("as on rank 0") == 2


@pytest.mark.parametrize("program", [lambda x: (time.time(), x), lambda x: x + time.time_ns()])
def test_a_clock_has_no_place_in_a_map(program: Any) -> None:
    def mapped(x):
        y = np.zeros_like(x)
        for i in distspmd.map[0:3]:
            y[i] = x[i] * time.time()
        return y

    numpy_program(program, np.ones(3))
    with pytest.raises(UnsupportedProgram, match=r"time\.time\(\) in a parallel map"):
        numpy_program(mapped, np.ones(3))


RANDOM = np.random.default_rng(5)
OLD = random.Random(5)
YEAR = datetime.date(2020, 2, 3)


def of_generators_outside(x: Any) -> Any:
    scale = RANDOM.random() + OLD.random()
    return x * scale


def of_dates(x: Any) -> Any:
    day = datetime.date.today()
    ago = day - YEAR
    years = ago.days // 366
    return x * years


@pytest.mark.parametrize("function", [of_generators_outside, of_dates], ids=lambda f: f.__name__)
def test_python_asks_what_gives_something_else_each_time(function: Any) -> None:
    x, program = np.arange(3.0), distspmd.program(function, comm=MPI.COMM_SELF, host="allow")
    for _ in range(2):
        state = RANDOM.bit_generator.state, OLD.getstate()
        expected = function(x)
        RANDOM.bit_generator.state = state[0]
        OLD.setstate(state[1])
        check_same(program(x), expected)


def test_clocks_are_those_of_the_module() -> None:
    assert {f"{name}_ns" for name in clocks._CLOCKS} <= vars(time).keys()


def evaluated(x: Any) -> Any:
    scale: float = eval("b * 2", {"b": 3})
    return x * scale


def with_names(x: Any) -> Any:
    scale = len(x)
    return x * scale * eval("scale")


def test_texts_are_evaluated_by_python_with_the_variables_that_they_are_given() -> None:
    numpy_program(evaluated, np.ones(3))
    with pytest.raises(UnsupportedProgram, match="write the expression itself"):
        distspmd.program(with_names, comm=MPI.COMM_SELF)(np.ones(3))
