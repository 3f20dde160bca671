"""Loops over rows whose parts data decide; of each the program reads its own part alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def products(data, indices, first, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = data[first[i] : first[i + 1]] @ x[indices[first[i] : first[i + 1]]]
    return y


def numbers(data, indices, first, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        s = data[first[i] : first[i + 1]].sum()
        y[i] = 2 * s
    return y


def added(data, indices, first, x):
    total = 0.0
    for i in range(len(x)):
        a = first[i]
        total += data[a : first[i + 1]].max() * x[i]
    return total


def named(data, indices, first, x):
    y, z = np.zeros(len(x)), np.zeros(len(x))
    for i in range(len(x)):
        row = data[first[i] : first[i + 1]]
        columns = indices[first[i] : first[i + 1]]
        v = row * x[columns]
        y[i] = v.sum()
        z[i] = np.sqrt((v * v).mean())
    return y, z


def softmax(data, indices, first, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        w = data[first[i] : first[i + 1]]
        e = np.exp(w - w.max())
        y[i] = (e / e.sum()) @ x[indices[first[i] : first[i + 1]]]
    return y


def _thrice(a, b, data):
    part = data[a:b] * 3
    return part.sum()


def called(data, indices, first, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        if first[i + 1] > first[i]:
            y[i] = _thrice(first[i], first[i + 1], data)
    return y


def one_name_twice(data, indices, first, x):
    y, z = np.zeros(len(x)), np.zeros(len(x), dtype=bool)
    for i in range(len(x)):
        v = data[first[i] : first[i + 1]] * 2
        y[i] = v.min()
    for i in range(len(x)):
        r = indices[i]
        v = data[first[r] : first[r + 1]] * 3
        z[i] = np.any(v > 2) or np.argmax(v) == 1
    return y, z


def scaled(data, indices, first, x):
    y, z = np.zeros(len(data)), np.zeros(len(x))
    for i in range(len(x)):
        a, b = first[i], first[i + 1]
        y[a:b] = data[a:b] / data[a:b].sum()
        y[a:b] += x[indices[a:b]]
        np.add.at(z, indices[a:b], data[a:b])
    return y, z


def carried(data, indices, first, x):
    y = np.zeros(len(x))
    s, start = 0.0, 0
    for i in range(len(x)):
        n = first[i + 1] - first[i]
        s = s * 0.5 + (data[start : start + n] * x[indices[start : start + n]]).sum()
        start += n
        y[i] = s
    return y


def left(data, indices, first, x):
    y, v = np.zeros(len(x)), data[:3] * 2
    for i in range(len(x)):
        v = data[first[i] : first[i + 1]] * 2
        y[i] = v.sum()
    return y, v


def two_lengths(data, indices, first, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        n = first[i + 1] - first[i]
        y[i] = data[first[i] : first[i + 1]] @ x[0 * n : n]
    return y


def rows(rng: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Values, columns, first places and a vector; no row is empty."""
    lengths = rng.integers(1, 5, count)
    first = np.concatenate([[0], np.cumsum(lengths)])
    n = int(first[-1])
    return rng.random(n), rng.integers(0, count, n), first, rng.random(count)


APART = (products, numbers, added, named, softmax, called, one_name_twice)
"""Their iterations do not need each other."""
IN_ORDER = (scaled, carried)
OTHERS = (left, two_lengths)
"""What they compute with a part outlives the iteration, or has another length at times."""
CASES = [Case(f.__name__, f, "", "", rows, (23,)) for f in (*APART, *IN_ORDER, *OTHERS)]
