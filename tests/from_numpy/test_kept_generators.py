"""Generators that are kept, asked for one value after the other, and read in parts."""

# ruff: noqa: B007, B905, C417, PERF203, UP028

from __future__ import annotations

from itertools import count, islice, takewhile
from typing import Any

import numpy as np
import pytest

from from_numpy.endings import INPUTS, different_endings


def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def next_array_gen(x):
    def states(y):
        while True:
            y = y * 0.5 + 1
            yield y

    g = states(x)
    first = next(g)
    second = next(g)
    return first, second


def next_in_run_while(x):
    def newton(a):
        y = a
        while True:
            y = 0.5 * (y + a / y)
            yield y

    g = newton(x[1] + 1)
    y = next(g)
    n = 0
    while abs(y * y - x[1] - 1) > 1e-9:
        y = next(g)
        n += 1
    return y, n


def passed_to_function(x):
    def lcg(seed):
        while True:
            seed = (1103515245 * seed + 12345) % 2**31
            yield seed / 2**31

    def take(n, g):
        return [next(g) for _ in range(n)]

    g = lcg(7)
    a = take(3, g)
    b = take(2, g)
    return np.array(a + b) + x[0]


def zipped_infinite(x):
    s = 0.0
    for f, v in zip(fib(), x):
        s += f * v
    return s


def sliced(x):
    return np.array(list(islice(fib(), 5))) * x[0]


def taken_while_data(x):
    def halves(v):
        while True:
            yield v
            v = v / 2

    s = 0.0
    for f in takewhile(lambda v: v > 1e-3, halves(x[0])):
        s += f
    return s


def for_twice(x):
    g = (v * 2 for v in x)
    s = 0.0
    for v in g:
        s += v
        if s > 2:
            break
    t = 0.0
    for v in g:
        t += v
    return s, t


def primes(x):
    def sieve():
        found = []
        n = 2
        while True:
            if all(n % p for p in found):
                found.append(n)
                yield n
            n += 1

    s = 0
    for p in sieve():
        if p > 50:
            break
        s += p
    return s + x


def averager(x):
    def average():
        total, n, mean = 0.0, 0, None
        while True:
            v = yield mean
            total += v
            n += 1
            mean = total / n

    g = average()
    next(g)
    out = np.zeros_like(x)
    for i, v in enumerate(x):
        out[i] = g.send(v)
    return out


def yield_from_two(x):
    def inner(n):
        for i in range(n):
            yield i

    def outer():
        yield from inner(2)
        yield from inner(3)

    g = outer()
    return next(g) + next(g) * x + next(g)


def windows(x):
    def window(y, n):
        for i in range(len(y) - n + 1):
            yield y[i : i + n]

    return np.array([w.mean() for w in window(x, 2)])


def enumerate_gen(x):
    def g():
        for i in range(3):
            yield x[i] * 2

    return [i * v for i, v in enumerate(g())]


def counter(x):
    c = count(1)
    a = next(c)
    b = next(c)
    return a + b * x


def in_object(x):
    class Stream:
        def __init__(self, seed):
            self.g = self._make(seed)

        def _make(self, s):
            while True:
                s = (s * 16807) % 2147483647
                yield s

        def draw(self):
            return next(self.g) / 2147483647

    r = Stream(3)
    return r.draw() + r.draw() * x


def gradient_descent(x):
    def steps(w, lr):
        while True:
            g = 2 * (w - x)
            w = w - lr * g
            yield w

    g = steps(np.zeros_like(x), 0.1)
    for k in range(20):
        w = next(g)
    return w


def stop_iteration(x):
    it = iter(x)
    s = 0.0
    while True:
        try:
            s += next(it)
        except StopIteration:
            break
    return s


def map_var(x):
    m = map(lambda v: v * 2, x)
    return next(m) + sum(m)


def zips_what_changes(x):
    def steps():
        for i in range(3):
            x[0] += 1
            yield x[i]

    total = 0.0
    for a, b in zip(steps(), range(3), strict=False):
        total += a * b
        x[1] = 0.0
    return total


def in_an_expression(x):
    def halves(v):
        while True:
            v = v / 2
            yield v

    g = halves(x[0])
    y = np.sqrt(x)
    return next(g) + y * next(g)


def rows_of_windows(x):
    def window(y, n):
        for i in range(len(y) - n + 1):
            yield y[i : i + n]

    return np.stack([w * 2 for w in window(x, 2)])


HOSTED = [
    *(next_array_gen, next_in_run_while, passed_to_function, zipped_infinite, sliced, for_twice),
    *(taken_while_data, averager, counter, in_object, gradient_descent, zips_what_changes),
    in_an_expression,
]


@pytest.mark.parametrize("program", HOSTED, ids=lambda each: each.__name__)
def test_python_takes_steps_of_generators(program: Any) -> None:
    assert not different_endings(program, INPUTS, is_hosted=True)


COMPILED = [
    *(primes, windows, rows_of_windows, enumerate_gen, yield_from_two, stop_iteration, map_var),
]


@pytest.mark.parametrize("program", COMPILED, ids=lambda each: each.__name__)
def test_what_reads_a_generator_to_its_end_is_compiled(program: Any) -> None:
    assert not different_endings(program, INPUTS)
