"""``itertools``, ``bisect``, ``heapq``, ``math``, ``cmath``, ``np.nditer`` and ``eval``."""

from __future__ import annotations

import bisect
import cmath
import heapq
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.frontend import numpy_program
from from_numpy.endings import INPUTS, different_endings
from from_numpy.statements_in_numpy import Programs, WrongOnPaper


def in_pairs(x):
    apart = [q - p for p, q in itertools.pairwise(x)]
    products = [p * q for p, q in itertools.combinations(x, 2)]
    least = min(itertools.permutations(range(3)), key=lambda s: x[s[0]] - x[s[1]])
    return apart, products, least


def accumulated(x):
    high = [v for v in x if v > 0.25]
    totals = list(itertools.accumulate(x))
    tops = list(itertools.accumulate(high, max))
    return totals, tops, list(itertools.accumulate([1, 2, 3], operator.mul))


def chained(x):
    groups = [(k, len(list(g))) for k, g in itertools.groupby([1, 1, 2, 3, 3])]
    every = list(itertools.chain([x[0], x[1]], [2.0]))
    first = list(itertools.takewhile(lambda n: n < 3, [1, 2, 3, 1]))
    last = list(itertools.dropwhile(lambda n: n < 3, [1, 2, 3, 1]))
    return groups, every, first, last, list(itertools.islice(x, 1, 3))


def in_order(x):
    kept: list[float] = []
    for v in x:
        bisect.insort(kept, v)
    places = [bisect.bisect_left(kept, v) for v in x]
    return kept, places, [bisect.bisect([0.25, 0.5], v) for v in x]


def least_and_most(x):
    high = len([v for v in (0.1, 0.4, 0.2) if v > 0.15])
    return heapq.nlargest(high, [3, 1, 2]), heapq.nsmallest(2, range(4), key=lambda i: -i), x[0]


def whole_numbers(x):
    k = int(x[1] * 10)
    return math.gcd(k, 6), math.factorial(k), math.comb(k, 2), math.perm(k, 2), math.isqrt(k)


def of_known_values(x):
    known, total = [1, 2, 2, 3], list(itertools.accumulate([1, 2, 3]))
    bisect.insort(known, 0)
    return x[bisect.bisect_left(known, 2)] * total[2], known


def of_math(x):
    return math.dist(x[:2], x[2:]), math.prod(x), math.isclose(x[0], x[2] * 2, rel_tol=0.2)


def of_cmath(x):
    z = complex(x[0], x[1])
    return cmath.exp(z), cmath.sqrt(-x[0]), cmath.phase(z), cmath.polar(z), cmath.rect(*x[:2])


def in_turn(x):
    y, total = x.reshape(2, 2).copy(), 0.0
    each = np.nditer(y, flags=["multi_index"], op_flags=["readwrite"])
    while not each.finished:
        place = each.multi_index
        y[place] = y[place] * 2 + place[0]
        each.iternext()
    for v in np.nditer(y):
        total += v * v
    for v in np.nditer(y, op_flags=["readwrite"]):
        v[...] = v + 1
    return y, total


def first_values(x):
    def above(limit):
        for v in x:
            yield v > limit

    place = next((k for k, v in enumerate(x) if v > 0.5), -1)
    some = next((k for k in range(4) if x[k] > 0.8), None)
    return place, 0 if some is None else some, any(above(0.5)), all(above(0.15)), next(above(0.3))


def first_that_there_may_not_be(x):
    return next(v for v in x if v > 0.8)


PROGRAMS = [
    *(first_values, of_known_values),
    *(in_pairs, least_and_most, whole_numbers, of_math, of_cmath),
    *(in_turn,),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_iterators_give_what_python_gives(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS)


@pytest.mark.parametrize(
    "program", [accumulated, chained, in_order], ids=lambda each: each.__name__
)
def test_python_runs_other_iterators_and_bisections(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS, is_hosted=True)


@pytest.mark.parametrize("x", INPUTS, ids=str)
def test_next_of_no_value_ends_the_program(x: Any) -> None:
    programs = Programs()
    with programs.kept():
        parsed = numpy_program(first_that_there_may_not_be, x)
    if x.max() > 0.8:
        assert programs.run(parsed, {"x": x.copy()}) == x[x > 0.8][0]
        return
    with pytest.raises(WrongOnPaper, match="StopIteration"):
        programs.run(parsed, {"x": x.copy()})
