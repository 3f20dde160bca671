"""Counts of elements: histograms, and how often numbers come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.lines import cpp, flat
from distspmd.frontend.from_numpy.arrays.shapes import reshape
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import bin_widths
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.sorting import look_up
from distspmd.frontend.from_numpy.numpy.unknown_lengths import length_of_run
from distspmd.frontend.tensor_ir.whole_numbers import add, multiply, subtract

FLOAT64 = np.dtype(np.float64)
LARGEST_TABLE = 1025
"""So many edges that are known are written into the program; more are computed there."""


def count_into(
    run: Context, places: Tensor, length: object, weights: Tensor | None, dtype: Any
) -> Tensor:
    """How many elements have each place below a length, or the sum of their weights.

    Args:
        run: the interpreter.
        places: whole numbers; the length itself is the place of elements that do not count.
        length: of the result.
        weights: of the elements; each counts one without them.
        dtype: of the result.
    """
    tracer = run.tracer
    room = add(tracer.capacity(length), 1)
    base = run.call(np.zeros, [room], {"dtype": dtype})
    places.is_index = True
    one = tracer.tensor(np.dtype(dtype).type(1))
    value = one if weights is None else tracer.stored_anew(converted(tracer, weights, dtype))
    indexing.accumulate(tracer, base, places, value, "add")
    return indexing.read(tracer, base, slice(0, length))


def _vector(run: Context, value: object) -> Tensor:
    tensor: Tensor = run.tracer.tensor(value)
    return flat(run.tracer, tensor) if tensor.ndim else reshape(run.tracer, tensor, [1])


def _ends(run: Context, values: Tensor, limits: Any) -> tuple[Any, Any]:
    """The first and the last edge, of values or as they are given."""
    tracer = run.tracer
    if limits is not None:
        first, last = limits
        if not isinstance(first, Tensor) and not isinstance(last, Tensor):
            if first > last:
                tracer.refuse("max must be larger than min in range parameter.")
            return (first - 0.5, last + 0.5) if first == last else (first, last)
    else:
        if values.dtype.kind == "b":
            values = converted(tracer, values, np.uint8)
        first, last = (run.call(called, [values], {}) for called in (np.min, np.max))
    one, other = (tracer.stored(tracer.tensor(v)) for v in (first, last))
    is_point = combine(tracer, np.equal, [one, other])
    low = choose(tracer, is_point, combine(tracer, np.subtract, [one, 0.5]), one)
    high = choose(tracer, is_point, combine(tracer, np.add, [other, 0.5]), other)
    return low, high


def edges_of(
    run: Context,
    values: Tensor,
    bins: object,
    limits: Any,
    dtype: Any = None,
    weights: object = None,
) -> Tensor:
    """The edges of bins: those that are given, or of as many equal ones."""
    tracer = run.tracer
    if isinstance(bins, str):
        if weights is not None:
            tracer.refuse(
                "TypeError: Automated estimation of the number of bins is not supported for "
                "weighted data"
            )
        bins = _estimated(run, values, bins, limits)
    given = bins if isinstance(bins, Tensor | list | tuple | np.ndarray) else None
    if given is not None and tracer.tensor(given).ndim:
        edges: Tensor = tracer.tensor(given)
        if edges.ndim != 1:
            tracer.refuse("`bins` must be 1d, when an array")
        return edges
    count = tracer.as_whole(bins, "the number of bins")
    if isinstance(count, int) and count < 1:
        tracer.refuse("`bins` must be positive, when an integer")
    first, last = _ends(run, values, limits)
    parts = [p.dtype if isinstance(p, Tensor) else p for p in (first, last)]
    kind = np.result_type(*parts, values.dtype) if dtype is None else np.dtype(dtype)
    kind = kind if kind.kind in "fc" else np.result_type(kind, float)
    is_known = not isinstance(first, Tensor) and not isinstance(last, Tensor)
    if is_known and isinstance(count, int) and count < LARGEST_TABLE:
        found: Tensor = tracer.table(np.linspace(first, last, count + 1, dtype=kind))
        return found
    low, high = (
        tracer.stored(converted(tracer, v, kind))
        if isinstance(v, Tensor)
        else tracer.tensor(kind.type(v))
        for v in (first, last)
    )
    width = combine(tracer, np.subtract, [high, low])
    step = tracer.stored(combine(tracer, np.divide, [width, converted(tracer, count, kind)]))
    numbers = run.call(np.arange, [add(count, 1)], {})
    scaled = combine(tracer, np.multiply, [converted(tracer, numbers, kind), step])
    inside = combine(tracer, np.add, [scaled, low])
    is_last = combine(tracer, np.equal, [numbers, count])
    result: Tensor = tracer.stored_anew(choose(tracer, is_last, high, inside, kind), "edges")
    return result


RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "sturges")
"""Names of rules that estimate a number of bins; NumPy's "stone" tries many numbers."""


