"""Programs whose loops go over elements, as one writes them without thinking of arrays.

Each has a maker of arguments; sizes divide by nothing. ``KINDS`` says what becomes of its loops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import default_rng

import distspmd
from distspmd.frontend import numpy_program


def doubled(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * 2


def row_sums(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i].sum()


def stencil(x, y):
    n, m = x.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            y[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4


def lengths_of_rows(x, out):
    for i, row in enumerate(x):
        out[i] = np.sqrt((row * row).sum())


def over_time(x, y):
    for _ in range(5):
        for i in range(1, x.shape[0] - 1):
            y[i] = (x[i - 1] + x[i + 1]) / 2
        for i in range(1, x.shape[0] - 1):
            x[i] = y[i]


def chosen(x, out):
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            out[i] = x[i]
        else:
            out[i] = -x[i]


def clamped(x, out):
    for i in range(x.shape[0]):
        v = x[i]
        if v > 0.7:
            v = 0.7
        w = v * v
        out[i] = w + v


def odd_and_even(x, out):
    n = x.shape[0] // 2
    for i in range(n):
        out[2 * i] = out[2 * i + 1] + x[i]


def from_above(x, out):
    for i in range(x.shape[0] - 1):
        x[i] = x[i + 1] * out[i]


def backwards(x, out):
    for i in range(x.shape[0] - 1, -1, -2):
        out[i] = x[i] + i


def triangle(x, y):
    for i in range(x.shape[0]):
        for j in range(i + 1):
            y[i, j] = x[j, i] + y[i, j]


def row_by_row(x, out):
    n, m = x.shape
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += x[i, j] * x[i, j]
        out[i] = math.sqrt(s)


def total(x, out):
    s = 1.5
    for i in range(x.shape[0]):
        s += x[i] * out[i]
    return s


def weighted_by_places(x, out):
    s = 0.0
    for i in range(x.shape[0] - 5):
        s += x[i + 5] * i
    return s


def counted(x, out):
    n = 0
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            n += 1
    return n


def least_and_most(x, out):
    low, high = x[0], x[0]
    for i in range(x.shape[0]):
        low = min(low, x[i])
        high = max(high, x[i])
    return low, high


def product_by_elements(a, b):
    n = a.shape[0]
    c = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
    return c


def distances(x, out):
    n = x.shape[0]
    for i in range(n):
        s = 0.0
        for j in range(n):
            d = x[i] - x[j]
            if d > 0:
                s += d
        out[i] = s


def prefix(x, out):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s


def recurrence(x, out):
    for i in range(1, x.shape[0]):
        out[i] = 0.5 * out[i - 1] + x[i]


def beside_a_recurrence(x, out):
    y = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 3
        out[i] = 0.5 * out[i - 1] + y[i]
    return y


def seidel(x, y):
    n, m = x.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            x[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4


def last_value(x, out):
    d = 0.0
    for i in range(x.shape[0]):
        d = x[i] * 2
        out[i] = d
    return d


def welford(x, out):
    mean = 0.0
    m2 = 0.0
    for i in range(x.shape[0]):
        d = x[i] - mean
        mean += d / (i + 1)
        m2 += d * (x[i] - mean)
    return mean, m2


def wide(x, y):
    for i in range(x.shape[0]):
        t = np.sqrt(x[i]) + 1
        y[i] = t * t[0]


def long_prefix(x, out):
    s = 0.25
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s * 2
    return s


def long_recurrence(x, out):
    for i in range(1, x.shape[0]):
        out[i] = 0.5 * out[i - 1] + x[i]


def long_backwards(x, out):
    for i in range(x.shape[0] - 2, -1, -1):
        out[i] = x[i] * out[i + 1] + i / x.shape[0]


def long_welford(x, out):
    mean = 0.0
    m2 = 0.0
    for i in range(x.shape[0]):
        d = x[i] - mean
        mean += d / (i + 1)
        m2 += d * (x[i] - mean)
    return mean, m2


def long_mixture(x, out):
    last = 0.0
    low = x[0]
    for i in range(1, x.shape[0]):
        low = low + (x[i] - low) * 0.125
        out[i] = low * x[i] + last
        last = x[i - 1]
    return low, last


def long_extremes(x, out):
    x[2500] = np.nan
    low, high = x[0], -1.0
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        high = max(high, x[i] * (i % 1000))
        if x[i] < low:
            low = x[i]
        out[i] = high
        y[i] = low
    return y


def long_circle(x, out):
    y = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 3
        out[i] = out[i - 1] * out[i - 1] * 0.05 + y[i]
        x[i] = y[i] + 1
    return y


def greatest(x, out):
    best, at = -1.0, -1
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            at = i
    return best, at


def last_of_the_least(x, out):
    best, at, other = 2.0, -1, 0.0
    for i in range(x.shape[0] - 1, 0, -1):
        d = (x[i] - x[i - 1]) ** 2
        if d <= best and out[i] > 0.25:
            best = d
            other = out[i]
            at = i - 1
    return best, at, other


def greatest_without_nan(x, out):
    x[3] = x[0] = np.nan
    best, at, most = out[0], 0, 0.0
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
            at = i
        d = abs(x[i])
        if d > most:
            most = d
    first = x[0]
    for v in x:
        first = max(first, v)
    return best, at, most, first


def closest_pair(x, y):
    best, p, q = 1e9, -1, -1
    n = x.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            d = (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2
            if d < best:
                best = d
                p = i
                q = j
    return best, p, q


def counted_by_kind(x, out):
    low = middle = high = 0
    total = 0.0
    for i, v in enumerate(x):
        if v < 0.25:
            low += 1
            total += v * out[i]
        elif v < 0.5:
            middle += i
        else:
            high += 1
            total -= v
    return low, middle, high, total


def close_pairs(x, y):
    n = x.shape[0]
    count = 0
    for i in range(n):
        for j in range(i + 1, n):
            if abs(x[i, 0] - x[j, 0]) < 0.1:
                count += 1
    return count


def shortest_paths(x, y):
    n = x.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                x[i, j] = min(x[i, j], x[i, k] + x[k, j])


def shortest_paths_with_signs(x, y):
    n = x.shape[0]
    for k in range(n - 1, -1, -1):
        for i in range(n):
            for j in range(n):
                if x[i, k] + x[k, j] - 0.4 < x[i, j]:
                    x[i, j] = x[i, k] + x[k, j] - 0.4


def while_it_counts(x, out):
    i, s = x.shape[0] - 1, 0.0
    while i >= 3:
        if x[i] > 0.5:
            s += x[i] * x[i - 3]
        out[i] = x[i - 1]
        i -= 2
    return s, i


def packed(x, out):
    n, m = x.shape
    line = np.zeros(n * m + 3)
    k = 3
    for i in range(n):
        for j in range(m):
            line[k] = x[i, j] + out[i]
            k += 1
    return line * k


def by_halves(x, out):
    n = x.shape[0]
    for i in range(2 * n - 1):
        out[(i + 1) // 2] += x[i // 2] + x[i % 7]


def sparse_product(x, out):
    begin = (np.arange(x.shape[0] + 1) * 5) // 3
    columns = (np.arange(72) * 29) % x.shape[0] - 3
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(begin[i], begin[i + 1]):
            s += 0.5 * x[columns[k]]
        out[i] = s


LONG = (long_prefix, long_recurrence, long_backwards, long_welford, long_mixture, long_circle)
LONG += (long_extremes,)
LINES = (doubled, over_time, chosen, clamped, odd_and_even, from_above, backwards, total, counted)
LINES += (weighted_by_places,)
LINES += (least_and_most, distances, prefix, recurrence, beside_a_recurrence, last_value, welford)
LINES += (
    while_it_counts,
    by_halves,
    sparse_product,
    greatest,
    last_of_the_least,
    greatest_without_nan,
    counted_by_kind,
)
ROWS = (row_sums, lengths_of_rows, row_by_row, packed)
GRIDS = (
    stencil,
    triangle,
    product_by_elements,
    seidel,
    wide,
    shortest_paths,
    shortest_paths_with_signs,
    closest_pair,
    close_pairs,
)
PROGRAMS = {p.__name__: p for p in (*LINES, *LONG, *ROWS, *GRIDS)}


def arguments(program: Any) -> tuple[Any, ...]:
    """What a program is called with."""
    rng = default_rng(7)
    if program in LINES:
        return rng.random(43), rng.random(43)
    if program in LONG:
        return rng.random(4999), rng.random(4999)
    if program in ROWS:
        return rng.random((23, 17)), rng.random(23)
    return rng.random((19, 19)), rng.random((19, 19))


def split_everything(sdfg: Any, ranks: int, dimension: int) -> dict[str, tuple[int, ...]]:
    """A schedule that splits each space along one dimension, or its last one."""
    schedule = {}
    for space in distspmd.iteration_spaces(sdfg):
        if space.parameters and space.parameters != ("__once",):
            parts = [1] * len(space.parameters)
            parts[min(dimension, len(parts) - 1)] = ranks
            schedule[space.name] = tuple(parts)
    return schedule


def check(comm: Any, names: list[str]) -> None:
    """Compare programs with NumPy on the ranks that run this."""
    for name in names:
        program = PROGRAMS[name]
        for dimension in (0, 1):
            given, wanted = arguments(program), arguments(program)
            lowering = None
            if comm.rank == 0:
                parsed = numpy_program(program, *given, host="refuse")
                schedule = split_everything(parsed, comm.size, dimension)
                lowering = distspmd.lower(parsed, schedule)
            with distspmd.compile(lowering, comm) as compiled:
                found = compiled(*given)
            if comm.rank == 0:
                expected = program(*wanted)
                if expected is not None:
                    np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=name)
                for one, other in zip(given, wanted, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-10, err_msg=name)
                print("right:", name, dimension, flush=True)
            if program not in GRIDS:
                break
