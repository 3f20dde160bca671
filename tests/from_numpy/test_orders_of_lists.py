"""Heaps, orders by keys, and extremes of lists whose content the run decides."""

from __future__ import annotations

import functools
import heapq
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import run_here
from from_numpy.outcomes import RIGHT

X = np.array([0.5, 0.1, 0.9, 0.4, 0.4, 0.8, 0.7])
TABLE = np.array([[2, 1, 3], [0, 1, 2], [2, 0, 3], [0, 3, 0], [2, 1, 1], [1, 1, 0], [0, 1, 2]])


def heaps(x: Any) -> Any:
    heap = [v for v in x if v > 0.2]
    heapq.heapify(heap)
    first = list(heap)
    heapq.heappush(heap, x[1])
    replaced = heapq.heapreplace(heap, x[0]), heapq.heappushpop(heap, x[0] / 2)
    heap_of_pairs = []
    for i, v in enumerate(x):
        heapq.heappush(heap_of_pairs, (v, -i))
    return first, heap, replaced, heap_of_pairs, [heapq.heappop(heap) for _ in range(3)]


def orders(t: Any, x: Any) -> Any:
    n = len(x)
    rows = [(int(t[i, 0]), int(t[i, 1]), i) for i in range(n)]
    by_two = sorted(rows, key=lambda r: (-r[1], r[0]))
    down = sorted(rows, key=lambda r: r[0], reverse=True)
    rows.sort()
    many = [i for i in range(n) if x[i] > 0.3]
    many.sort(key=lambda i: x[i])
    nearest = min((abs(v - 0.5), i) for i, v in enumerate(x))
    return rows, by_two, down, many, nearest, sorted(range(n), key=lambda i: t[i, 2])


def extremes(t: Any, x: Any) -> Any:
    many = [i for i in range(len(x)) if x[i] > 0.3]
    none = [i for i in range(len(x)) if x[i] > 2]
    first = min(range(len(x)), key=lambda i: t[i, 0]), max(many, key=lambda i: t[i, 0])
    folded = functools.reduce(lambda p, q: p * 2 + q, many, 0)
    even = list(filter(lambda v: v % 2 == 0, many))
    return first, max(none, default=-1), folded, even, list(map(abs, many))


def everything(t: Any, x: Any) -> Any:
    return heaps(x), orders(t, x), extremes(t, x)


@pytest.mark.usefixtures("unoptimised")
def test_heaps_orders_and_extremes_are_those_of_python() -> None:
    case = Case("everything", everything, "", "", lambda _: (TABLE, X), ())
    found = run_here(case)
    assert (found.kind, found.reason) == (RIGHT, "")