def _estimated(run: Context, values: Tensor, rule: str, limits: object) -> Any:
    """The number of bins that the run finds by a rule."""
    if rule not in RULES:
        run.tracer.refuse(f"np.histogram(bins={rule!r}): the rules are {', '.join(RULES)}")
    if values.dtype.kind == "b":
        values = converted(run.tracer, values, np.uint8)
    whole = run.tracer.stored(values)
    count = run.call(bin_widths.number_of_bins, [whole, rule, limits], {})
    if not isinstance(count, Tensor):
        return count
    what = f"np.histogram(bins={rule!r})"
    return length_of_run(run, count, what, "give a number of bins")


def _places(run: Context, values: Tensor, edges: Tensor) -> Tensor:
    """The bins of values; the number of bins for those in none."""
    tracer = run.tracer
    kind = np.result_type(values.dtype, edges.dtype)
    if kind.kind == "c":
        tracer.refuse("a histogram of complex numbers")
    own, whole = (t if t.dtype == kind else converted(tracer, t, kind) for t in (values, edges))
    code = f"*_result0 = distspmd::lines::bin(_whole0, {cpp(edges.shape[0])}, *_line0);"
    return look_up(run, "bins", own, [whole], INT64, code)


@function(np.histogram_bin_edges)
def _histogram_bin_edges(
    run: Context, a: object, bins: object = 10, range: object = None, weights: object = None
) -> Tensor:
    return edges_of(run, _vector(run, a), bins, range, weights=weights)


@function(np.histogram)
def _histogram(
    run: Context,
    a: object,
    bins: object = 10,
    range: object = None,
    density: object = None,
    weights: object = None,
) -> tuple[Tensor, Tensor]:
    values: Tensor = run.tracer.stored(_vector(run, a))
    if values.dtype.kind == "b":
        values = converted(run.tracer, values, np.uint8)
    edges = run.tracer.stored(edges_of(run, values, bins, range, weights=weights))
    weight = None if weights is None else _vector(run, weights)
    kind = INT64 if weight is None else weight.dtype
    count = subtract(edges.shape[0], 1)
    found = count_into(run, _places(run, values, edges), count, weight, kind)
    if density:
        found = _density(run, found, [edges])
    return found, edges


def _density(run: Context, counts: Tensor, edges: Sequence[Tensor]) -> Tensor:
    tracer = run.tracer
    found = counts
    for d, own in enumerate(edges):
        width = converted(tracer, run.call(np.diff, [own], {}), FLOAT64)
        shape = [1] * len(edges)
        shape[d] = width.shape[0]
        width = reshape(tracer, tracer.stored(width), shape)
        found = combine(tracer, np.divide, [found, width])
    total = tracer.stored(run.call(np.sum, [counts], {}))
    result: Tensor = tracer.stored_anew(combine(tracer, np.divide, [found, total]))
    return result


@function(np.histogramdd)
def _histogramdd(
    run: Context,
    sample: object,
    bins: object = 10,
    range: object = None,
    density: object = None,
    weights: object = None,
) -> tuple[Tensor, Any]:
    tracer = run.tracer
    if isinstance(sample, list | tuple):
        columns = [_vector(run, column) for column in sample]
    else:
        tensor = tracer.tensor(sample)
        if tensor.ndim != 2 or not isinstance(tensor.shape[1], int):
            tracer.refuse("np.histogramdd: points as rows of an array, of a known dimension")
        columns = [
            indexing.read(tracer, tensor, (slice(None), d))
            for d in np.arange(tensor.shape[1]).tolist()
        ]
    return _of_columns(run, columns, bins, range, density, weights)


