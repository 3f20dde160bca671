"""Programs with generators, iterators, and classes that have special methods."""

from __future__ import annotations

import copy
import itertools
import operator
from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def in_place(x: Any) -> Any:
    def steps(y: Any) -> Any:
        for i in range(4):
            y[i % 3] += i
            yield y

    s = 0.0
    for v in steps(x):
        s += v.sum()
        v *= 1.5
    return s, x


def blocks(x: Any) -> Any:
    def chunks(n: Any, size: Any) -> Any:
        for i in range(0, n, size):
            yield i, min(i + size, n)

    y = np.zeros_like(x)
    for a, b in chunks(len(x), 2):
        y[a:b] = x[a:b] * (b - a)
    return y


def consumer_changes(x: Any) -> Any:
    g = (x[i] * 2 for i in range(3))
    x[2] = 7.0
    s = 0.0
    for v in g:
        s += v
        x += 1
    return s, x


def breaks(x: Any) -> Any:
    def fib() -> Any:
        a, b = 0, 1
        while True:
            yield a
            a, b = b, a + b

    s = 0
    for f in fib():
        if f > 50:
            break
        if f % 2:
            continue
        s += f
    return s + x


def returns(x: Any) -> Any:
    def walk(y: Any, limit: Any) -> Any:
        for v in y:
            if v > limit:
                return
            yield v
        yield -1.0

    for v in walk(x, 0.5):
        if v < 0.25:
            return v * 10
    return x.sum()


def enum(x: Any) -> Any:
    def rows(y: Any) -> Any:
        for i in range(len(y)):
            yield y[i] * 2

    out = np.zeros_like(x)
    for k, v in enumerate(rows(x)):
        out[k] = v + k
    return out


def froms(x: Any) -> Any:
    def squares(n: Any) -> Any:
        for i in range(n):
            yield x[i % 3] * i

    def nested(n: Any) -> Any:
        yield from squares(n)
        yield -1.0

    s = 0.0
    for v in nested(4):
        s += v
    return s, np.array(list(squares(3))), sum(squares(5))


def until(x: Any) -> Any:
    def newton(a: Any) -> Any:
        y = a
        while True:
            y = 0.5 * (y + a / y)
            yield y

    for n, y in enumerate(newton(x[1] + 1)):
        if n > 50 or abs(y * y - x[1] - 1) < 1e-9:
            break
    return y, n


def nothing(x: Any) -> Any:
    def none() -> Any:
        return
        yield 1

    for v in none():
        x = x + v
    return x


def nexts(x: Any) -> Any:
    it = iter([1, 2, 3])
    a = next(it)
    b = next((i for i in range(5) if i > 2), None)
    s = 0
    for _ in range(2):
        s += next(it)
    return x * a + b + s


def zips(x: Any) -> Any:
    g = (i * i for i in range(3))
    s = 0.0
    for a, b in zip(g, x, strict=True):
        s += a * b
    return s


class Tree:
    def __init__(self, v: Any, kids: Any) -> Any:
        self.v, self.kids = v, kids

    def walk(self) -> Any:
        yield self.v
        for k in self.kids:
            yield from k.walk()


def tree(x: Any) -> Any:
    t = Tree(x[0], [Tree(x[1], []), Tree(x[2], [Tree(x[0] * x[1], [])])])
    s = 0.0
    k = 1
    for v in t.walk():
        s += v * k
        k += 1
    return s


def rebinding(x: Any) -> Any:
    u = x * 1.0

    def sweep() -> Any:
        for i in range(3):
            yield u[i]

    s = 0.0
    for v in sweep():
        s += v
        u = u * 2
    return s


def swap(x: Any) -> Any:
    def red_black(n: Any) -> Any:
        for color in (0, 1):
            for i in range(n):
                if i % 2 == color:
                    yield i

    y = x.copy()
    for i in red_black(len(x)):
        y[i] = y[i] + y[(i + 1) % 3]
    return y


def outer_break(x: Any) -> Any:
    def pairs(n: Any) -> Any:
        for i in range(n):
            for j in range(i):
                yield i, j
            if i == 2:
                yield -1, -1

    best = 0.0
    for i, j in pairs(3):
        if i < 0:
            break
        d = abs(x[i] - x[j])
        if d > best:
            best = d
    else:
        best = -1.0
    return best


