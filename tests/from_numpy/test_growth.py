"""How the work of reading and lowering grows with a program: calls of functions are counted."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.placement import propagation
from from_numpy.corpus.registry import Case
from from_numpy.harness import run_here
from from_numpy.outcomes import RIGHT

CALLS_PER_STATEMENT = 15_000
"""At most, of Python functions: a core makes over a million in a second, so that 100 statements
take less than the two seconds that they may take, by half of that."""

MIXED = """
    a = a * 2.0 + b
    b = np.sqrt(a * a + 1.0) - b
    a[1:-1] = 0.5 * (b[2:] + b[:-2])
    b = np.where(a > b, a, b)
    a = a - np.sum(b) / 100.0
    c = m @ a
    b = b + c
    m = m + m.T
    a = np.maximum(a, 0.0) + m[0]
    b = m.sum(axis=0) * 0.01
"""
LOOPS = """
    for i in range(1, n):
        a[i] = a[i - 1] + b[i]
        if a[i] > 3.0:
            a[i] = 1.0
    for i in distspmd.map[1:n]:
        b[i] = a[i - 1]
    a[0] = b[2] * 2.0
    s = a[1] + b[1]
    b[1] = s
"""


def of_length(text: str, times: int, folder: Path) -> Callable[..., Any]:
    """A function that has a text many times."""
    file = folder / f"program_{times}.py"
    file.write_text(
        "import numpy as np\nimport distspmd\n\n\ndef program(a, b, m):\n    n = a.shape[0]\n"
        + text.strip("\n").join(["", "\n"]) * times
        + "    return a, b, m\n"
    )
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    found: Callable[..., Any] = names["program"]
    return found


def count_calls(run: Callable[[], Any]) -> int:
    """How many functions of Python a call calls."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("text", [MIXED, LOOPS], ids=["mixed", "loops"])
def test_programs_of_100_statements_are_read_quickly(text: str, tmp_path: Path) -> None:
    arguments = np.zeros(40), np.zeros(40), np.zeros((40, 40))
    half, whole = (of_length(text, times, tmp_path) for times in (5, 10))
    numpy_program(half, *arguments)  # what is imported and kept is not counted
    fewer = count_calls(lambda: numpy_program(half, *arguments))
    more = count_calls(lambda: numpy_program(whole, *arguments))
    assert more < CALLS_PER_STATEMENT * 100
    assert more < 2.6 * fewer


def weighed(t, u):
    total = 0.0
    for i, j in [(i, j) for i in range(2) for j in range(u.size)]:
        total += t[i, j] * u[j]
    return total


def test_each_space_asks_each_neighbour_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    follow = propagation.follow

    def counted(space: Any, use: Any, neighbour: Any, tiling: Any) -> Any:
        asked.append((id(use), id(neighbour)))
        return follow(space, use, neighbour, tiling)

    monkeypatch.setattr(propagation, "follow", counted)
    distspmd.lower(numpy_program(weighed, np.ones((2, 6)), np.ones(6)))
    assert asked
    assert len(asked) == len(set(asked))


# -- loops over places ----------------------------------------------------------------------------


def over_places(t, x):
    total = 0.0
    for (i, j), v in np.ndenumerate(t):
        if v > 0.5:
            total += v * (i - j)
    for (k,), v in np.ndenumerate(x):  # elements are read when their turn comes
        if k + 1 < x.size:
            x[k + 1] += v
    u = np.zeros_like(t)
    for place in np.ndindex(t.shape):
        if t[place] > 0.9:
            break
        u[place] = -t[place]
    else:
        u[0, 0] = 100.0
    for a, b, c in itertools.product(range(2), repeat=3):
        u[a, b] += c
    return total, i, j, v, place[1], u


def over_few(t):
    listed = [10 * i + j for i, j in np.ndindex(2, 3)]
    count = 0
    for _ in np.ndindex(t.shape[0], 0):
        count += 1
    for _ in np.ndindex():
        count += 10
    for da, db in itertools.product([-1, 0, 1], [0, 2]):
        count += t[1 + da, db] * da
    for (i, j), v in np.ndenumerate(np.array([[1, 2], [3, 4]])):
        count += v * t[i, j] + i
    return listed, count, np.array([v for _, v in np.ndenumerate(t)])


def first_above(t, least):
    for place, v in np.ndenumerate(t):
        if v > least:
            return place[0], v
    return -1, 0.0


RNG = np.random.default_rng(0)
CASES = [
    Case(function.__name__, function, "", "", lambda _, given=given: tuple(map(np.copy, given)), ())
    for function, *given in [
        (over_places, RNG.random((5, 6)), RNG.random(7)),
        (over_few, RNG.random((4, 3))),
        (first_above, RNG.random((3, 4)), np.float64(0.8)),
    ]
]


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_loops_over_places_are_loops_in_loops(case: Case) -> None:
    found = run_here(case)
    assert found.kind == RIGHT, found


def test_loops_over_places_do_not_grow_with_arrays() -> None:
    few, many = (
        len(distspmd.iteration_spaces(numpy_program(over_places, np.ones((n, n)), np.ones(n))))
        for n in (5, 50)
    )
    assert few == many
