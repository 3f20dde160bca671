"""What Python refuses to do with numbers, lists and calls is refused where a program is read."""

# ruff: noqa: B007, B016, E741, F841, RUF007

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from from_numpy.errors_of_python import check_refused_alike, programs_of


class A:
    def __init__(self, n):
        self.n = n


@dataclass
class Plain:
    a: float


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


@pytest.mark.parametrize("program", programs_of(globals()))
def test_an_error_of_python_is_one_of_the_reading(program: Any) -> None:
    check_refused_alike(program)
