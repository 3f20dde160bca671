"""What Python refuses to do is refused where a program is read, with Python's error."""

# ruff: noqa: B007, B016, B018, C901, E741, F841, RET504, RUF007, RUF059

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
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


def number_get(x):
    n = 3
    return x + n[0]


def none_attr(x):
    n = None
    n.a = 1
    return x


def none_plus(x):
    n = None
    return x + (n + 1)


def none_iter(x):
    for v in None:
        x = x + v
    return x


def number_iter(x):
    for v in 3:
        x = x + v
    return x


def list_attr(x):
    l = [1]
    l.a = 3
    return x


def list_index(x):
    l = [1, 2]
    return x + l[5]


def list_set(x):
    l = [1, 2]
    l[5] = 3
    return x


def list_float(x):
    l = [1, 2]
    return x + l[1.0]


def list_pop(x):
    l = []
    l.pop()
    return x


def list_remove(x):
    l = [1]
    l.remove(3)
    return x


def text_less(x):
    return x if "a" < 1 else -x


def dict_key(x):
    d = {"a": 1}
    return x + d["b"]


def dict_del(x):
    d = {"a": 1}
    del d["b"]
    return x


def dict_unhashable_set(x):
    d = {}
    d[[1]] = 2
    return x


def set_remove(x):
    s = {1, 2}
    s.remove(3)
    return x


def attr_missing(x):
    o = A(x)
    return o.m


def attr_del(x):
    o = A(x)
    del o.m
    return x


def method_missing(x):
    o = A(x)
    o.go()
    return x


def few_args(x):
    o = A()
    return x


def many_args(x):
    o = A(1, 2)
    return x


def kw_args(x):
    o = A(m=2)
    return x


def dc_order(x):
    return x if Plain(1.0) < Plain(2.0) else -x


def dc_hash(x):
    d = {Plain(1.0): 2}
    return x


def division(x):
    n = 0
    return x + 1 // n


def next_end(x):
    it = iter([1])
    next(it)
    next(it)
    return x


def next_list(x):
    next([1, 2])
    return x


def zip_strict(x):
    for a, b in zip([1, 2], [1, 2, 3], strict=True):
        x = x + a
    return x


def zip_strict_arr(x):
    y = 0.0
    for a, b in zip(x, x[1:], strict=True):
        y = y + a
    return y


def unbound(x):
    if len(x) > 100:
        y = 1
    return x + y


def arr_attr(x):
    y = x * 2
    y.name = "a"
    return y


def arr_len0(x):
    return x + len(x[0])


def arr_set0(x):
    y = x[0]
    y[0] = 1
    return x


def arr_del(x):
    del x[0]
    return x


def dup_kw(x):
    def f(a, b=1):
        return a

    return f(x, a=2)


def raise_it(x):
    raise 3


def len_bad(x):
    class E:
        def __len__(self):
            return -1

    return x + len(E())


def init_returns(x):
    class E:
        def __init__(self):
            return 3

    E()
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


OWN = [
    f
    for f in [*globals().values()]
    if inspect.isfunction(f)
    and f.__module__ == __name__
    and [*inspect.signature(f).parameters] == ["x"]
]
PROGRAMS = [f for f in OWN if f is not handlers]


def _error(program: Callable[..., Any]) -> str:
    try:
        program(np.array([0.3, 0.7, 1.2, 2.5, 0.1]))
    except Exception as problem:
        return type(problem).__name__
    raise AssertionError("Python does it")


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_error_of_python_is_one_of_the_reading(program: Any) -> None:
    error = _error(program)
    with pytest.raises(UnsupportedProgram, match=f": .*{error}"):
        numpy_program(program, np.array([0.3, 0.7, 1.2, 2.5, 0.1]))


def test_handlers_take_errors_of_python() -> None:
    case = Case("handlers", handlers, "", "", lambda rng: (rng.random(4),), ())
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome.reason
