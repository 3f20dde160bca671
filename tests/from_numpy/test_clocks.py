"""Programs that say how long their parts take: clocks are read while they run."""

from __future__ import annotations

import re
import time
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

PERCENT, FORMAT = "took %.3f s", "{:.2f}"


class _Timer:
    def __init__(self) -> None:
        self.begin = 0.0

    def start(self) -> None:
        self.begin = perf_counter()

    def lap(self) -> Any:
        return perf_counter() - self.begin


def told(x: Any) -> Any:
    start = time.time()
    timer = _Timer()
    timer.start()
    for i in range(3):
        begin = time.perf_counter()
        x = 2 * x + 1
        print(f"step {i}: {time.perf_counter() - begin:.9f} s")
    elapsed = time.time() - start
    print(PERCENT % elapsed, round(1000 * elapsed, 2), "ms", FORMAT.format(elapsed / 60))
    print(str(timer.lap()), float(-elapsed) + 1.5)
    return x


def given_back(x: Any) -> Any:
    start = time.monotonic()
    y = np.sqrt(x)
    return y, {"seconds": time.monotonic() - start}


def test_what_is_computed_does_not_depend_on_clocks() -> None:
    case = Case("told", told, "own", "", lambda rng: (rng.random(5),), ())
    outcome = on_paper(case)  # results are compared before what is printed, which has the times
    assert outcome.kind == "right" or "is printed, not" in outcome.reason


@pytest.mark.usefixtures("unoptimised")
def test_clocks_are_read_while_the_program_runs(capfd: pytest.CaptureFixture[str]) -> None:
    lowering = distspmd.lower(numpy_program(told, np.ones(5)))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        for _ in range(2):
            assert (program(x=np.zeros(5)) == 7).all()
    text = capfd.readouterr().out
    steps = [float(s) for s in re.findall(r"step \d: (0\.\d{9}) s", text)]
    assert len(steps) == 6
    assert all(0 < s < 60 for s in steps)
    took = re.findall(r"took (\d+\.\d{3}) s \d+\.\d+ ms 0\.\d\d", text)
    assert len(took) == 2
    assert all(0 <= float(s) < 60 for s in took)


@pytest.mark.usefixtures("unoptimised")
def test_times_are_results() -> None:
    before = time.monotonic()
    lowering = distspmd.lower(numpy_program(given_back, np.ones(5)))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        root, found = program(x=np.full(5, 4.0))
    assert (root == 2).all()
    assert 0 < found["seconds"] < time.monotonic() - before


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * (time.time() - 3.0),
        lambda x: x + 1 if time.time() > 3 else x,
        lambda x: np.zeros(int(time.perf_counter())) + x[0],
        lambda x: x + time.sleep(1),
    ],
)
def test_what_would_depend_on_clocks_is_refused(program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"clock|sleep"):
        numpy_program(program, np.ones(3))
