"""Functions that make arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.kinds import has_data, is_foreign_type
from distspmd.frontend.from_numpy.arrays.transcript import Refusal, told
from distspmd.frontend.from_numpy.arrays.values import Tensor, index_expression, is_carried, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.tensor_ir.statements import Index
from distspmd.frontend.tensor_ir.whole_numbers import add, ceil_divide, is_at_least, subtract

FLOAT64 = np.dtype(np.float64)


def shape_of(run: Context, shape: object) -> tuple[Any, ...]:
    """A shape that is given."""
    tracer = run.tracer
    if isinstance(shape, tuple | list):
        return tuple(tracer.as_whole(n, "an extent") for n in shape)
    if getattr(shape, "ndim", 0) == 1:
        return tuple(tracer.as_whole(n, "an extent") for n in run.unpacked(shape, None))
    return (tracer.as_whole(shape, "an extent"),)


def dtype_of(run: Context, dtype: Any, default: Any = np.float64) -> np.dtype[Any]:
    """A type that is given."""
    from dace import dtypes

    if dtype is None:
        known: np.dtype[Any] = np.dtype(default)
        return known
    if isinstance(dtype, dtypes.typeclass):
        dtype = dtype.type
    if isinstance(dtype, Tensor):
        run.tracer.refuse(f"{told(dtype)} is no type of elements")
    try:
        found = np.dtype(dtype)
    except TypeError as problem:
        run.tracer.refuse(str(problem))
    if not is_carried(found):
        run.tracer.refuse(f"elements of the type {found}")
    kind: np.dtype[Any] = found
    return kind


def filled(run: Context, shape: object, value: object, dtype: np.dtype[Any]) -> Tensor:
    """An array of one number."""
    tensor = converted(run.tracer, value, dtype)
    extents = shape_of(run, shape)
    known: Tensor = run.tracer.stored_anew(run.tracer.broadcast(tensor, extents))
    return _of_no_dimensions(known)  # type: ignore[no-any-return]


@function(np.zeros)
def _zeros(
    run: Context, shape: object, dtype: object = None, order: object = "C", **_: object
) -> Tensor:
    return filled(run, shape, 0, dtype_of(run, dtype))


@function(np.ones)
def _ones(
    run: Context, shape: object, dtype: object = None, order: object = "C", **_: object
) -> Tensor:
    return filled(run, shape, 1, dtype_of(run, dtype))


@function(np.empty)
def _empty(
    run: Context, shape: object, dtype: object = None, order: object = "C", **_: object
) -> Tensor:
    """A container: what is read of it before it is written is not defined in NumPy either."""
    known: Tensor = run.tracer.empty(
        run.tracer.target or "empty", shape_of(run, shape), dtype_of(run, dtype)
    )
    return _of_no_dimensions(known)  # type: ignore[no-any-return]


@function(np.ndarray)
def _ndarray(
    run: Context, shape: object, dtype: object = float, *others: object, **named: object
) -> Tensor:
    if others or named.keys() - {"order"}:
        run.tracer.refuse("np.ndarray on the memory of something else; write a slice of an array")
    known: Tensor = _empty(run, shape, dtype)
    return known


@function(np.full)
def _full(
    run: Context, shape: object, fill_value: object, dtype: object = None, order: object = "C"
) -> Tensor:
    tensor = run.tracer.tensor(fill_value)
    return filled(run, shape, tensor, dtype_of(run, dtype, tensor.dtype))


def _like(value: object) -> Any:
    def make(
        run: Context,
        like: object,
        *rest: object,
        dtype: object = None,
        shape: object = None,
        **_: object,
    ) -> Tensor:
        tensor = run.tracer.tensor(like)
        number_ = rest[0] if value is None else value
        if value is not None and rest:
            dtype = rest[0]
        kind = dtype_of(run, dtype, tensor.dtype)
        return filled(run, tensor.shape if shape is None else shape, number_, kind)

    return make


function(np.zeros_like, np.empty_like)(_like(0))
function(np.ones_like)(_like(1))


@function(np.full_like)
def _full_like(
    run: Context,
    like: object,
    fill_value: object,
    dtype: object = None,
    shape: object = None,
    **_: object,
) -> Tensor:
    tensor = run.tracer.tensor(like)
    kind = dtype_of(run, dtype, tensor.dtype)
    return filled(run, tensor.shape if shape is None else shape, fill_value, kind)


@function(np.array)
def _array(
    run: Context,
    value: object,
    dtype: object = None,
    copy: object = True,
    ndmin: int = 0,
    **_: object,
) -> Any:
    found = _of_no_dimensions(_stored_array(run, value, dtype))
    missing = ndmin - found.ndim
    return found if missing <= 0 else run.call(np.expand_dims, [found, tuple(range(missing))], {})


def _stored_array(run: Context, value: object, dtype: object) -> Any:
    kind = None if dtype is None else dtype_of(run, dtype)
    if not has_data(value) and not isinstance(value, np.ndarray):
        try:
            made = np.array(value, dtype=kind)
        except (TypeError, ValueError) as problem:
            run.tracer.refuse(str(problem))
        return made if is_foreign_type(made.dtype) else run.tracer.tensor(made)
    tensor = run.tracer.tensor(value)
    if kind is not None:
        tensor = converted(run.tracer, tensor, kind)
    if tensor is value:
        tensor = Tensor(tensor.shape, tensor.dtype, tensor.element)
    return run.tracer.stored(tensor)


@function(np.asarray, np.asanyarray)
def _as_array(run: Context, value: object, dtype: object = None, **_: object) -> Any:
    tensor = run.tracer.tensor(value)
    if tensor.weak is not None:  # a number of Python becomes an array of no dimensions
        return _of_no_dimensions(_stored_array(run, value, dtype))
    if dtype is None or dtype_of(run, dtype) == tensor.dtype:
        return _of_no_dimensions(tensor)
    found = run.tracer.stored_anew(converted(run.tracer, tensor, dtype_of(run, dtype)))
    return _of_no_dimensions(found)


def _of_no_dimensions(tensor: Any) -> Any:
    """A number as an array of no dimensions; others as they are."""
    is_number = isinstance(tensor, Tensor) and not tensor.shape and not tensor.is_array
    return replace(tensor, is_array=True) if is_number else tensor


@function(np.fromiter)
def _from_iterator(
    run: Context, iter: object, dtype: object, count: object = -1, **_: object
) -> Any:
    """The values that an iterator gives, of which a number of them may be asked for."""
    tracer = run.tracer
    kind = dtype_of(run, dtype)
    values = run.call(list, [iter], {})
    if isinstance(values, list):
        length: Any = len(values)
        found = _stored_array(run, values, kind) if values else tracer.table(np.empty(0, kind))
    else:
        found = _stored_array(run, values, kind)
        length = found.shape[0]
    if isinstance(count, int) and count < 0:
        return found
    count = tracer.as_whole(count)
    if isinstance(length, int) and isinstance(count, int) and length < count:
        tracer.refuse(f"iterator too short: Expected {count} but iterator had only {length} items.")
    if not isinstance(length, int) or not isinstance(count, int):
        end_if(run, sympy.Lt(length, count), "ValueError", "np.fromiter: iterator too short")
    return indexing.read(tracer, found, slice(0, count))


@function(np.copy, method="copy")
def _copy(run: Context, value: object, order: object = "C", **_: object) -> Any:
    tensor = run.tracer.tensor(value)
    return run.tracer.stored_anew(Tensor(tensor.shape, tensor.dtype, tensor.element))


@function(np.eye)
def _eye(
    run: Context, n: object, m: object = None, k: object = 0, dtype: object = None, **_: object
) -> Tensor:
    n = run.tracer.as_whole(n)
    m = n if m is None else run.tracer.as_whole(m)
    k = run.tracer.as_whole(k)
    kind = dtype_of(run, dtype)

    def element(index: tuple[Index, ...]) -> Expression:
        on = apply("equal", index_expression(index[1]), _shifted(index[0], k))
        return apply("where", on, number(1, kind), number(0, kind))

    known: Tensor = run.tracer.stored_anew(Tensor((n, m), kind, element))
    return known


@function(np.identity)
def _identity(run: Context, n: object, dtype: object = None, **_: object) -> Tensor:
    known: Tensor = _eye(run, n, dtype=dtype)
    return known


def _shifted(index: Index, by: object) -> Expression:
    if isinstance(index, int | sympy.Basic):
        return index_expression(add(index, by))
    return apply("add", index, index_expression(by))


@function(np.arange)
def _arange(
    run: Context,
    *ends: Any,
    start: Any = None,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    **_: object,
) -> Any:
    if len(ends) == 4:
        *ends, dtype = ends  # type: ignore[assignment]
    first, stop, step = _ends(ends, start, stop, step)
    if all(_is_static(v) for v in (first, stop, step)):
        found = np.arange(first, stop, step, dtype=None if dtype is None else dtype_of(run, dtype))
        if found.size <= 64:
            return run.tracer.table(found)
        if found.dtype.kind in "iu":
            return _affine(run, found.size, int(found[0]), int(step), found.dtype)
        second = found[1] - found[0]
        return _linear(run, found.size, first, second, found.dtype)
    tracer = run.tracer
    if all(_is_whole(v) for v in (first, stop, step)):
        low, high, by = (tracer.as_whole(v) for v in (first, stop, step))
        count = (
            ceil_divide(subtract(high, low), by)
            if not (isinstance(by, int) and by < 0)
            else (ceil_divide(subtract(low, high), -by))
        )
        if tracer.is_decided_by_data(count) and not is_at_least(count, 0, tracer.known.bounds):
            count = sympy.Max(0, count)  # of ends in the other order there are none
        return _affine(run, count, low, by, dtype_of(run, dtype, np.int64))
    if not run.fixes_numbers or tracer.inner:
        raise Refusal(
            tracer.message(
                "np.arange with real numbers that are not known: its length is not known"
            )
        )
    return _range_of_reals(run, first, stop, step, dtype)


def _range_of_reals(
    run: Context, first: object, stop: object, step: object, dtype: object
) -> Tensor:
    """A range of as many numbers as the run decides."""
    from distspmd.frontend.from_numpy.numpy.unknown_lengths import length_of_run

    tracer = run.tracer
    one, end, by = (combine(tracer, np.add, [v, 0.0]) for v in (first, stop, step))
    parts = combine(tracer, np.divide, [combine(tracer, np.subtract, [end, one]), by])
    count = combine(tracer, np.maximum, [combine(tracer, np.ceil, [parts]), 0.0])
    instead = "give np.linspace a number of elements that is known before the run"
    length = length_of_run(run, count, "np.arange", instead)
    second = combine(tracer, np.subtract, [combine(tracer, np.add, [one, by]), one])
    kind = np.result_type(*(v.dtype for v in (one, end, by)))
    return _linear(run, length, one, second, dtype_of(run, dtype, kind))


def _ends(given: Sequence[Any], start: object, stop: object, step: object) -> tuple[Any, Any, Any]:
    """The first value, the end and the step of a range, as ``np.arange`` reads its arguments."""
    first: Any = 0 if start is None else start
    if len(given) == 1 and stop is None:
        (stop,) = given
    elif len(given) == 1:
        (first,) = given
    elif given:
        first, stop, *rest = given
        step = rest[0] if rest else step
    return first, stop, 1 if step is None else step


def _is_static(value: object) -> bool:
    return isinstance(value, int | float | np.generic) and not isinstance(value, complex)


def _is_whole(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return isinstance(value, int | np.integer | sympy.Basic)


def _affine(
    run: Context, count: object, first: object, step: object, dtype: np.dtype[Any]
) -> Tensor:
    from distspmd.frontend.tensor_ir.whole_numbers import multiply

    def element(index: tuple[Index, ...]) -> Expression:
        (i,) = index
        if isinstance(i, int | sympy.Basic):
            value = index_expression(add(first, multiply(step, i)))
        else:
            value = apply(
                "add", index_expression(first), apply("multiply", index_expression(step), i)
            )
        return cast(value, dtype)

    found = run.tracer.stored_anew(Tensor((count,), dtype, element))
    found.is_index = isinstance(first, int) and first >= 0 and isinstance(step, int) and step >= 0
    known: Tensor = found
    return known


def _linear(
    run: Context, count: object, first: object, step: object, dtype: np.dtype[Any]
) -> Tensor:
    one, two = (run.tracer.tensor(v) for v in (first, step))

    def element(index: tuple[Index, ...]) -> Expression:
        place = cast(index_expression(index[0]), FLOAT64)
        start, by = (cast(t.element((0,) * t.ndim), FLOAT64) for t in (one, two))
        return cast(apply("add", start, apply("multiply", place, by)), dtype)

    known: Tensor = run.tracer.stored_anew(Tensor((count,), dtype, element))
    return known


@function(np.linspace)
def _linspace(
    run: Context,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: object = 0,
) -> Any:
    tracer = run.tracer
    count = tracer.as_whole(num, "the number of points")
    kind = dtype_of(run, dtype)
    if all(_is_static(v) for v in (start, stop)) and isinstance(count, int):
        values, step = np.linspace(start, stop, count, endpoint=endpoint, retstep=True, dtype=kind)
        found = (
            tracer.table(values)
            if count <= 64
            else _spaced(run, start, stop, count, endpoint, kind)
        )
        return (found, step) if retstep else found
    if tracer.tensor(start).ndim or tracer.tensor(stop).ndim:
        given = [start, stop, count, endpoint, retstep, kind, axis]
        return run.call(rarer_forms.linspaced, given, {})
    if retstep:
        tracer.refuse("np.linspace(retstep=True) between numbers that are not known")
    return _spaced(run, start, stop, count, endpoint, kind)


def _spaced(run: Context, start: Any, stop: Any, count: Any, endpoint: bool, kind: Any) -> Tensor:
    one, two = (run.tracer.tensor(v) for v in (start, stop))
    parts = subtract(count, 1) if endpoint else count

    def element(index: tuple[Index, ...]) -> Expression:
        low, high = (cast(t.element((0,) * t.ndim), FLOAT64) for t in (one, two))
        place = cast(index_expression(index[0]), FLOAT64)
        number_ = cast(index_expression(parts), FLOAT64)
        safe = apply(
            "where", apply("equal", number_, number(0, FLOAT64)), number(1, FLOAT64), number_
        )
        step = apply("divide", apply("subtract", high, low), safe)
        value = apply("add", low, apply("multiply", place, step))
        if endpoint:
            last = apply(
                "logical_and",
                apply("equal", place, number_),
                apply("greater", number_, number(0, FLOAT64)),
            )
            value = apply("where", last, high, value)
        return cast(value, kind)

    known: Tensor = run.tracer.stored_anew(Tensor((count,), kind, element))
    return known
