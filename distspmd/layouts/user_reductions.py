"""Conflict resolutions of users: functions of two operands, such as ``lambda a, b: a + b - a * b``.

The text of such a function is its name, so the name suffices to evaluate it. Its properties are
found by trying values in Python, because no other analysis covers every function.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from distspmd.layouts.function_text import PREFIX as PREFIX
from distspmd.layouts.function_text import Function, function
from distspmd.layouts.function_text import canonical as canonical


def is_function(text: str) -> bool:
    """Whether a text is a lambda of two operands that can be evaluated."""
    try:
        function(text)
    except ValueError:
        return False
    return True


@cache
def has_integer_division(name: str) -> bool:
    """Whether C++ divides where Python does it otherwise: integers, and signs of remainders."""
    tree = ast.parse(canonical(name))
    divisions = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
    return any(isinstance(node, divisions) for node in ast.walk(tree))


def samples(name: str, kind: str) -> list[Any]:
    """Values of a kind of dtype (``biufc``) to try a function on.

    Also values around the numbers in it, where it may turn: ``min(a + b, 10000)``.
    """
    values = dict.fromkeys(_usual(kind))
    for node in ast.walk(ast.parse(canonical(name))) if kind != "b" else ():
        turn = node.value if isinstance(node, ast.Constant) else None
        if isinstance(turn, int | float) and math.isfinite(turn):
            near = (turn, -turn, turn / 2, turn - 1, 2 * turn)
            values |= dict.fromkeys(near if kind in "fc" else map(int, near))
    return [value for value in values if kind != "u" or value >= 0][:_MOST]


_MOST = 24


def _usual(kind: str) -> Sequence[Any]:
    if kind == "b":
        return False, True
    if kind == "u":
        return 0, 1, 2, 3, 5, 8, 12, 100, 129
    if kind == "i":
        return -100, -7, -3, -2, -1, 0, 1, 2, 3, 5, 8, 100
    real = (-900.0, -3.5, -2.0, -1.0, -0.75, 0.0, 0.5, 1.0, 1.25, 2.0, 3.0, 7.125, 600.0)
    if kind == "c":
        return *real[2:-2], 1j, -2j, 1 + 1j, 0.5 - 2j
    return real


def extends(name: str, kind: str, combined: Function, neutral: Any) -> bool:
    """Whether ``f(a, b)`` is ``a`` combined with ``f(neutral, b)``, and neutral changes nothing.

    Then ranks may begin with the neutral element, and combine what they end with.
    """
    apply, values = _checked(name, kind), samples(name, kind)
    return _hold((lambda a: combined(a, neutral), lambda a: a), [(a,) for a in values]) and _hold(
        (apply, lambda a, b: combined(a, apply(neutral, b))), [*itertools.product(values, repeat=2)]
    )


def combines(name: str, kind: str) -> bool:
    """Whether a function is associative and commutative."""
    f, values = _checked(name, kind), samples(name, kind)
    return _hold((f, lambda a, b: f(b, a)), [*itertools.combinations(values, 2)]) and _hold(
        (lambda a, b, c: f(f(a, b), c), lambda a, b, c: f(a, f(b, c))),
        [*itertools.product(values, repeat=3)],
    )


class _Truncated(Exception):
    """A function of integers has a value that is none: C++ would cut it off."""


def _checked(name: str, kind: str) -> Function:
    apply = function(name)
    if kind not in "biu":
        return apply

    def whole(a: Any, b: Any) -> Any:
        value = apply(a, b)
        if value != int(value):
            raise _Truncated
        return value

    return whole


def _hold(sides: tuple[Callable[..., Any], Callable[..., Any]], points: Sequence[Any]) -> bool:
    """Whether both sides are equal wherever they are defined, which is at half of the points."""
    answers = [_equal(sides, point) for point in points]
    return False not in answers and 2 * answers.count(True) >= len(points)


def _equal(
    sides: tuple[Callable[..., Any], Callable[..., Any]], point: tuple[Any, ...]
) -> bool | None:
    """Whether both sides are equal; None where one is not defined."""
    try:
        return _close(sides[0](*point), sides[1](*point))
    except (ArithmeticError, ValueError):  # 1 / 0, or the logarithm of 0
        return None
    except (AttributeError, NameError, TypeError, _Truncated):
        return False


@cache
def neutral(name: str, kind: str) -> Any:
    """An element that changes no other, or None."""
    candidates: Iterable[Any] = (False, True) if kind == "b" else (0, 1, -1)
    if kind == "f":
        candidates = (0.0, 1.0, -1.0, -math.inf, math.inf)
    if kind == "u":
        candidates = (0, 1)
    apply = function(name)
    return next((e for e in candidates if extends(name, kind, apply, e)), None)


def _close(found: Any, wanted: Any) -> bool:
    """Whether both are numbers, and equal but for rounding."""
    if isinstance(wanted, complex) or isinstance(found, complex):
        return bool(abs(found - wanted) <= 1e-9 * max(1.0, abs(wanted)))
    scale = 1e-9 * max(1.0, min(abs(wanted), 1e300))
    return bool(found == wanted or abs(found - wanted) <= scale)


def ufunc(name: str) -> np.ufunc:
    """The function on arrays, element by element; the result has the dtype object."""
    return np.frompyfunc(function(name), 2, 1)
