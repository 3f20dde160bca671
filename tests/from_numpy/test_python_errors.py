"""What Python refuses to do with objects is refused where a program is read, with its error."""

# ruff: noqa: B007, B018, C901, F841, RET504, RUF059

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

from from_numpy.corpus.registry import Case
from from_numpy.errors_of_python import check_refused_alike, programs_of
from from_numpy.harness import on_paper


class A:
    def __init__(self, n):
        self.n = n


class NoCall(A):
    pass


@dataclass(frozen=True)
class Frozen:
    a: float
    b: float = 2.0


@dataclass
class Plain:
    a: float


P = namedtuple("P", "x y")


class S:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


class Prop:
    def __init__(self, a):
        self._a = a

    @property
    def a(self):
        return self._a


def set_item(x):
    o = A(x)
    o[0] = 1.0
    return x


def del_item(x):
    o = A(x)
    del o[0]
    return x


def get_item(x):
    o = A(x)
    return o[0]


def get_item_unused(x):
    o = A(x)
    o[0]
    return x


def contains(x):
    o = A(x)
    return x if 1 in o else -x


def length(x):
    o = A(x)
    n = len(o)
    return x


def call_it(x):
    o = A(x)
    o(3)
    return x


def aug_item(x):
    o = A(x)
    o[0] += 1
    return x


class OnlyGet:
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        return self.n[i]


def aug_item_without_set(x):
    o = OnlyGet(x)
    o[0] += 1
    return x


def set_item_without_set(x):
    o = OnlyGet(x)
    o[0] = 1
    return x


def plus(x):
    o = A(x)
    o + 1
    return x


def rplus(x):
    o = A(x)
    1 + o
    return x


def neg(x):
    o = A(x)
    -o
    return x


def inv(x):
    o = A(x)
    y = ~o
    return x


def absolute(x):
    o = A(x)
    y = abs(o)
    return x


def toint(x):
    o = A(x)
    y = int(o)
    return x


def tofloat(x):
    o = A(x)
    y = float(o)
    return x


def tocomplex(x):
    o = A(x)
    y = complex(o)
    return x


def rounded(x):
    o = A(x)
    y = round(o)
    return x


def with_it(x):
    o = A(x)
    with o:
        x = x + 1
    return x


def with_as(x):
    with A(x) as o:
        x = x + 1
    return x


def iterate(x):
    o = A(x)
    for v in o:
        x = x + 1
    return x


def unpack(x):
    a, b = A(x)
    return x


def unpack_many(x):
    a, b = (1, 2, 3)
    return x * a


def unpack_star(x):
    a, b, *c = (1,)
    return x * a


def unpack_array(x):
    a, b = x
    return a + b


def unpack_for(x):
    s = 0.0
    for a, b in [(1, 2, 3)]:
        s += a
    return x + s


def unpack_number(x):
    a, b = 3
    return x


def unpack_dict(x):
    a, b = {"p": 1, "q": 2, "r": 3}
    return x


def frozen(x):
    o = Frozen(x[0])
    o.a = 3.0
    return x


def frozen_del(x):
    o = Frozen(x[0])
    del o.a
    return x


def frozen_aug(x):
    o = Frozen(x[0])
    o.a += 3.0
    return x


def tuple_attr(x):
    p = P(x[0], x[1])
    p.x = 3
    return x


def tuple_item(x):
    t = (x[0], x[1])
    t[0] = 3.0
    return x


def ntuple_item(x):
    t = P(x[0], x[1])
    t[0] = 3.0
    return x


def tuple_item_aug(x):
    t = (1, 2)
    t[0] += 3
    return x


def tuple_del(x):
    t = (1, 2)
    del t[0]
    return x


def slots(x):
    s = S(x[0])
    s.b = 2
    return x


def slots_read(x):
    s = S(x[0])
    return x + s.b


def prop(x):
    s = Prop(x[0])
    s.a = 2
    return x


def prop_del(x):
    s = Prop(x[0])
    del s.a
    return x


def handlers(x):
    found = []
    try:
        A(x)[0] = 1
    except TypeError:
        found.append(1)
    try:
        len(A(x))
    except TypeError:
        found.append(2)
    try:
        a, b = 1, 2, 3
    except ValueError:
        found.append(3)
    try:
        Frozen(x).a = 1
    except AttributeError:
        found.append(4)
    try:
        A(x) + 1
    except TypeError:
        found.append(5)
    try:
        for v in A(x):
            x = x + v
    except TypeError:
        found.append(6)
    try:
        A(1, 2)
    except TypeError:
        found.append(7)
    try:
        zzz
    except NameError:
        found.append(8)
    try:
        (1, 2)[0] = 3
    except TypeError:
        found.append(9)
    return x * sum(found), len(found)


@pytest.mark.parametrize("program", [f for f in programs_of(globals()) if f is not handlers])
def test_an_error_of_python_is_one_of_the_reading(program: Any) -> None:
    check_refused_alike(program)


def test_handlers_take_errors_of_python() -> None:
    case = Case("handlers", handlers, "", "", lambda rng: (rng.random(4),), ())
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome.reason
