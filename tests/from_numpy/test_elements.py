"""Elements of arrays are numbers: what is written later does not reach them, nor they the array."""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case
from from_numpy.harness import run_here
from from_numpy.outcomes import RIGHT


def halved(values: Any) -> Any:
    steps = 0
    for v in values:
        while v > 0:
            v //= 2
            steps += 1
    return steps


def overwritten(values: Any) -> Any:
    total = 0
    for i, v in enumerate(values):
        values[i] = 0
        total += v
    for a, b in zip(values, values, strict=True):
        values[:] = values + 1
        a += 2
        total += a * b
    return total


def kept(values: Any) -> Any:
    best, out = values[0], []
    for v in values:
        if v > best:
            best = v
        out.append(v)
    listed = [v for v in values]  # noqa: C416
    first, second, third = values
    doubled = [(v + w, w) for v, w in zip(values, values, strict=True)]
    values[:] = 0
    return best, np.array(out), np.array(listed), first, second, third, np.array(doubled)


def rows_are_written(table: Any) -> Any:
    for row in table:
        row += 1
        for v in row:
            v *= 2
    for v in table.flat:
        table[0, 0] += v
    return table


def numbers(n: Any, x: Any) -> Any:
    m = n
    n += 1
    for _ in range(3):
        n *= 2
    return m, n, x * n


def all_of_them(x: Any, table: Any, n: Any) -> Any:
    return (
        halved(x),
        overwritten(x.copy()),
        kept(x.copy()),
        rows_are_written(table),
        numbers(n, x),
        x,
    )


def test_elements_and_numbers_are_copies_and_rows_are_not() -> None:
    def arguments(_: Any) -> Any:
        return np.array([20, 3, 7]), np.arange(6.0).reshape(2, 3), np.int64(5)

    outcome = run_here(Case("all_of_them", all_of_them, "", "", arguments, ()))
    assert outcome.kind == RIGHT, outcome.reason


def known(x: Any) -> Any:
    people, order, place = list(range(6)), [], 0
    while people:
        place = (place + 2) % len(people)
        order.append(people.pop(place))
    return order


def test_a_list_that_no_array_decides_is_a_list() -> None:
    outcome = run_here(Case("known", known, "", "", lambda _: (np.ones(3),), ()))
    assert outcome.kind == RIGHT, outcome.reason