def _of_columns(
    run: Context,
    columns: Sequence[Tensor],
    bins: Any,
    limits: Any,
    density: object,
    weights: object,
) -> tuple[Tensor, Any]:
    tracer = run.tracer
    rank = len(columns)
    each = list(bins) if isinstance(bins, list | tuple) else [bins] * rank
    if len(each) != rank:
        tracer.refuse("The dimension of bins must be equal to the dimension of the sample x.")
    ends = [None] * rank if limits is None else list(limits)
    columns = [tracer.stored(column) for column in columns]
    edges = []
    for column, own, end in zip(columns, each, ends, strict=True):
        edges.append(tracer.stored(edges_of(run, column, own, end, FLOAT64)))
    counts = [subtract(e.shape[0], 1) for e in edges]
    total: Any = 1
    for n in counts:
        total = multiply(total, n)
    place: Any = None
    inside: Any = None
    for column, own, n in zip(columns, edges, counts, strict=True):
        found = _places(run, column, own)
        fits = combine(tracer, np.less, [found, n])
        inside = fits if inside is None else combine(tracer, np.logical_and, [inside, fits])
        if place is None:
            place = found
        else:
            place = combine(tracer, np.add, [combine(tracer, np.multiply, [place, n]), found])
    places = tracer.stored_anew(choose(tracer, inside, place, tracer.tensor(total), INT64), "bins")
    weight = None if weights is None else _vector(run, weights)
    flat_counts = count_into(run, places, total, weight, FLOAT64)
    result: Tensor = reshape(tracer, tracer.stored_anew(flat_counts), counts)
    return (_density(run, result, edges) if density else result), tuple(edges)


@function(np.histogram2d)
def _histogram2d(
    run: Context,
    x: object,
    y: object,
    bins: object = 10,
    range: object = None,
    density: object = None,
    weights: object = None,
) -> Any:
    if isinstance(bins, Tensor | np.ndarray) or (isinstance(bins, list | tuple) and len(bins) != 2):
        edges = run.tracer.tensor(bins)
        bins = [edges, edges] if edges.ndim else bins
    columns = [_vector(run, x), _vector(run, y)]
    found, (first, second) = _of_columns(run, columns, bins, range, density, weights)
    return found, first, second


@function(np.bincount)
def _bincount(run: Context, x: object, weights: object = None, minlength: object = 0) -> Tensor:
    tracer = run.tracer
    values = tracer.tensor(x)
    if values.ndim != 1:
        tracer.refuse("np.bincount counts in an array of one dimension: use x.ravel()")
    if values.dtype.kind not in "biu" or values.dtype == np.uint64:
        tracer.refuse(f"np.bincount counts whole numbers, not elements of the type {values.dtype}")
    length = tracer.as_whole(minlength, "minlength")
    if isinstance(length, int) and isinstance(x, np.ndarray | list | tuple) and _is_static(x):
        length = max(length, int(np.max(x, initial=-1)) + 1)
    elif length == 0:
        length = _greatest_and_one(run, values)
    else:
        length = _length_of_counts(run, values, length)
    weight = None if weights is None else tracer.tensor(weights)
    kind = INT64 if weight is None else FLOAT64
    places = converted(tracer, values, INT64)
    return count_into(run, tracer.stored(places), length, weight, kind)


def _is_static(value: Any) -> bool:
    return isinstance(value, np.ndarray) or not any(isinstance(v, Tensor) for v in value)


def _greatest_and_one(run: Context, values: Tensor) -> Any:
    """The length that the elements decide; the program ends where one is negative."""
    tracer = run.tracer
    values = tracer.stored(converted(tracer, values, INT64))
    negative = run.call(np.any, [combine(tracer, np.less, [values, 0])], {})
    message = "np.bincount: 'list' argument must have no negative elements"
    end_if(run, negative, "ValueError", message)
    greatest = run.call(np.max, [values], {"initial": -1})
    count = combine(tracer, np.add, [greatest, 1])
    instead = "write minlength=k with a k that no element reaches, which is checked"
    return length_of_run(run, count, "np.bincount(x)", instead)


def _length_of_counts(run: Context, values: Tensor, length: object) -> Any:
    """The length that is given; the program ends where an element reaches it."""
    tracer = run.tracer
    most = {"b": 2, "u": 2 ** (8 * values.dtype.itemsize)}.get(values.dtype.kind)
    if isinstance(length, int) and most is not None and length >= most:
        return length
    is_below = combine(tracer, np.less, [values, 0])
    is_above = combine(tracer, np.greater_equal, [values, length])
    outside = run.call(np.any, [combine(tracer, np.logical_or, [is_below, is_above])], {})
    message = "np.bincount: an element is negative, or reaches minlength, which is to be the length"
    end_if(run, outside, "ValueError", message)
    return length
