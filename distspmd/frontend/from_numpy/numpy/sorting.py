"""Order: sorts of lines, their places, and searches in lines that are in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.lines import (
    along_axis,
    cpp,
    flat,
    in_parts,
    is_long,
    line_axis,
    put_back,
    run_on_lines,
    with_last,
)
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import METHODS, function

BOOL = np.dtype(bool)


def sorted_lines(run: Context, tensor: Tensor, axis: int) -> Tensor:
    """A tensor whose lines along a dimension are in order, NaN last."""
    if is_long(run.tracer, tensor):
        return in_parts(run.tracer, "sort", "sort_parts", {"_in": tensor}, tensor.dtype)
    length = tensor.shape[axis]
    code = f"distspmd::lines::sort(_line0, _result0, {cpp(length)});"
    (found,) = along_axis(run.tracer, "sort", tensor, axis, [(length, tensor.dtype)], code)
    return found


def in_order(
    run: Context, tensor: Tensor, places: Sequence[int] | None
) -> tuple[Tensor, list[Tensor], str]:
    """Lines in order along the last dimension, for code that reads some places of them.

    Args:
        run: the interpreter.
        tensor: has the lines.
        places: which the code may read; None where they are not known.

    Returns:
        what the code gets as ``_line0``, more vectors for it, ``_whole0`` first, and the text by
        which it reads the line. Of a line that ranks sort together it gets these places alone.
    """
    found = sorted_lines(run, tensor, tensor.ndim - 1)
    if places is None or not is_long(run.tracer, tensor):
        return found, [], "_line0"
    known = np.unique(np.array(places, np.int64))
    runs = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
    parts = [slice(int(each[0]), int(each[-1]) + 1) for each in runs]
    picked = run.call(np.concatenate, [[indexing.read(run.tracer, found, p) for p in parts]], {})
    where = run.tracer.stored(run.tracer.tensor(known))
    return picked, [where], f"distspmd::lines::few(_line0, _whole0, {len(known)})"


def _check_options(run: Context, name: str, kind: object, order: object) -> None:
    if order is not None:
        run.tracer.refuse(f"np.{name} with order=, of fields of a structure")
    if kind not in (None, "quicksort", "heapsort", "mergesort", "stable", "introselect"):
        run.tracer.refuse(f"np.{name}: there is no kind {kind!r} of sort")


@function(np.sort)
def _sort(
    run: Context,
    value: object,
    axis: object = -1,
    kind: object = None,
    order: object = None,
    *,
    stable: object = None,
) -> Any:
    _check_options(run, "sort", kind, order)
    tensor, d = line_axis(run.tracer, run.tracer.tensor(value), axis)
    return sorted_lines(run, tensor, d)


@function(np.partition)
def _partition(
    run: Context,
    value: object,
    kth: object,
    axis: object = -1,
    kind: object = None,
    order: object = None,
) -> Any:
    return _sort(run, value, axis, kind, order)


def _in_place(
    run: Context, base: Tensor, axis: object = -1, kind: object = None, order: object = None
) -> None:
    d = normal_axis(run.tracer, axis, base.ndim)
    _check_options(run, "sort", kind, order)
    if not isinstance(base, View):
        run.tracer.refuse("sort() of a value that is no variable: use np.sort")
    run.tracer.assign(base, sorted_lines(run, base, d))


def _sort_method(
    run: Context,
    base: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: object = None,
) -> None:
    _in_place(run, base, axis, kind, order)


def _partition_method(
    run: Context, base: Any, kth: object, axis: Any = -1, kind: Any = None, order: Any = None
) -> None:
    _in_place(run, base, axis, kind, order)


METHODS["sort"] = _sort_method
METHODS["partition"] = _partition_method


@function(np.sort_complex)
def _sort_complex(run: Context, value: object) -> Any:
    tensor = run.tracer.tensor(value)
    kind = np.result_type(
        tensor.dtype, np.complex64 if tensor.dtype.itemsize < 4 else np.complex128
    )
    if tensor.dtype.kind == "c":
        kind = tensor.dtype
    return _sort(run, converted(run.tracer, tensor, kind))


@function(np.argsort, method="argsort")
def _argsort(
    run: Context,
    value: object,
    axis: object = -1,
    kind: object = None,
    order: object = None,
    *,
    stable: object = None,
) -> Any:
    _check_options(run, "argsort", kind, order)
    tensor, d = line_axis(run.tracer, run.tracer.tensor(value), axis)
    length = tensor.shape[d]
    code = f"distspmd::lines::argsort(_line0, _result0, {cpp(length)});"
    found: Tensor
    if is_long(run.tracer, tensor):
        found = in_parts(run.tracer, "argsort", "argsort_parts", {"_in": tensor}, INT64)
    else:
        (found,) = along_axis(run.tracer, "argsort", tensor, d, [(length, INT64)], code)
    found.is_index = True
    return found


@function(np.argpartition, method="argpartition")
def _argpartition(
    run: Context,
    value: object,
    kth: object,
    axis: object = -1,
    kind: object = None,
    order: object = None,
) -> Any:
    return _argsort(run, value, axis, kind, order)


@function(np.lexsort)
def _lexsort(run: Context, keys: Any, axis: object = -1) -> Any:
    tracer = run.tracer
    if isinstance(keys, Tensor):
        if not isinstance(keys.shape[0], int):
            tracer.refuse("np.lexsort of keys whose number is not known: write a tuple of them")
        keys = [run.call(np.take, [keys, n, 0], {}) for n in range(keys.shape[0])]
    every = [tracer.tensor(key) for key in keys]
    if not every:
        tracer.refuse("need sequence of keys with len > 0 in lexsort")
    d = normal_axis(tracer, axis, every[0].ndim)
    shape = every[0].shape
    moved = [with_last(tracer, tracer.broadcast(key, shape), d) for key in every]
    tests = "".join(
        f"if (distspmd::lines::before(_line{n}[a], _line{n}[b])) return true;"
        f"if (distspmd::lines::before(_line{n}[b], _line{n}[a])) return false;"
        for n in reversed(range(len(every)))
    )
    length = shape[d]
    code = (
        f"std::iota(_result0, _result0 + {cpp(length)}, int64_t(0));"
        f"std::stable_sort(_result0, _result0 + {cpp(length)}, [&](int64_t a, int64_t b) {{"
        f"{tests} return false; }});"
    )
    batch = moved[0].shape[:-1]
    (found,) = run_on_lines(tracer, "lexsort", batch, moved, [], [(length, INT64)], code)
    result = put_back(tracer, found, d)
    result.is_index = True
    return result


# -- searches -------------------------------------------------------------------------------------


def _common(run: Context, values: Sequence[Any]) -> list[Tensor]:
    """Tensors in their common type."""
    tracer = run.tracer
    tensors = [tracer.tensor(v) for v in values]
    kind = np.result_type(*(t.dtype for t in tensors))
    return [t if t.dtype == kind else converted(tracer, t, kind) for t in tensors]


def look_up(
    run: Context, label: str, value: Tensor, wholes: Sequence[Tensor], dtype: Any, code: str
) -> Tensor:
    """For each element of a tensor what code finds in vectors; its value is ``_line0[0]``."""
    (found,) = run_on_lines(run.tracer, label, value.shape, [value], wholes, [(None, dtype)], code)
    return found


@function(np.searchsorted, method="searchsorted")
def _searchsorted(
    run: Context, base: object, value: object, side: object = "left", sorter: object = None
) -> Any:
    line, wanted = _common(run, [base, value])
    if line.ndim != 1:
        run.tracer.refuse("np.searchsorted in an array of more than one dimension")
    if side not in ("left", "right"):
        run.tracer.refuse(f"np.searchsorted: side is 'left' or 'right', not {side!r}")
    last, length = str(side == "right").lower(), cpp(line.shape[0])
    wholes = [line]
    if sorter is None:
        code = f"search(_whole0, {length}, *_line0, {last})"
    else:
        wholes.append(run.tracer.tensor(sorter))
        code = f"search_by(_whole0, _whole1, {length}, *_line0, {last})"
    found = look_up(
        run, "searchsorted", wanted, wholes, INT64, f"*_result0 = distspmd::lines::{code};"
    )
    found.is_index = True
    return found


@function(np.digitize)
def _digitize(run: Context, value: object, bins: object, right: bool = False) -> Any:
    wanted, edges = _common(run, [value, bins])
    if edges.ndim != 1:
        run.tracer.refuse("np.digitize: the bins have to have one dimension")
    side, length = str(bool(right)).lower(), cpp(edges.shape[0])
    code = f"*_result0 = distspmd::lines::digit(_whole0, {length}, *_line0, {side});"
    found = look_up(run, "digitize", wanted, [edges], INT64, code)
    found.is_index = True
    return found


@function(np.isin)
def _isin(
    run: Context,
    element: object,
    test_elements: object,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: object = None,
) -> Any:
    tracer = run.tracer
    wanted, tests = _common(run, [element, test_elements])
    tests = flat(tracer, tests) if tests.ndim else run.call(np.reshape, [tests, (1,)], {})
    length = cpp(tests.shape[0])
    code = (
        f"const int64_t k = distspmd::lines::search(_whole0, {length}, *_line0, false);"
        f"*_result0 = k < {length} && _whole0[k] == *_line0;"
    )
    found = look_up(run, "isin", wanted, [sorted_lines(run, tests, 0)], BOOL, code)
    return combine(tracer, np.logical_not, [found]) if invert else found


# -- gathers along a dimension --------------------------------------------------------------------


@function(np.take_along_axis)
def _take_along_axis(run: Context, value: object, indices: object, axis: object = -1) -> Any:
    tracer = run.tracer
    base, places = tracer.tensor(value), tracer.tensor(indices)
    base, d = line_axis(tracer, base, axis)
    if places.dtype.kind not in "iu":
        tracer.refuse("`indices` must be an integer array")
    if places.ndim != base.ndim:
        tracer.refuse("`indices` and `arr` must have the same number of dimensions")
    lines = [with_last(tracer, t, d) for t in (base, places)]
    batch = tracer.broadcast_shape([t.shape[:-1] for t in lines])
    count, length = lines[1].shape[-1], base.shape[d]
    code = (
        f"for (int64_t k = 0; k < {cpp(count)}; ++k) {{ const int64_t i = _line1[k];"
        f"_result0[k] = _line0[i < 0 ? i + {cpp(length)} : i]; }}"
    )
    (found,) = run_on_lines(
        tracer, "take_along_axis", batch, lines, [], [(count, base.dtype)], code
    )
    return put_back(tracer, found, d)


@function(np.put_along_axis)
def _put_along_axis(run: Context, base: Any, indices: Any, values: Any, axis: Any) -> None:
    tracer = run.tracer
    if not hasattr(base, "container"):
        tracer.refuse("np.put_along_axis writes to an array, or to a part of one by slices")
    if axis is None and base.ndim > 1:
        tracer.refuse("np.put_along_axis without axis=, of more than one dimension")
    d = normal_axis(tracer, axis or 0, base.ndim)
    places = tracer.tensor(indices)
    given = converted(tracer, tracer.broadcast(tracer.tensor(values), places.shape), base.dtype)
    lines = [with_last(tracer, t, d) for t in (base, places, given)]
    batch = lines[0].shape[:-1]
    count, length = lines[1].shape[-1], base.shape[d]
    code = (
        f"std::copy(_line0, _line0 + {cpp(length)}, _result0);"
        f"for (int64_t k = 0; k < {cpp(count)}; ++k) {{ const int64_t i = _line1[k];"
        f"_result0[i < 0 ? i + {cpp(length)} : i] = _line2[k]; }}"
    )
    (found,) = run_on_lines(
        tracer, "put_along_axis", batch, lines, [], [(length, base.dtype)], code
    )
    tracer.assign(base, put_back(tracer, found, d))
