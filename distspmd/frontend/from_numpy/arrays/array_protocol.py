"""Objects that say which array they are, by ``__array__``: NumPy computes with that array."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import is_array
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import is_of_library
from distspmd.frontend.from_numpy.reader import objects
from distspmd.runtime.calls.form import rebuilt

_OF_NUMPY = ("__array_ufunc__", "__array_function__", "__array_wrap__")


def arguments_of(
    run: Context, function: object, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Arguments in which objects are the arrays that they say, if a function is NumPy's."""
    given = [*arguments, *keywords.values()]
    if not any(map(_says, given)) or not _takes_arrays(function):
        return arguments, keywords
    named = {name: array_of(run, value) for name, value in keywords.items()}
    return [array_of(run, value) for value in arguments], named


def operand(run: Context, left: Any, right: object) -> Any:
    """The array that the right operand is, if an array on the left computes with it.

    An array leaves an operator to an object that takes no part in universal functions, or that
    comes first; it computes with others, whatever methods they have.
    """
    is_first = is_array(left) and np.ndim(left) > 0
    if not is_first or not objects.is_own(right) or isinstance(right, tuple):
        return right
    kind = objects.class_of(right)
    if is_of_library(kind) or _defers(kind):
        return right
    if not _says(right):
        run.tracer.refuse(
            f"an operator of an array and a {kind.__name__}, which gives an array of objects; "
            f"write __array_ufunc__ = None in the class {kind.__name__}, or turn the operands"
        )
    return array_of(run, right)


def _defers(kind: type) -> bool:
    missing = object()
    found = inspect.getattr_static(kind, "__array_ufunc__", missing)
    if found is not missing:
        return found is None
    return bool(inspect.getattr_static(kind, "__array_priority__", -1.0) > 0)


def _takes_arrays(function: object) -> bool:
    if isinstance(function, np.ufunc) or hasattr(function, "owner"):
        return True
    module = str(getattr(function, "__module__", "") or "").split(".")[0]
    return module == "numpy" and not isinstance(function, types.MethodType)


def _says(value: object) -> bool:
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return any(map(_says, value))
    if not objects.is_own(value):
        return False
    return inspect.getattr_static(objects.class_of(value), "__array__", None) is not None


def array_of(run: Context, value: Any) -> Any:
    """A value in which objects are the arrays that they say."""
    if type(value) in (list, tuple) and any(map(_says, value)):
        return rebuilt(value, [array_of(run, part) for part in value])
    if not _says(value):
        return value
    kind = objects.class_of(value)
    for name in _OF_NUMPY:
        if getattr(kind, name, None) is not None:
            run.tracer.refuse(f"a {kind.__name__}, whose class has {name}, given to NumPy")
    return run.call(run.attribute(value, "__array__"), [], {})
