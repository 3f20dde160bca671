"""What values are: arrays, whole numbers, and what is known before the run."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from numpy.matrixlib import matrix

from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.values import OfRun, Tensor, is_carried


def joined_type(one: Tensor, other: Tensor) -> DType:
    """The type of a variable that is one value here, and another one there.

    Where only one of them is a number of Python, the variable has the type of the other, with which
    such a number combines. A whole number may be larger than integers of that type.
    """
    if (one.weak is None) == (other.weak is None):
        return np.result_type(one.dtype, other.dtype)
    strong, weak = (one, other) if other.weak is not None else (other, one)
    if strong.dtype.kind in "fc" and weak.weak is not None:
        return np.result_type(strong.dtype, weak.weak(0))
    return np.result_type(strong.dtype, weak.dtype)


def joined_weak(one: Tensor, other: Tensor) -> type | None:
    """The type of Python of a variable that is one value here, and another one there."""
    if one.weak is None or other.weak is None:
        return None
    return one.weak if one.weak is other.weak else type(one.weak(0) + other.weak(0))


_OTHERS = {
    np.ma.MaskedArray: "pass its data and its mask: m.filled(0) and np.ma.getmaskarray(m)",
    matrix: "pass np.asarray(a), and write @ for its products",
    np.recarray: "pass its fields one by one",
}
"""Classes of arrays that have operators of their own: what to write instead."""


def not_plain(value: Any) -> str:
    """Why an array is not one of numbers with NumPy's own operators; empty if it is."""
    for kind, instead in _OTHERS.items():
        if isinstance(value, kind):
            return f"a {kind.__name__}, whose operators are its own: {instead}"
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        return f"a {type(value).__name__}, whose operators may be its own: pass np.asarray(a)"
    if not is_carried(value.dtype):
        return f"an array of the type {value.dtype}"
    return ""


def is_array(value: object) -> bool:
    """Whether a value is an array."""
    return isinstance(value, Tensor | np.ndarray)


def is_of_none(value: Any) -> bool:
    """Whether a value is an array of objects, each of which is None, as is known."""
    is_of_objects = isinstance(value, np.ndarray) and value.dtype == object
    return is_of_objects and value.size > 0 and all(each is None for each in value.flat)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, of symbols or not."""
    return isinstance(value, int | sympy.Expr) and not isinstance(value, bool)


def has_arrays(value: object) -> bool:
    """Whether something in a value is an array, or of symbols."""
    if isinstance(value, list | tuple | deque):
        return any(map(has_arrays, value))
    if isinstance(value, dict):
        return any(map(has_arrays, value.values()))
    return isinstance(value, Tensor | sympy.Basic | np.ndarray | OfRun)


def has_data(value: object) -> bool:
    """Whether something in a value is not known before the run."""
    if isinstance(value, list | tuple | set | deque):
        return any(map(has_data, value))
    if isinstance(value, dict):
        return any(map(has_data, value.values()))
    if isinstance(value, slice):
        return any(map(has_data, (value.start, value.stop, value.step)))
    return isinstance(value, Tensor | sympy.Basic | OfRun)


_FOREIGN = "USOmM"
"""Kinds of elements that programs do not carry: texts, objects, dates and times between them."""


def is_foreign_type(dtype: Any) -> bool:
    """Whether a type of elements is one that programs do not carry."""
    try:
        return dtype is not None and np.dtype(dtype).kind in _FOREIGN
    except TypeError:
        return False


def is_foreign(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a known array of texts, objects or dates is in a call, or is what the call makes."""
    every = [*arguments, *keywords.values()]
    flat = [part for each in every for part in (each if isinstance(each, tuple | list) else [each])]
    made = is_foreign_type(keywords.get("dtype"))
    found = made or any(
        isinstance(each, np.ndarray | np.generic) and each.dtype.kind in _FOREIGN for each in flat
    )
    return found and not has_data((list(arguments), dict(keywords)))


_PLAIN = (int, float, complex, np.generic, np.ndarray, type(None))


def is_plain(value: object) -> bool:
    """Whether a value is one of Python or NumPy alone, which functions take as they do in a run."""
    if isinstance(value, list | tuple | set | dict):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return all(map(is_plain, parts))
    return type(value) is str or isinstance(value, _PLAIN)


def of_numpy(value: Tensor) -> Tensor:
    """What a function of NumPy gives: never a number of Python, whatever it was given."""
    return value if value.weak is None else Tensor(value.shape, value.dtype, value.element)


def is_of_python(value: object) -> bool:
    """Whether a value is a number of Python, not one of NumPy."""
    if isinstance(value, Tensor):
        return value.weak is not None and value.ndim == 0
    return type(value) in (bool, int, float, complex) or isinstance(value, sympy.Expr)


def dace_symbol(value: object) -> sympy.Symbol | None:
    """A size of DaCe as one of ours; None for other values."""
    if type(value).__module__.startswith("dace") and isinstance(value, sympy.Symbol):
        return sympy.Symbol(value.name, integer=True)
    return None


_MODULES = ("numpy", "numpy.linalg")
_WORDS = (str, type, np.dtype)
_NUMBERS = (bool, int, float, complex, np.generic)


def known_result(
    function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> np.generic | None:
    """The number that a function of NumPy gives; None where it is not known, or is an array."""
    if getattr(function, "__module__", None) not in _MODULES:
        return None
    if not arguments or not all(map(_is_known, (*arguments, *keywords.values()))):
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = function(*arguments, **keywords)
    except Exception:  # which the reading of the call tells, with its line
        return None
    return found if isinstance(found, np.generic) else None


def _is_known(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_known, value))
    return value is None or isinstance(value, _NUMBERS + _WORDS)
