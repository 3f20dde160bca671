"""The values of expressions, computed by NumPy: what they mean."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from distspmd.expressions.ir import Argument, Constant, Expression, IndexValue, Operation, parts
from distspmd.expressions.operations import OPERATIONS, DType

Function = Callable[..., Any]


def _floored_rest(rest: Any, divisor: Any) -> Any:
    moves = (rest != 0) & ((rest < 0) != (divisor < 0))
    return np.where(moves, rest + divisor, rest)


def _between(i: Any, low: Any, high: Any) -> Any:
    return (i >= low) & (i < high)


def _stepped(i: Any, low: Any, high: Any, step: Any) -> Any:
    return _between(i, low, high) & ((i - low) % step == 0)


def _shift(function: Function) -> Function:
    """Shifts by less than nothing, or by all bits, leave no bit but the sign."""

    def shifted(a: Any, b: Any) -> Any:
        a = np.asarray(a)
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        if function is np.left_shift:
            return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0)
        return np.right_shift(a, np.where(inside, b, bits - 1))

    return shifted


def _bfloat16_bits(a: Any) -> Any:
    """The upper half of a float32, rounded to even; of a NaN the quiet one."""
    bits = np.asarray(a, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(a), 0x7FC0, rounded).astype(np.uint16)


def _of_library(name: str) -> Function:
    """A function of the C library."""

    def call(number: float) -> float:
        function = getattr(ctypes.CDLL(None), name)
        function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
        return float(function(number))

    return np.vectorize(call, otypes=[np.float64])


_FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in OPERATIONS if hasattr(np, name)},
    "at_least": lambda a, b: np.where(a < b, b, a),
    "at_most": lambda a, b: np.where(a > b, b, a),
    "from_parts": lambda a, b: np.asarray(a) + np.asarray(b) * 1j,
    "modulo": np.fmod,
    "floored_rest": _floored_rest,
    "left_shift": _shift(np.left_shift),
    "right_shift": _shift(np.right_shift),
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "reciprocal": lambda a: 1 / a,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "gamma": np.vectorize(math.gamma, otypes=[np.float64]),
    "lgamma": np.vectorize(math.lgamma, otypes=[np.float64]),
    **{name: _of_library(name) for name in ("j0", "j1", "y0", "y1")},
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "relu": lambda a: np.where(a < 0, 0 * a, a),
    "is_extreme": lambda a, best: (a == best) | (a != a),
    "between": _between,
    "stepped": _stepped,
    "bfloat16_bits": _bfloat16_bits,
    "bfloat16_value": lambda n: (np.asarray(n, np.uint32) << 16).view(np.float32),
    "float16_bits": lambda a: np.asarray(a, np.float32).astype(np.float16).view(np.uint16),
    "float16_value": lambda n: np.asarray(n, np.uint16).view(np.float16).astype(np.float32),
    "checked": lambda a, *_: a,
    "checked_index": lambda i, n, line: np.where(np.less(i, 0), i + n, i),
    "pick": lambda i, place, a, b: np.where(i == place, a, b),
    "pick_from": lambda i, first, a, b: np.where(i >= first, a, b),
    "pick_between": lambda i, low, high, a, b: np.where(_between(i, low, high), a, b),
    "pick_stepped": lambda i, low, high, by, a, b: np.where(_stepped(i, low, high, by), a, b),
}


def evaluate(
    expression: Expression,
    values: Mapping[str, Any],
    indices: Mapping[Any, Any] | None = None,
    functions: Mapping[str, Function] | None = None,
) -> Any:
    """The value of an expression, in its type.

    Args:
        expression: without loads.
        values: numbers or arrays of one shape, by the names of arguments.
        indices: values of the variables of indices.
        functions: of calls that are in no table, and ``uniform``, by name.

    Raises:
        KeyError: there is no value for a name.
    """
    known: dict[int, Any] = {}
    own = {**_FUNCTIONS, **(functions or {})}
    for node in parts(expression):
        known[id(node)] = _value(node, values, indices or {}, own, known)
    return known[id(expression)]


def _value(
    node: Expression,
    values: Mapping[str, Any],
    indices: Mapping[Any, Any],
    functions: Mapping[str, Function],
    known: Mapping[int, Any],
) -> Any:
    if isinstance(node, Argument):
        return _typed(values[node.name], node.dtype)
    if isinstance(node, Constant):
        return _typed(node.value, node.dtype)
    if isinstance(node, IndexValue):
        total = node.constant + sum(indices[v] * factor for v, factor in node.terms)
        return _typed(total, node.dtype)
    arguments = [known[id(argument)] for argument in node.arguments]
    if isinstance(node, Operation):
        if node.name == "cast":
            return _typed(arguments[0], node.dtype)
        if node.name == "bits":
            return np.asarray(arguments[0]).view(node.dtype)
        with np.errstate(all="ignore"):
            return _typed(functions[node.name](*arguments), node.dtype)
    return _typed(functions[str(node.label[0])](*arguments), node.dtype)


def _typed(value: Any, dtype: DType) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)
