"""Numbers of Python beside typed ones: what ``and`` and loops give; quotients, complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

ARRAYS = {
    "f8": np.array([1.25, -2.0, 0.5, 33.3, -7.7, 4.0]),
    "g8": np.array([2.0, 0.3, -1.5, 7.0, 3.0, -4.0]),
    "z8": np.array([0.0, -0.0, 1.0, 0.0, 2.0, -0.0]),
    "f4": np.array([0.1, -2.5, 3e10, 1e-10, 7, 1], np.float32),
    "i32": np.array([7, -7, -1, 2, 123456789, -2147483648], np.int32),
    "i8": np.array([-128, -7, 0, 5, 127, 100], np.int8),
    "b": np.array([True, False, True, True, False, False]),
    "c16": np.array([1 + 2j, -1.5j, 2.25, 0, 1e3j, -2 - 1e-3j]),
}


def quotients(f8, g8, z8, f4):
    whole = f8 // 0.7
    f8 //= 0.7
    ends = np.array([np.inf, 1.0, -np.inf, np.nan, 6.0, -3.0]) * (g8 * 0 + 1)
    return whole, f8, g8 // 0.1, f4 // np.float32(0.1), g8 // z8, ends // 0.1, g8 // np.inf


def as_arrays_of_no_dimensions(f4, f8):
    number = float(f8[2])
    made = np.asarray(number), np.asanyarray(number), np.squeeze(number), np.transpose(number)
    one, other, third, fourth = map(np.asarray, [number, 2, number, 1.5])
    return *(m * f4 for m in made), one * f4, other * f4, third + 1, made[0] + 1, fourth * f4


def told_from_numbers(f8):
    known, found, given = np.array(3.1), np.asarray(f8[0]), np.array(float(f8[1]))
    again = found
    kinds = isinstance(found, np.ndarray), isinstance(given, Iterable), type(again) is np.ndarray
    numbers = isinstance(f8[0], np.ndarray), isinstance(again, float), hasattr(f8[0], "__len__")
    scalars = [np.isscalar(v) for v in (known, found, f8[0], found + 1, float(f8[0]), f8.sum())]
    return kinds, numbers, hasattr(found, "__len__"), scalars, known * f8, found


def extremes_of_many(f8):
    values = [f8[i % 6] * (i - 14) for i in range(32)]
    return max(values), min(values), max(f8[0], f8[1]), min(v for v in values if v is not None)


def carried_by_loops(f4, i32, i8, b):
    total, count, product, least, few = 0.0, 0, 1, 1e30, 0
    for v in f4:
        total += v
    for v in f4:
        count += v
    for v in i32:
        product = product * v
    for v in i8:
        few += v
    for v in f4:
        least = min(least, v)
    chosen = 0.5
    if b[0]:
        chosen = f4[1]
    last = 0.5
    for k in range(3):
        if f4[k] > 100:
            last = f4[k]
    return total, count, product, few, least * f4, chosen * f4, last * f4


def decided(f8, b, i32, f4):
    zero = f8[0] - 1.25
    both = f8[1] and f8[2], f8[1] and 5.0, zero and f8[1], b[0] and f8[3], i32[0] and f8[0]
    one = f8[1] or 5.0, zero or f8[1], zero or 5.0, b[1] or f8[2] > 0, f4[5] or f4[1]
    return *map(np.float64, both), *map(np.float64, one), 1 if f8[0] and f8[1] > 0 else 2


def real_parts(c16, f8, b):
    f8[0] = c16[0]
    f8[1:3] = c16[2:4]
    b[:] = c16
    return f8, b, c16.astype(np.float32), c16.astype(bool)


def case_of(function: Callable[..., Any]) -> Case:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]

    def make(_: Any) -> dict[str, Any]:
        return {name: ARRAYS[name].copy() for name in names}

    return Case(function.__name__, function, "", "", make, (), warns=True)


def rounded_parts(c16: Any) -> Any:
    return np.round(c16, 1), np.around(c16 * 100, -1), c16.round()


EVERY = [
    rounded_parts,
    quotients,
    as_arrays_of_no_dimensions,
    extremes_of_many,
    carried_by_loops,
    told_from_numbers,
    decided,
    real_parts,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.__name__)
def test_types_and_shapes_are_those_of_numpy(function: Callable[..., Any]) -> None:
    found = on_paper(case_of(function))
    assert found.kind == RIGHT, found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.__name__)
def test_values_are_those_of_numpy(function: Callable[..., Any]) -> None:
    found = run_here(case_of(function))
    assert found.kind == RIGHT, found
