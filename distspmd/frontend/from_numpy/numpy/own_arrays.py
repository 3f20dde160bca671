"""How arrays of users' classes are made: ``np.ndarray.__new__``, and views of a class."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import is_whole
from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.arrays.values import OwnArray, Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.bit_views import view_as
from distspmd.frontend.from_numpy.numpy.registry import METHODS, function
from distspmd.frontend.from_numpy.reader import own_arrays


@function(np.ndarray.__new__)
def _new(
    run: Context,
    kind: Any,
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: Any = 0,
    strides: Any = None,
    order: Any = None,
) -> Any:
    if offset != 0 or strides is not None or order not in (None, "C"):
        run.tracer.refuse(f"{kind.__name__} with an offset, strides or an order of its own")
    if buffer is None:
        array = run.tracer.stored(run.call(np.empty, [shape, dtype], {}))
    else:
        array = _of_buffer(run, own_arrays.plain(buffer), shape, np.dtype(dtype))
    return array if kind is np.ndarray else own_arrays.new(run, kind, array, None)


def _of_buffer(run: Context, buffer: Any, shape: Any, dtype: Any) -> Any:
    """The elements of a buffer in another shape."""
    buffer = run.tracer.tensor(buffer)
    if buffer.dtype != dtype:
        run.tracer.refuse(f"TypeError: a buffer of {buffer.dtype} for an array of {dtype}")
    if isinstance(buffer, View) and not buffer.is_whole:
        run.tracer.refuse("a buffer that is a part of an array; make a copy of it before")
    extents = shape if isinstance(shape, tuple | list) else (shape,)
    sizes = [np.prod(each, dtype=object) for each in (buffer.shape, extents)]
    if not all(map(is_whole, sizes)) or sizes[0] != sizes[1]:
        run.tracer.refuse("a buffer that has another number of elements than the array")
    return run.call(np.reshape, [buffer, tuple(extents)], {})


def _view(run: Context, array: Any, dtype: Any = None, type: Any = None) -> Any:
    """``array.view(kind)``."""
    kind = dtype if type is None else type
    if kind is None or kind is np.ndarray:
        return array
    is_class = isinstance(kind, _TYPE) and issubclass(kind, np.ndarray)
    if not is_class and not isinstance(array, OwnArray):
        return view_as(run, array, kind)
    if not is_class or not isinstance(array, Tensor):
        run.tracer.refuse(f"view({told(kind)}) of an array of a class of its own; use astype")
    array = run.tracer.stored(array)
    return own_arrays.new(run, kind, array, array)


_TYPE = type
METHODS["view"] = _view
