"""``np.matrix``: how matrices are made, and what only they have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.matrixlib import asmatrix, bmat, matrix

from distspmd.frontend.from_numpy.arrays.values import OwnArray
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import own_arrays


def _made(run: Context, kind: Any, data: Any, dtype: Any, maker: Any) -> OwnArray:
    if isinstance(data, str):
        data = np.asarray(matrix(data))
    array = run.tracer.stored(run.tracer.tensor(run.call(maker, [data], {"dtype": dtype})))
    if array.ndim > 2:
        run.tracer.refuse("ValueError: matrix must be 2-dimensional")
    if array.ndim < 2:
        array = run.call(np.reshape, [array, (1, -1)], {})
    return own_arrays.new(run, kind, array, None)


@function(matrix)
def _matrix(run: Context, data: Any, dtype: Any = None, copy: Any = True) -> Any:
    return _made(run, matrix, data, dtype, np.array if copy else np.asarray)


@function(matrix.__new__)
def _new(run: Context, subtype: Any, data: Any, dtype: Any = None, copy: Any = True) -> Any:
    return _made(run, subtype, data, dtype, np.array if copy else np.asarray)


@function(asmatrix)
def _as_matrix(run: Context, data: Any, dtype: Any = None) -> Any:
    return _made(run, matrix, data, dtype, np.asarray)


@function(bmat)
def _blocks(run: Context, obj: Any, ldict: Any = None, gdict: Any = None) -> Any:
    if isinstance(obj, str):
        run.tracer.refuse("np.bmat of a text; give the blocks in lists")
    if isinstance(obj, list | tuple) and isinstance(obj[0], list | tuple):
        rows = [run.call(np.concatenate, [list(row)], {"axis": -1}) for row in obj]
        obj = run.call(np.concatenate, [rows], {"axis": 0})
    elif isinstance(obj, list | tuple):
        obj = run.call(np.concatenate, [list(obj)], {"axis": -1})
    return _made(run, matrix, obj, None, np.array)


@function(matrix.getA)
def _array(run: Context, own: Any) -> Any:
    return own


@function(matrix.getA1)
def _line(run: Context, own: Any) -> Any:
    return run.call(np.ravel, [own], {})


@function(matrix.getT)
def _transposed(run: Context, own: Any) -> Any:
    return run.call(np.transpose, [own], {})


@function(matrix.getH)
def _adjoint(run: Context, own: Any) -> Any:
    return run.call(np.conj, [run.call(np.transpose, [own], {})], {})


@function(matrix.getI)
def _inverse(run: Context, own: Any) -> Any:
    rows, columns = own.shape
    return run.call(np.linalg.inv if rows == columns else np.linalg.pinv, [own], {})
