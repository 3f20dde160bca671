"""What NumPy refuses of types and ranges is refused when the program is read, not wrapped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import run_here
from from_numpy.outcomes import RIGHT


def assigned_too_large(u8):
    u8[0] = 300


def assigned_below(u8):
    u8[:] = -1


def assigned_in_a_map(u8):
    for i in distspmd.map[0:4]:
        u8[i] = 256


def negative_power(i32):
    return i32**-1


def safe_cast(f8):
    return f8.astype(np.int32, casting="safe")


def copied_to_integers(f8, i32):
    np.copyto(i32, f8)


def float_added_to_integers(i32):
    i32 += 0.5


def result_into_integers(f8, i32):
    np.add(f8, 1, out=i32)


ARRAYS = {
    "u8": np.array([0, 1, 128, 255], np.uint8),
    "i32": np.array([7, -7, 1, 2], np.int32),
    "f8": np.array([1.5, -2.0, 0.0, 3.0]),
    "i64": np.array([-1, 2**62, -(2**63), 5]),
    "u64": np.array([2**64 - 1, 2**62, 2**63, 5], np.uint64),
}


def arrays_for(function: Callable[..., Any]) -> dict[str, Any]:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return {name: ARRAYS[name].copy() for name in names}


@pytest.mark.parametrize(
    "function",
    [
        *(assigned_too_large, assigned_below, assigned_in_a_map, negative_power, safe_cast),
        *(copied_to_integers, float_added_to_integers, result_into_integers),
    ],
    ids=lambda f: f.__name__,
)
def test_what_numpy_refuses_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)) as wanted:
        function(**arrays_for(function))
    words = r"[Cc]ast |out of bounds|negative integer powers"
    assert re.search(words, str(wanted.value))
    with pytest.raises(UnsupportedProgram, match=words):
        numpy_program(function, **arrays_for(function))


def compared(i64, u64, u8, i32):
    mixed = i64 < u64, i64 <= u64, i64 > u64, u64 >= i64, i64 == u64, u64 != i64, i32 < u64
    beyond = u64 > -1, u64 == -1, u8 >= -1, u8 != 300, u8 < 300, u8[i32 < 300].sum()
    fits = u8.copy()
    fits[0] = 255
    fits[1:3] = u8[2:4] + 1
    return *mixed, *beyond, fits


@pytest.mark.usefixtures("unoptimised")
def test_integers_of_all_kinds_are_compared_exactly() -> None:
    made = arrays_for(compared)
    case = Case("compared", compared, "", "", lambda _: {k: v.copy() for k, v in made.items()}, ())
    found = run_here(case)
    assert found.kind == RIGHT, found
