"""Structured arrays: ``np.zeros(n, [("x", float), ("v", float, 2)])`` and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library.structured import StructuredArray
from distspmd.frontend.from_numpy.numpy.creation import shape_of
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS
from distspmd.frontend.from_numpy.reader import objects


def _fields(dtype: object) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]] | None:
    """The types of fields and their own shapes; None of a type without fields."""
    if not isinstance(dtype, list | np.dtype | dict):
        return None
    try:
        found: np.dtype[Any] = np.dtype(dtype)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if found.names is None:
        return None
    assert found.fields is not None
    own = {name: found.fields[name][0] for name in found.names}
    return {name: (kind.base, kind.shape) for name, kind in own.items()}


def _maker(plain: Any, called: object) -> Any:
    """A function that makes an array of a shape, with a form for types with fields."""

    def handler(run: Context, shape: Any, dtype: Any = None, *rest: Any, **named: Any) -> Any:
        fields = _fields(dtype)
        if fields is None:
            return plain(run, shape, dtype, *rest, **named)
        extents = shape_of(run, shape)
        parts = {
            name: run.call(called, [(*extents, *own)], {"dtype": kind})
            for name, (kind, own) in fields.items()
        }
        return objects.make(run, StructuredArray, [parts, extents], {})

    return handler


def _array(
    run: Context, value: object, dtype: object = None, *rest: object, **named: object
) -> Any:
    fields = _fields(dtype)
    if fields is None:
        return _PLAIN_ARRAY(run, value, dtype, *rest, **named)
    rows = list(value) if isinstance(value, list) else []
    if not rows or not all(isinstance(row, tuple) for row in rows):
        run.tracer.refuse("a structured array of what is no list of tuples; give one")
    columns = zip(*rows, strict=True)
    parts = {
        name: run.call(np.array, [list(column)], {"dtype": kind})
        for (name, (kind, _)), column in zip(fields.items(), columns, strict=True)
    }
    return objects.make(run, StructuredArray, [parts, (len(rows),)], {})


_PLAIN_ARRAY = FUNCTIONS[np.array]
FUNCTIONS[np.array] = _array
for _called in (np.zeros, np.ones, np.empty):
    FUNCTIONS[_called] = _maker(FUNCTIONS[_called], _called)
