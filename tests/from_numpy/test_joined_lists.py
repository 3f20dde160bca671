"""Lists whose content the run decides, of which a branch or a loop leaves one or another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.random.default_rng(3).random(6)


def one_or_another(x: Any) -> Any:
    found = [i for i in range(3) if x[i] > 0.5]
    if x[0] > 0.05:
        found = [i for i in range(5) if x[i] > 0.4]
    return len(found), found


def longest(x: Any) -> Any:
    best, score = [], -1.0
    for t in range(4):
        path = []
        j = t
        while j < 12 and x[j % 6] > 0.05:
            path.append(j)
            j += 1 + int(3 * x[j % 6])
        s = sum(path) * x[t]
        if s > score:
            score = s
            best = path
    print(best, score)
    return best


def path_from(x: Any, start: int) -> Any:
    path, j = [], start
    while j < 12 and x[j % 6] > 0.05:
        path.append(j)
        j += 1 + int(3 * x[j % 6])
    return path


def best_of_many(x: Any) -> Any:
    """The list of the best iteration, which has another name in each."""
    best, score, seen = [], -1.0, 0
    for t in range(40):
        path = path_from(x, t % 5)
        s = sum(path) * x[t % 6]
        if s > score:
            score = s
            best = path
        seen += len(best) + len(path)
    one = best
    if x[0] > 0.01:
        one = path
    return best, len(path), path, seen, one


def near(x: Any, place: Any) -> Any:
    found = []
    for k in range(len(x)):
        if abs(x[place] - x[k]) < 0.3:
            found.append(k)  # noqa: PERF401 - it is the loop that may not run
    return found


def grow(x: Any, labels: Any, pending: Any) -> None:
    labels[0] = 1
    i = 0
    while i < len(pending):
        place = pending[i]
        if labels[place] == -1:
            labels[place] = 1
        elif labels[place] == 0:
            labels[place] = 1
            more = near(x, place)
            pending = pending + more
        i += 1


def labelled(x: Any) -> Any:
    """A list that a loop makes in a branch, which the run may not take."""
    labels = [0] * len(x)
    pending = near(x, 0)
    grow(x, labels, pending)
    return labels, len({1: "one", 2: "three"}[1 + int(x[0] > 0.05)])


@pytest.mark.parametrize(
    "program",
    [best_of_many, one_or_another, longest, labelled],
    ids=lambda each: each.__name__,
)
def test_lists_of_two_ways_are_pythons(program: Any) -> None:
    case = Case(program.__name__, program, "own", "", lambda _: (X.copy(),), ())
    assert on_paper(case).kind == "right", on_paper(case)


def named_twice(x: Any) -> Any:
    found = [i for i in range(6) if x[i] > 0.3]
    other = found
    if x[0] > 0.2:
        other = [i for i in range(6) if x[i] > 0.6]
    other.append(7)
    return found, other


def changed_under_its_first_name(x: Any) -> Any:
    best, score = [], -1.0
    for t in range(40):
        path = path_from(x, t % 5)
        if x[t % 6] > score:
            score, best = x[t % 6], path
        path.append(t)
    return best


def changed_in_a_later_iteration(x: Any) -> Any:
    best, path = [], [1 for v in x if v > 0.1]
    for t in range(40):
        path.append(t)
        if x[t % 6] > 0.9:
            best = path
    return best


def changed_after_the_loop(x: Any) -> Any:
    best = []
    for t in range(40):
        path = path_from(x, t % 5)
        if x[t % 6] > 0.3:
            best = path
    best.append(1)
    return best, path


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (named_twice, "'other' may stand for, too, as the run decides"),
        (changed_under_its_first_name, "'best' may stand for, too"),
        (changed_in_a_later_iteration, "'best'"),
        (changed_after_the_loop, "'best' may stand for, too"),
    ],
)
def test_a_list_with_two_names_does_not_change(program: Any, said: str) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(program, X)
