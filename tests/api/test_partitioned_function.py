"""Functions under the decorator, as scripts call them on ranks."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.execution.call_keys import what_is_new
from distspmd.frontend.from_numpy.reader import outside_values
from distspmd.runtime import notices


def test_a_function_without_a_schedule_is_searched_for_once_and_said_once(
    launch: Callable[..., Any], root: Path
) -> None:
    new = str(random.SystemRandom().uniform(1e-12, 2e-12))
    done = launch(root / "tests" / "ranks" / "searched.py", new, ranks=4)
    told = done.stdout + done.stderr
    assert told.count("product: searched: 4 ranks, predicted ") == 1, told
    assert told.count("on_two: searched: 2 ranks, predicted ") == 1, told
    assert told.count("sum_of_all: searched: 4 ranks, and one is predicted to be the fastest") == 1
    assert told.count("doubled: searched: 4 ranks, predicted ") == 1
    warned = [line for line in told.splitlines() if "ScheduleWarning: " in line]
    idle = {line.split("ScheduleWarning: ")[1].split(":")[0]: line for line in warned}
    assert len(warned) == len(idle)
    assert idle.keys() == {"on_two", "sum_of_all", "unsearched"}
    assert (
        "2 of 4 ranks are idle, and 0% of the work stays whole: the search was for 2"
        in idle["on_two"]
    )
    assert "3 of 4 ranks are idle, and 100% of the work stays whole" in idle["sum_of_all"]
    assert "ranks=4) search for one" in idle["unsearched"]


def test_a_result_that_is_used_on_another_rank_is_one_error_that_ends_all(
    launch: Callable[..., Any], root: Path
) -> None:
    script = root / "tests" / "ranks" / "elsewhere.py"
    done = launch(script, "use", ranks=3, check=False)
    told = done.stdout + done.stderr
    assert done.returncode != 0
    assert told.count("sum on rank 0: 36.0") == 1, told
    assert told.count("<the result of simulate(...) is on rank 0, and not on this rank>") == 2
    assert told.count("MissingResultError: the result of simulate(...) is on rank 0") == 1
    assert told.count("Traceback") == 1
    assert "elsewhere.py" in told.split("Traceback")[1]


FACTOR, WEIGHTS = 2.0, [1.0]


def by_factor(x: Any, n: Any) -> Any:
    return doubled(x) * FACTOR + n


def doubled(x: Any) -> Any:
    return x + x


def weighted(x: Any) -> Any:
    return x * WEIGHTS[0]


@pytest.mark.usefixtures("unoptimised")
def test_a_call_like_one_before_looks_nothing_up_but_what_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[Any] = []

    def look(*given: Any) -> Any:
        looks.append(given)
        return look_outside(*given)

    look_outside = outside_values.look_outside
    monkeypatch.setattr(outside_values, "look_outside", look)
    here = globals()
    for function, name, value in (
        (by_factor, "FACTOR", 3.0),
        (by_factor, "doubled", lambda x: x * x),
    ):
        called = distspmd.program(function, search=False, schedule={}, comm=MPI.COMM_SELF)
        x, y = np.arange(4.0), np.arange(5.0)
        for given in (x, y):
            assert (called(given, 1.5) == function(given, 1.5)).all()
        looks.clear()
        for given in (x, y, x):
            assert (called(given, 0.5) == function(given, 0.5)).all()
            assert (called(given, n=0.5) == function(given, 0.5)).all()
        assert not looks
        monkeypatch.setitem(here, name, value)
        assert (called(x, 1.5) == function(x, 1.5)).all()
        assert looks
        assert (called(x, n=2) == function(x, 2)).all()  # of another type
        called.close()


@pytest.mark.usefixtures("unoptimised")
def test_what_may_change_while_it_stays_the_same_object_is_looked_at_in_each_call() -> None:
    called = distspmd.program(weighted, search=False, schedule={}, comm=MPI.COMM_SELF)
    for weight in (1.0, 4.0, 1.0):
        WEIGHTS[0] = weight
        assert (called(np.ones(3)) == weight).all()
    called.close()


def test_ranks_find_the_program_of_the_call_before_together(launch: Callable[..., Any]) -> None:
    done = launch(LIKE_BEFORE, ranks=2)
    assert done.stdout.count("ok") == 2


LIKE_BEFORE = """
import numpy as np
from mpi4py import MPI
import distspmd
from distspmd.errors import ArgumentError

FACTOR = 2.0

@distspmd.program(schedule={}, search=False)
def scaled(x, n):
    return x * FACTOR + n

@distspmd.program(schedule={"__return": (2,)}, arguments={"x": "replicated"}, results="replicated")
def held(x):
    return x + FACTOR

first = MPI.COMM_WORLD.rank == 0
for turn in range(4):
    FACTOR = 3.0 if turn == 2 else 2.0
    for n in (4, 4, 5, 5, 4):
        x = np.arange(float(n))
        for given in ((x, 1.5), (x, 2)):
            found = scaled(*(given if first else ()))
            if first:
                assert (found == x * FACTOR + given[1]).all()
        assert (held(x) == x + FACTOR).all()
    try:
        scaled(*((x, "text") if first else ()))
        raise SystemExit("a text was taken")
    except (ArgumentError, distspmd.errors.DistSPMDError):
        pass
for _ in range(3):
    scaled(*((x, 1.5) if first else ()))
before = scaled._agreement.rank_state.came
scaled(*((x, 1.5) if first else ()))
assert scaled._agreement.rank_state.came == before + 1, "ranks meet once"
print("ok")
"""


class Grid:
    def __init__(self, n: int) -> None:
        self.n = n


def grown(x: Any, grid: Any, steps: int = 2) -> Any:
    for _ in range(steps):
        x = x * grid.n
    return x


@pytest.mark.usefixtures("unoptimised")
def test_objects_are_arguments_by_what_they_have(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notices, "_said", set())
    caplog.set_level(logging.INFO, "distspmd")
    function = distspmd.program(search=False, comm=MPI.COMM_SELF)(grown)
    first = Grid(8)
    for grid in (first, first, Grid(8)):
        assert (function(np.ones(6), grid) == 64).all()
    assert len(function._programs) == 1
    assert not caplog.text
    first.n = 3
    assert (function(np.ones(6), first) == 9).all()
    assert len(function._programs) == 2
    assert "grown: made again for what it sees from outside, or for other objects" in caplog.text
    assert (function(np.ones(6), Grid(8), steps=3) == 512).all()
    assert "grown: made again for steps=3, which decides its code, in " in caplog.text
    function.close()


def test_what_is_new_of_a_call_is_told() -> None:
    x = ("x", ("float64", (8,)), None)
    key = ("outside", x, ("n", "int", ("int", "4")))
    other = ("outside", ("x", ("float64", (9,)), None), ("n", "int", ("int", "4")))
    assert what_is_new(key, [], 2) == ""
    assert what_is_new(other, [key], 2) == "for x of float64[9]"
    more = ("outside", x, ("n", "int", ("int", "5")))
    assert what_is_new(more, [key, other], 2) == "for x of float64[8], n=5, which decides its code"
    assert what_is_new(more, [other, key], 2) == "for n=5, which decides its code"
    assert "outside" in what_is_new(("changed", *more[1:]), [key], 2)
