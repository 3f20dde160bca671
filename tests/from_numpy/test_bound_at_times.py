"""Variables that loops bind in some iterations only, without a value before the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.array([0.2, 0.9, 0.1, 0.7, 0.3, 0.4])


def last_index(x):
    total = 0
    for i in range(1, 6):
        if x[i] > 0.5:
            k = i
        total += k
    return total, k


def of_while(x):
    i, total = 1, 0
    while i < 6:
        if x[i] > 0.5:
            k = i * 2
        total += k
        i += 1
    return total, k


def two_names_of_one(x):
    total = 0.0
    for i in range(1, 6):
        if x[i] > 0.5:
            p = q = x[i] * 2
        if p > 0.1:
            p = q
            q = x[i] * 0.5
        else:
            p = q = 0.3
        total += p - q
    return total, p, q


def part(x):
    for i in range(1, 6):
        if x[i] > 0.5:
            row = x[i : i + 1]
    return row


def nested(x):
    total = 0.0
    for i in range(1, 4):
        for j in range(6):
            if x[j] > 0.5 and j > i:
                found = x[j] * i
            elif i == 1 and j == 0:
                found, place = -1.0, np.float32(3)
        total += found
    return total, found, place


def arrays(x):
    y = np.zeros(6)
    for i in range(1, 6):
        if x[i] > 0.5:
            row = x[:3] * i
            used_here = row + 1
            y[3:] = used_here
        y[:3] += row
    return y, row


FUNCTIONS = [last_index, of_while, two_names_of_one, part, nested, arrays]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_they_are_what_they_were_in_the_other_iterations(function: Any) -> None:
    outcome = on_paper(Case(function.__name__, function, "own", "", lambda _: (X.copy(),), ()))
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared


def test_what_no_loop_carries_is_refused_with_its_name() -> None:
    def program(x):
        n = int(x[0])
        for i in range(n):
            if x[i] > 0.5:
                row = x[:i]
        return row.sum()

    with pytest.raises(UnsupportedProgram, match="'row' is bound in some iterations only"):
        numpy_program(program, X)


def truths(x):
    found, n, done = 0.0, 0, False
    while done is False:
        x = x * 0.5
        n += 1
        if x.sum() < 0.3:
            done = True
    for i in range(6):
        high = bool(X[i] * x[i] > 0.01)
        if high is False:
            found += i
        if high is not True and i > 2:
            found -= 0.5
    whole = n > 3
    return x, n, found, whole is True, whole is not False, (x[0] > 0.5) is True, None is not x


def test_a_truth_value_of_the_run_is_true_or_false() -> None:
    outcome = on_paper(Case("truths", truths, "own", "", lambda _: (X.copy(),), ()))
    assert outcome.kind == "right", outcome


def bound_before_it_is_read(x):
    for k in range(1, 5):
        scale = x[k:].sum()
        if scale < 0.75:
            n = k
            break
        for i in range(k):
            x[i] /= scale
        for i in range(k):
            for j in range(k, 6):
                x[j] += x[i]
        if x[k] > 2:
            found = x[:k]
        else:
            continue
        x[0] += found.sum()
    else:
        n = 9
    for j in range(2):
        x[j] += 1
    return x, n


def test_variables_of_inner_loops_are_not_carried() -> None:
    made = lambda _: (X.copy(),)  # noqa: E731
    outcome = on_paper(Case("inner", bound_before_it_is_read, "own", "", made, ()))
    assert outcome.kind == "right", outcome