def counted(x: Any) -> Any:
    s = 0.0
    for i in itertools.count(2):
        if i > 6:
            break
        s += i
    return s * x


def genarg(x: Any) -> Any:
    def total(values: Any) -> Any:
        s = 0.0
        for v in values:
            s += v
        return s

    return total(v * 2 for v in x), max(v for v in x), any(v > 3 for v in x)


def modglobal(x: Any) -> Any:
    s = 0.0
    for v in helper(x):
        s += v
    return s


SCALE = 3.0


def helper(y: Any) -> Any:
    scale = SCALE
    for v in y:
        yield v * scale


class Rows:
    def __init__(self, x: Any) -> Any:
        self.x = x

    def __iter__(self) -> Any:
        for i in range(3):
            yield self.x[i]


def iters(x: Any) -> Any:
    s = 0.0
    for v in Rows(x):
        s += v
    return s


class Number:
    def __init__(self, v: Any) -> Any:
        self.v = v

    def __bool__(self) -> Any:
        return bool(self.v > 0)

    def __contains__(self, k: Any) -> Any:
        return k == self.v

    def __abs__(self) -> Any:
        return -self.v

    def __setitem__(self, k: Any, w: Any) -> Any:
        self.v = w

    def __float__(self) -> Any:
        return float(self.v)

    def __iadd__(self, w: Any) -> Any:
        self.v = self.v + w
        return self

    def __neg__(self) -> Any:
        return Number(-self.v)

    def __len__(self) -> Any:
        return 3


def copied_lists(x: Any) -> Any:
    chosen = []
    for v in x:
        if v > 0.25:
            chosen.append(v)  # noqa: PERF401
    shallow, deep = copy.copy(chosen), copy.deepcopy(chosen)
    shallow.append(7.0)
    deep.append(8.0)
    deep.append(9.0)
    both = operator.add(chosen, [5.0])
    twice = copy.deepcopy([x, x])
    twice[0][0] = -1.0
    return len(chosen), len(shallow), len(deep), np.array(both), twice[1][0]


def unpacks(x: Any) -> Any:
    a, b, c = (np.zeros(3) + i for i in range(3))
    a[0] = x[0]
    first, *others = (v * 2 for v in x)
    return a, b + c, first + max(*(v for v in x)), others[1]


def truth(x: Any) -> Any:
    return 1 if Number(x[0] - 5) else 2


def members(x: Any) -> Any:
    return x[0] in Number(x[0]), x[1] not in Number(x[0])


def converted(x: Any) -> Any:
    return abs(Number(x[0])), float(Number(x[1])), (-Number(x[2])).v, len(Number(1))


def changed(x: Any) -> Any:
    q = Number(x[0])
    q[0] = x[1]
    r = q
    q += x[2]
    return q.v, r.v


def of_generators(x: Any) -> Any:
    return (
        in_place(x.copy()),
        blocks(x.copy()),
        consumer_changes(x.copy()),
        breaks(x.copy()),
        returns(x.copy()),
        enum(x.copy()),
        froms(x.copy()),
        until(x.copy()),
        nothing(x.copy()),
        nexts(x.copy()),
        zips(x.copy()),
    )


def enumerated_rest(x: Any) -> Any:
    rest = iter(x)
    first, place = next(rest), None
    found = np.zeros(2)
    for place, value in enumerate(rest, start=1):
        found[place - 1] = value - first
    return found, place


def of_iterators(x: Any) -> Any:
    return (
        enumerated_rest(x.copy()),
        tree(x.copy()),
        rebinding(x.copy()),
        swap(x.copy()),
        outer_break(x.copy()),
        counted(x.copy()),
        genarg(x.copy()),
        modglobal(x.copy()),
        iters(x.copy()),
        unpacks(x.copy()),
        copied_lists(x.copy()),
        truth(x.copy()),
        members(x.copy()),
        converted(x.copy()),
        changed(x.copy()),
    )


CASES = [
    Case(f.__name__, f, "", "", lambda _: (np.array([0.3, 0.7, 0.2]),), ())
    for f in (of_generators, of_iterators)
]
