"""Operators of an array and an object: whose operator it is that Python asks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import is_array
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import is_of_library
from distspmd.frontend.from_numpy.reader import objects


def check_operand(run: Context, left: Any, right: object) -> None:
    """Refuse an object on the right that an array on the left takes for an array of its own.

    An array leaves an operator to an object that takes no part in universal functions, or that
    comes first. Of others it makes what their ``__array__`` says, or an array of objects.
    """
    is_first = is_array(left) and np.ndim(left) > 0
    if not is_first or not objects.is_own(right) or isinstance(right, tuple):
        return
    kind = objects.class_of(right)
    if is_of_library(kind) or _defers(kind):
        return
    instead = f"write __array_ufunc__ = None in the class {kind.__name__}, or turn the operands"
    if inspect.getattr_static(kind, "__array__", None) is not None:
        instead = "give the operator the array that the object has"
    run.tracer.refuse(
        f"an operator of an array and a {kind.__name__}, which gives an array of objects, or what "
        f"its __array__ says; {instead}"
    )


def _defers(kind: type) -> bool:
    missing = object()
    found = inspect.getattr_static(kind, "__array_ufunc__", missing)
    if found is not missing:
        return found is None
    return bool(inspect.getattr_static(kind, "__array_priority__", -1.0) > 0)
