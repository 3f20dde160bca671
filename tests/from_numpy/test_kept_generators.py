"""Generators that are kept, asked for one value after the other, and read in parts."""

# ruff: noqa: B007, B905, C417, PERF203, PERF401, UP028

from __future__ import annotations

import itertools
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


def next_in_long_loop(x):
    def lcg(seed):
        while True:
            seed = (1103515245 * seed + 12345) % 2**31
            yield seed / 2**31

    rng = lcg(42)
    s = 0.0
    for i in range(1000):
        u, v = next(rng), next(rng)
        if u * u + v * v < 1:
            s += 1
    return 4 * s / 1000 + x


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


def sliced_loop(x):
    s = 0
    for f in islice(fib(), 2, 8, 2):
        s += f
    return s + x


def sliced_gen_data(x):
    def halves(v):
        while True:
            yield v
            v = v / 2

    return sum(islice(halves(x[0]), 6))


def taken_while(x):
    s = 0
    for f in takewhile(lambda v: v < 100, fib()):
        s += f
    return s + x


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


def next_then_for(x):
    def rows(y):
        for v in y:
            yield v * 2

    g = rows(x)
    first = next(g)
    s = 0.0
    for v in g:
        s += v
    return first, s


def default_next(x):
    g = (v for v in x if v > 1)
    a = next(g, -1.0)
    b = next(g, -1.0)
    c = next(g, -1.0)
    return a, b, c


def finite_next_default(x):
    def gen(n):
        for i in range(n):
            yield i * x[0]

    g = gen(2)
    return next(g, None), next(g, None), next(g, None) is None


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


def sending(x):
    def acc():
        s = 0.0
        while True:
            v = yield s
            s += v

    g = acc()
    next(g)
    a = g.send(x[0])
    b = g.send(x[1])
    return a, b


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


def batches(x):
    def batch(y, n):
        for i in range(0, len(y), n):
            yield y[i : i + n]

    b = batch(x, 2)
    a = next(b)
    return a.sum() + sum(p.sum() for p in b)


def zip_two_gens(x):
    def evens():
        n = 0
        while True:
            yield n
            n += 2

    def odds():
        n = 1
        while True:
            yield n
            n += 2

    s = 0.0
    for v, e, o in zip(x, evens(), odds()):
        s += v * (e - o * 2)
    return s


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


def ids(x):
    c = itertools.count()
    out = []
    for v in x:
        if v > 0.5:
            out.append(next(c))
    return len(out), next(c)


def cyc_zip(x):
    s = 0.0
    for w, v in zip(itertools.cycle([4, 2]), x):
        s += w * v
    return s


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


def halton(x):
    def halton_seq(b):
        n, d = 0, 1
        while True:
            t = d - n
            if t == 1:
                n = 1
                d *= b
            else:
                y = d // b
                while t <= y:
                    y //= b
                n = (b + 1) * y - t
            yield n / d

    h2, h3 = halton_seq(2), halton_seq(3)
    pts = np.array([(next(h2), next(h3)) for _ in range(6)])
    return pts * x[0]


def rk_gen(x):
    def rk4(f, y, t, h):
        while True:
            k1 = f(t, y)
            k2 = f(t + h / 2, y + h / 2 * k1)
            k3 = f(t + h / 2, y + h / 2 * k2)
            k4 = f(t + h, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            t = t + h
            yield t, y

    solver = rk4(lambda t, y: -y, x, 0.0, 0.1)
    t = 0.0
    while t < 0.95:
        t, y = next(solver)
    return y


def stop_iteration(x):
    it = iter(x)
    s = 0.0
    while True:
        try:
            s += next(it)
        except StopIteration:
            break
    return s


def sum_gen_var(x):
    g = (v * 2 for v in x)
    s = sum(g)
    return s, sum(g)


def map_var(x):
    m = map(lambda v: v * 2, x)
    return next(m) + sum(m)


PROGRAMS = [
    next_array_gen,
    next_in_run_while,
    next_in_long_loop,
    passed_to_function,
    zipped_infinite,
    sliced,
    sliced_loop,
    sliced_gen_data,
    taken_while,
    taken_while_data,
    for_twice,
    next_then_for,
    default_next,
    finite_next_default,
    primes,
    averager,
    sending,
    yield_from_two,
    windows,
    batches,
    zip_two_gens,
    enumerate_gen,
    counter,
    ids,
    cyc_zip,
    in_object,
    gradient_descent,
    halton,
    rk_gen,
    stop_iteration,
    sum_gen_var,
    map_var,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_generators_give_their_values_in_turn(program: Any) -> None:
    assert different_endings(program, (*INPUTS, np.array([1.2, 2.5, 0.3, 0.1]))) == []
