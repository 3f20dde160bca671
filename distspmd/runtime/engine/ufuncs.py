"""Reductions by a user's NumPy ufunc, as functions that the C++ runtime calls.

Each of them is Python code that C++ calls with a run of elements: right for any ufunc, and slow.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.reductions import find_reduction
from distspmd.plans.encoding import Function
from distspmd.plans.plan import Plan

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_KERNEL = ctypes.CFUNCTYPE(None, _POINTER, _NUMBER, _POINTER, _NUMBER, _NUMBER)
_FILL = ctypes.CFUNCTYPE(None, _POINTER, _NUMBER)
_COMBINE = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, ctypes.POINTER(ctypes.c_int), _POINTER)


def addresses_of_ufuncs(plan: Plan) -> dict[Function, tuple[int, int, int]]:
    """The addresses of the functions by which a plan reduces, if the runtime has none itself."""
    move = plan.redistribution
    if move.reduction is None or find_reduction(move.reduction).code:
        return {}
    function = (move.reduction, move.dtype)
    return {function: _addresses(_made(*function))}


def _addresses(made: tuple[Any, Any, Any]) -> tuple[int, int, int]:
    kernel, fill, combine = (ctypes.cast(each, _POINTER).value or 0 for each in made)
    return kernel, fill, combine


@cache  # what C++ may call stays until the end
def _made(name: str, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    known = find_reduction(name)
    neutral, itemsize = known.identity(dtype), dtype.itemsize

    def kernel(target: int, stride: int, source: int, source_stride: int, n: int) -> None:
        into = _elements(target, stride, n, dtype)
        with np.errstate(all="ignore"):
            into[...] = known.ufunc(into, _elements(source, source_stride, n, dtype))

    def fill(target: int, n: int) -> None:
        _elements(target, itemsize, n, dtype)[...] = neutral

    def combine(source: int, target: int, n: Any, _type: int) -> None:
        kernel(target, itemsize, source, itemsize, n[0])

    return _KERNEL(_ending(kernel)), _FILL(_ending(fill)), _COMBINE(_ending(combine))


def _elements(address: int, stride: int, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Elements somewhere in memory."""
    nbytes = (n - 1) * stride + dtype.itemsize
    memory: Any = (ctypes.c_char * nbytes).from_address(address)
    return np.ndarray((n,), dtype, memory, strides=(stride,))


def _ending(function: Callable[..., None]) -> Callable[..., None]:
    """The function, which ends all ranks where it raises: C++ does not see exceptions."""

    def guarded(*arguments: Any) -> None:
        try:
            function(*arguments)
        except BaseException:
            from mpi4py import MPI

            traceback.print_exc()
            MPI.COMM_WORLD.Abort(1)

    return guarded
