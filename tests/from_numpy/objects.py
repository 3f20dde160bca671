"""Programs with what else Python has: classes, ``match``, ``nonlocal``, tools."""

from __future__ import annotations

import copy
import functools
import math
import operator
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from from_numpy.corpus.registry import Case


class Slots:
    __slots__ = ("least", "n")

    def __init__(self) -> Any:
        self.n, self.least = 0, 1e9

    def push(self, v: Any) -> Any:
        self.n += 1
        if v < self.least:
            self.least = v


class Sum:
    scale = 2.0

    def __init__(self, n: Any, start: Any = 0.0) -> Any:
        self.total = np.zeros(n) + start
        self.count = 0
        self.history = []

    def add(self, v: Any) -> Any:
        self.total += v * self.scale
        self.count += 1
        return self

    @property
    def mean(self) -> Any:
        return self.total / max(self.count, 1)

    def __call__(self, x: Any) -> Any:
        return x * self.count

    def __getitem__(self, i: Any) -> Any:
        return self.total[i]

    def __len__(self) -> Any:
        return len(self.total)

    def __neg__(self) -> Any:
        return -self.total

    def __mul__(self, o: Any) -> Any:
        return self.total * o

    __rmul__ = __mul__

    def __eq__(self, o: Any) -> Any:
        return self.count == o.count


class Shifted(Sum):
    def __init__(self, n: Any) -> Any:
        super().__init__(n, start=1.0)
        self.extra = n

    def add(self, v: Any) -> Any:
        super().add(v + 1)
        return self


@dataclass
class Particle:
    x: np.ndarray
    w: float = 0.5
    log: list = field(default_factory=list)

    def __post_init__(self) -> Any:
        self.y = self.x * self.w

    def step(self, dt: Any = 0.1) -> Any:
        return Particle(self.x + dt * self.y, self.w)


def in_a_branch(x: Any) -> Any:
    a = Sum(len(x))
    if x[0] > 0.5:
        a.total = a.total + x
        a.count = 5
    else:
        a.add(x)
    return a.total, a.count, a.mean


def in_a_loop(x: Any) -> Any:
    a = Sum(len(x))
    for i in range(200):
        a.add(x + i)
    return a.total, a.count


def set_in_a_loop(x: Any) -> Any:
    a = Sum(3)
    a.total = x
    for _ in range(100):
        a.total = a.total * 0.9 + 1
    return a.total


def specials(x: Any) -> Any:
    a = Sum(3).add(x).add(2 * x)
    return a(x), a[1], len(a), -a, a * 2, 2 * a, a == Sum(3), a.mean


def inherit(x: Any) -> Any:
    s = Shifted(3).add(x)
    return s.total, s.extra, isinstance(s, Sum)


def of_fields(x: Any) -> Any:
    p = Particle(x)
    for _ in range(3):
        p = p.step()
    return p.x, p.y, p.w


def while_obj(x: Any) -> Any:
    a = Sum(3)
    while a.total[0] < 5:
        a.add(x)
    return a.total, a.count


def of_the_outer(x: Any) -> Any:
    calls = 0

    def f(v: Any) -> Any:
        nonlocal calls
        calls += 1
        return v + calls

    y = f(x)
    for _ in range(3):
        y = f(y)
    return y, calls


def matches(x: Any, kind: Any = "b", n: Any = 3) -> Any:
    match kind:
        case "a":
            y = x
        case "b" | "c" if n > 2:
            y = -x
        case _:
            y = x * 0
    match n:
        case 1:
            return y
        case 3:
            for i in range(5):
                match i:
                    case 2:
                        break
                    case _:
                        y = y + i
            return y


def matches_of_the_run(x: Any) -> Any:
    k = int(x[0] * 10)
    match k:
        case 3:
            y = x + 1
        case 7:
            y = x - 1
        case _:
            y = x * 0
    return y


def tools(x: Any) -> Any:
    Pt = namedtuple("Pt", "a b")
    p = Pt(x, 2.0)._replace(b=x + 1)
    d = dict(zip("abc", x, strict=True))
    e = dict([("k", x)], z=1)
    c = copy.deepcopy({"q": [x, {"r": x}]})
    c["q"][0][0] = 9
    return (
        functools.reduce(operator.mul, [x, x, 2]),
        p.b,
        d["b"],
        e["k"],
        x,
        c["q"][0],
        math.erf(x[1]),
        np.poly1d([1, 2, 3])(x),
        "a" in d,
        operator.matmul(x, x),
        sorted([3, 1, 2], key=lambda v: -v)[0],
        max([1, -5], key=abs),
    )


def shaped(x: Any) -> Any:
    a = np.outer(x, x[:2])
    a.shape = (2, -1)
    a[0] = 7
    b = np.arange(6)
    b.shape = 3, 2
    return a, b + 1


def slots_and_unzipped(x: Any) -> Any:
    one, path = Slots(), [(0, 1.0)]
    for v in x:
        one.push(v)
        path.append((path[-1][0] + 1, path[-1][1] * v))
    places, values = zip(*path, strict=False)
    (n, first), (m, second) = enumerate(x[:2])
    return one.n, one.least, np.array(places), np.array(values), first + second, n + m


def of_objects(x: Any) -> Any:
    found = in_a_branch(x), in_a_loop(x), set_in_a_loop(x), specials(x), inherit(x)
    return *found, of_fields(x), while_obj(x), slots_and_unzipped(x)


class Root(NamedTuple):
    """What a search finds."""

    x: Any
    iterations: Any
    converged: Any


def a_named_tuple(x: Any) -> Root:
    at, n = x[0], 0
    for n in range(9):
        step = (at * at - 2) / (2 * at)
        at = at - step
        if abs(step) < 1e-9:
            return Root(at, n, True)
    return Root(at, n, False)


def of_python(x: Any) -> Any:
    more = matches(x), matches(x, "d"), matches_of_the_run(x), matches_of_the_run(x + 0.4)
    gammas = math.gamma(x[0]), math.lgamma(x[1]), math.erfc(x[2])
    return of_the_outer(x), *more, tools(x), shaped(x), a_named_tuple(x), gammas


CASES = [
    Case(f.__name__, f, "", "", lambda _: (np.array([0.3, 0.7, 0.2]),), ())
    for f in (of_objects, of_python)
]
