"""Values of integer expressions in many places at once, given those of their symbols."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from distspmd.errors import UnsupportedProgram

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda *terms: sum(terms),
    "Mul": lambda *factors: functools.reduce(operator.mul, factors),
    "Min": lambda *values: functools.reduce(np.minimum, values),
    "Max": lambda *values: functools.reduce(np.maximum, values),
    "int_floor": operator.floordiv,
    "__int_floor": operator.floordiv,
    "int_ceil": lambda a, b: -(-a // b),
    "Mod": np.mod,
    "CMod": np.fmod,  # of C, with the sign of the first number
}


def evaluate(expression: sympy.Expr, values: Mapping[str, NDArray[np.int64]]) -> Any:
    """Value of an integer expression in all places at once, given those of its symbols.

    Raises:
        UnsupportedProgram: a function that is not known.
    """
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return values[expression.name]
    name = expression.func.__name__
    if name not in _FUNCTIONS:
        raise UnsupportedProgram(f"an index has the expression {expression}: {name} is not known.")
    return _FUNCTIONS[name](*(evaluate(part, values) for part in expression.args))
