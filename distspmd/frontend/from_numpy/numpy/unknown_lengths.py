"""Functions whose results have lengths that data decide: places, and sets of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.choosing import BOOL, true_indices, true_places
from distspmd.frontend.from_numpy.arrays.lengths import give_room
from distspmd.frontend.from_numpy.arrays.lines import flat
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, index_expression, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.registry import METHODS, function
from distspmd.frontend.tensor_ir.statements import Index
from distspmd.frontend.tensor_ir.whole_numbers import Whole, add


def length_of_run(run: Context, count: object, what: str, instead: str) -> Whole:
    """A number that the run computes as a length: of at most as many elements as lists may have.

    The program ends with a ValueError where it is greater.

    Args:
        run: the interpreter.
        count: which is not negative.
        what: is as long, for messages.
        instead: what to write where the most is not known, or too little.
    """
    tracer = run.tracer
    if tracer.map.own:
        tracer.refuse(f"{what} has a length that the run decides, in a map; {instead}")
    stored = tracer.stored_anew(converted(tracer, tracer.tensor(count), INT64), "length")
    length = tracer.as_whole(stored)
    give_room(tracer, length, what, instead)
    return length


@function(np.nonzero, method="nonzero")
def _nonzero(run: Context, value: object) -> Any:
    tensor = run.tracer.tensor(value)
    if tensor.ndim == 0:
        run.tracer.refuse("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(x)")
    return true_indices(run.tracer, tensor)


@function(np.flatnonzero)
def _flatnonzero(run: Context, value: object) -> Any:
    return true_places(run.tracer, run.tracer.tensor(value))


@function(np.argwhere)
def _argwhere(run: Context, value: object) -> Any:
    return run.call(np.stack, [list(_nonzero(run, value)), 1], {})


@function(np.compress)
def _compress(run: Context, condition: object, value: object, axis: object = None) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is None:
        tensor, axis = flat(tracer, tensor), 0
    places = true_places(tracer, tracer.tensor(condition))
    return run.call(np.take, [tensor, places, axis], {})


METHODS["compress"] = lambda run, base, condition, axis=None: _compress(run, condition, base, axis)


@function(np.extract)
def _extract(run: Context, condition: object, value: object) -> Any:
    tracer = run.tracer
    lines = [flat(tracer, tracer.stored(tracer.tensor(v))) for v in (condition, value)]
    return _compress(run, lines[0], lines[1], 0)


@function(np.unique)
def _unique(
    run: Context,
    value: object,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: object = None,
    *,
    equal_nan: bool = True,
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is not None and tensor.ndim > 1:
        given = [tensor, axis, return_index, return_inverse, return_counts]
        return run.call(rarer_forms.unique_lines, given, {})
    line = tracer.stored(flat(tracer, tracer.stored(tensor)))
    (length,) = line.shape
    needs_order = return_index or return_inverse
    if needs_order:
        order = run.call(np.argsort, [line], {"kind": "stable"})
        ordered = tracer.stored(indexing.read(tracer, line, order))
    else:
        ordered = tracer.stored(run.call(np.sort, [line], {}))
    firsts = tracer.stored_anew(_firsts(tracer, ordered, equal_nan), "firsts")
    if not (needs_order or return_counts):
        return tracer.chosen(Tensor(ordered.shape, ordered.dtype, ordered.element, None, firsts))
    places = true_places(tracer, firsts)
    found = [indexing.read(tracer, ordered, places)]
    if return_index:
        found.append(indexing.read(tracer, order, places))
    if return_inverse:
        found.append(_inverse(run, tensor, order, firsts))
    if return_counts:
        ends = run.call(np.append, [indexing.read(tracer, places, slice(1, None)), length], {})
        found.append(combine(tracer, np.subtract, [ends, places]))
    return tuple(found) if len(found) > 1 else found[0]


def _firsts(tracer: Tracer, line: Tensor, equal_nan: bool) -> Tensor:
    """Whether elements of a line in order differ from those before them."""

    def element(index: tuple[Index, ...]) -> Expression:
        (k,) = index
        own = line.element(index)
        before = line.element((sympy.Max(0, add(k, -1)),))
        is_first = apply("equal", index_expression(k), number(0, INT64))
        found = apply("logical_or", is_first, apply("not_equal", own, before))
        if equal_nan and line.dtype.kind in "fc":
            both = (apply("not_equal", each, each) for each in (own, before))
            alike = apply(
                "logical_and", apply("logical_not", is_first), apply("logical_and", *both)
            )
            found = apply("logical_and", found, apply("logical_not", alike))
        return found

    return Tensor(line.shape, BOOL, element)


def _inverse(run: Context, tensor: Tensor, order: Tensor, firsts: Tensor) -> Tensor:
    tracer = run.tracer
    counted = run.call(np.cumsum, [converted(tracer, firsts, INT64)], {})
    rank = tracer.stored(combine(tracer, np.subtract, [counted, 1]))
    result = run.call(np.zeros, [order.shape], {"dtype": INT64})
    indexing.write(tracer, result, order, rank)
    result.is_index = True
    found: Tensor = run.call(np.reshape, [result, tuple(tensor.shape)], {})
    return found


@function(np.unique_values)
def _unique_values(run: Context, value: object) -> Any:
    return _unique(run, value, equal_nan=False)


def _of_set(run: Context, value: object) -> Any:
    return _unique(run, value)


@function(np.intersect1d)
def _intersect1d(
    run: Context, a: object, b: object, assume_unique: bool = False, **options: object
) -> Any:
    if options.get("return_indices"):
        return run.call(rarer_forms.common_places, [a, b], {})
    own = _of_set(run, a)
    return _compress(run, run.call(np.isin, [own, b], {}), own, 0)


@function(np.setdiff1d)
def _setdiff1d(run: Context, a: object, b: object, assume_unique: bool = False) -> Any:
    own = _of_set(run, a)
    return _compress(run, run.call(np.isin, [own, b], {"invert": True}), own, 0)


@function(np.union1d)
def _union1d(run: Context, a: object, b: object) -> Any:
    tracer = run.tracer
    lines = [flat(tracer, tracer.stored(tracer.tensor(v))) for v in (a, b)]
    return _of_set(run, run.call(np.concatenate, [lines], {}))


@function(np.setxor1d)
def _setxor1d(run: Context, a: object, b: object, assume_unique: bool = False) -> Any:
    parts = [_setdiff1d(run, a, b), _setdiff1d(run, b, a)]
    return run.call(np.sort, [run.call(np.concatenate, [parts], {})], {})


@function(np.trim_zeros)
def _trim_zeros(run: Context, value: object, trim: str = "fb", axis: object = None) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if tensor.ndim != 1:
        tracer.refuse("np.trim_zeros of an array of more than one dimension")
    (length,) = tensor.shape
    kept = run.call(np.not_equal, [tensor, 0], {})
    seen = []
    if "f" in trim.lower():
        seen.append(run.call(np.cumsum, [kept], {}))
    if "b" in trim.lower():
        back = indexing.read(tracer, kept, slice(None, None, -1))
        counts = tracer.stored(run.call(np.cumsum, [back], {}))
        seen.append(indexing.read(tracer, counts, slice(None, None, -1)))
    inside: Any = run.call(np.ones, [length], {"dtype": BOOL})
    for counts in seen:
        inside = combine(tracer, np.logical_and, [inside, run.call(np.greater, [counts, 0], {})])
    return _compress(run, tracer.stored_anew(inside, "kept"), tensor, 0)
