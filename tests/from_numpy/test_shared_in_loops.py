"""Variables that inner functions bind where the run decides how often, or whether, they do."""


# ruff: noqa: B007, RUF005

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.endings import INPUTS, different_endings


def loop_run(x):
    evals = 0

    def f(v):
        nonlocal evals
        evals += 1
        return v * v - 2

    a, b = 0.0, 2.0
    while b - a > 1e-6 * (1 + x[0]):
        m = (a + b) / 2
        if f(a) * f(m) <= 0:
            b = m
        else:
            a = m
    return m, evals


def recursive_run(x):
    count = 0

    def search(lo, hi, v):
        nonlocal count
        count += 1
        if hi - lo <= 1:
            return lo
        m = (lo + hi) // 2
        if x[m] > v:
            return search(lo, m, v)
        return search(m, hi, v)

    p = search(0, len(x), 0.5)
    return p, count


def adaptive(x):
    evals = 0

    def f(t):
        nonlocal evals
        evals += 1
        return np.exp(-t * t) * x[0]

    def simpson(a, b, fa, fm, fb, eps):
        m = (a + b) / 2
        lm, rm = (a + m) / 2, (m + b) / 2
        flm, frm = f(lm), f(rm)
        whole = (b - a) / 6 * (fa + 4 * fm + fb)
        left = (m - a) / 6 * (fa + 4 * flm + fm)
        right = (b - m) / 6 * (fm + 4 * frm + fb)
        if abs(left + right - whole) < 15 * eps:
            return left + right
        return simpson(a, m, fa, flm, fm, eps / 2) + simpson(m, b, fm, frm, fb, eps / 2)

    r = simpson(0.0, 2.0, f(0.0), f(1.0), f(2.0), 1e-4)
    return r, evals


def best(x):
    best = None

    def visit(v):
        nonlocal best
        if best is None or v > best:
            best = v

    for v in x:
        visit(v)
    return best


def in_a_branch(x):
    count = 0

    def add():
        nonlocal count
        count += 1

    if x[0] > 0.5:
        add()
    for v in x:
        if v > 1:
            add()
    return count


def array(x):
    total = np.zeros(2)

    def add(v):
        nonlocal total
        total = total + v

    for v in x:
        add(v)
    return total


def state(x):
    t, y = 0.0, x.copy()

    def step(h):
        nonlocal t, y
        y = y + h * (-y)
        t += h

    while t < 0.95:
        step(0.1)
    return t, y


def newton(x):
    n_eval = 0

    def f(v):
        nonlocal n_eval
        n_eval += 1
        return v**3 - x[0]

    def fp(v):
        return 3 * v**2

    v = 1.0
    for it in range(50):
        d = f(v) / fp(v)
        v -= d
        if abs(d) < 1e-10:
            break
    return v, n_eval, it


def minimum(x):
    best, arg = np.inf, None

    def visit(i, v):
        nonlocal best, arg
        if v < best:
            best, arg = v, i

    for i in range(4):
        visit(i, abs(x[i] - 0.6))
    return best, arg


def permute(x):
    n = 0

    def perm(k, used):
        nonlocal n
        if k == 3:
            n += 1
            return
        for i in range(3):
            if not used[i]:
                perm(k + 1, used[:i] + [True] + used[i + 1 :])

    perm(0, [False] * 3)
    return n + x


def param(x):
    def outer(n):
        def inc(k):
            nonlocal n
            n += k

        for v in x:
            if v > 0.25:
                inc(2)
        return n

    return outer(5)


def list_comp(x):
    n = 0

    def f(v):
        nonlocal n
        n += 1
        return v * n

    y = [f(v) for v in x]
    return np.array(y), n


def comp_if(x):
    n = 0

    def f(v):
        nonlocal n
        n += 1
        return v * n

    y = [f(v) for v in x if v > 0.5]
    return sum(y) * 1.0, n


def object_recursive(x):
    class C:
        def __init__(self):
            self.n = 0

        def search(self, lo, hi, v):
            self.n += 1
            if hi - lo <= 1:
                return lo
            m = (lo + hi) // 2
            if x[m] > v:
                return self.search(lo, m, v)
            return self.search(m, hi, v)

    c = C()
    return c.search(0, len(x), 0.5), c.n


def object_adaptive(x):
    class C:
        def __init__(self):
            self.n = 0

        def f(self, t):
            self.n += 1
            return np.exp(-t * t) * x[0]

        def go(self, a, b, eps):
            m = (a + b) / 2
            one = (b - a) * self.f(m)
            two = (b - a) / 2 * (self.f((a + m) / 2) + self.f((m + b) / 2))
            if abs(one - two) < eps:
                return two
            return self.go(a, m, eps / 2) + self.go(m, b, eps / 2)

    c = C()
    return c.go(0.0, 2.0, 1e-2), c.n


def deep_by_the_run(x):
    calls = 0

    def down(v):
        nonlocal calls
        calls += 1
        return v if v < 0.2 else down(v / 2) + 1

    return down(x[2]), calls


def branching_by_the_run(x):
    calls = 0

    def fibonacci(k):
        nonlocal calls
        calls += 1
        return k if k < 2 else fibonacci(k - 1) + fibonacci(k - 2)

    return fibonacci(int(3 * x[2]) + 2), calls


PROGRAMS = [
    deep_by_the_run,
    branching_by_the_run,
    loop_run,
    recursive_run,
    pytest.param(adaptive, marks=pytest.mark.slow),
    best,
    in_a_branch,
    array,
    state,
    newton,
    minimum,
    permute,
    param,
    list_comp,
    comp_if,
    object_recursive,
    pytest.param(object_adaptive, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_loops_and_branches_know_of_the_change(program: Any) -> None:
    assert different_endings(program, (*INPUTS, np.array([0.3, 0.7, 1.2, 2.5, 0.1]))) == []
