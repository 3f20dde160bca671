"""Rarer forms of NumPy's functions, written out in its commoner ones."""

from __future__ import annotations

from typing import Any

import numpy as np


def equal_with_nan(a1: object, a2: object) -> Any:
    """``np.array_equal`` where NaN equals NaN."""
    one, other = np.asarray(a1), np.asarray(a2)
    if one.shape != other.shape:
        return False
    return bool(np.all((one == other) | ((one != one) & (other != other))))


def equal_in_shape(a1: object, a2: object) -> Any:
    """``np.array_equal`` of arrays whose lengths the run decides."""
    one, other = np.asarray(a1), np.asarray(a2)
    if one.shape != other.shape:
        return False
    return bool(np.all(one == other))


def average_along(a: Any, axis: Any, weights: Any, returned: Any, keepdims: Any) -> Any:
    """``np.average`` with weights of some of the dimensions, in their order."""
    values, given = np.asarray(a), np.asarray(weights)
    places = [d % values.ndim for d in axis]
    order = sorted(range(len(places)), key=places.__getitem__)
    whole = np.transpose(given, order)
    shape = [values.shape[d] if d in places else 1 for d in range(values.ndim)]
    whole = np.broadcast_to(whole.reshape(shape), values.shape)
    return np.average(values, axis, whole, returned, keepdims=keepdims)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences, with values before and behind."""
    found = np.diff(np.ravel(ary))
    parts = [found]
    if to_begin is not None:
        parts = [np.ravel(to_begin).astype(found.dtype), *parts]
    if to_end is not None:
        parts = [*parts, np.ravel(to_end).astype(found.dtype)]
    return np.concatenate(parts)


def reduced(ufunc: Any, array: Any, axis: Any, dtype: Any, keepdims: object, initial: Any) -> Any:
    """A universal function over a dimension, one element after the other."""
    values = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype)
    lines = np.ravel(values) if axis is None else np.moveaxis(values, axis, 0)
    first = 0
    if initial is None:
        if lines.shape[0] == 0:
            raise ValueError("zero-size array to a reduction operation which has no identity")
        found = lines[0]
        first = 1
    else:
        found = np.full(lines.shape[1:], initial, values.dtype)
    found = np.array(found)
    for k in range(first, lines.shape[0]):
        found = ufunc(found, lines[k])
    if not keepdims:
        return found
    return found.reshape((1,) * values.ndim) if axis is None else np.expand_dims(found, axis)


def spread_where(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, is_root: bool
) -> Any:
    """The variance of elements that a mask chooses, or its root."""
    values = np.asarray(a)
    chosen = np.broadcast_to(where, values.shape)
    count = np.sum(chosen, axis=axis, keepdims=True)
    kind = values.dtype if dtype is None else np.dtype(dtype)
    if kind.kind in "biu":
        kind = np.dtype(np.float64)
    values = values.astype(kind)
    middle = (np.sum(values, axis=axis, keepdims=True, where=chosen) / count).astype(kind)
    apart = np.abs(values - middle) ** 2
    total = np.sum(apart, axis=axis, keepdims=keepdims, where=chosen)
    left = np.sum(chosen, axis=axis, keepdims=keepdims) - ddof
    found = (total / np.maximum(left, 0)).astype(apart.dtype)
    return np.sqrt(found) if is_root else found


def unwrapped(p: Any, discont: Any, axis: Any, period: Any) -> Any:
    """``np.unwrap`` of whole numbers with a whole period."""
    lines = np.moveaxis(np.asarray(p), axis, -1)
    steps = np.diff(lines)
    high, rest = period // 2, period % 2
    low = -high
    inside = (steps - low) % period + low
    if rest == 0:
        inside = np.where((inside == low) & (steps > 0), high, inside)
    least = period / 2 if discont is None else discont
    moved = np.where(np.abs(steps) < least, 0, inside - steps)
    found = lines.copy()
    found[..., 1:] = lines[..., 1:] + np.cumsum(moved, axis=-1)
    return np.moveaxis(found, -1, axis)


def weighted_covariance(
    m: Any,
    y: Any,
    rowvar: Any,
    bias: object,
    ddof: object,
    fweights: object,
    aweights: object,
    dtype: object,
) -> Any:
    """``np.cov`` with weights."""
    x = np.atleast_2d(m)
    x = x if rowvar or np.ndim(m) < 2 else x.T
    if y is not None:
        other = np.atleast_2d(y)
        x = np.concatenate((x, other if rowvar or np.ndim(y) < 2 else other.T))
    weights: Any = 1.0 if fweights is None else np.asarray(fweights) * 1.0
    if aweights is not None:
        weights = weights * np.asarray(aweights)
    own = (0 if bias else 1) if ddof is None else ddof
    total = np.sum(weights)
    middle = np.sum(x * weights, axis=1) / total
    if own == 0:
        scale = total
    elif aweights is None:
        scale = total - own
    else:
        scale = total - own * np.sum(weights * aweights) / total
    apart = x - middle[:, np.newaxis]
    found = apart @ np.conj(apart * weights).T / scale
    return np.squeeze(found if dtype is None else found.astype(dtype))


def common_places(one: Any, other: Any) -> Any:
    """``np.intersect1d`` with the places of what is common."""
    first, second = np.unique(one, return_index=True), np.unique(other, return_index=True)
    kept, kept_other = np.isin(first[0], second[0]), np.isin(second[0], first[0])
    return first[0][kept], first[1][kept], second[1][kept_other]


def apply_at(ufunc: Any, a: Any, indices: Any) -> Any:
    """``ufunc.at`` of a function of one argument, for places that differ."""
    a[indices] = ufunc(a[indices])


def logspaced(start: Any, stop: Any, num: Any, endpoint: Any, base: Any, axis: Any) -> Any:
    """``np.logspace`` of arrays."""
    shape = np.broadcast_shapes(np.shape(start), np.shape(stop), np.shape(base))
    low, high = np.broadcast_to(start, shape), np.broadcast_to(stop, shape)
    lines = np.power(
        np.broadcast_to(base, shape), np.linspace(low, high, num, endpoint=endpoint, axis=0)
    )
    return np.moveaxis(lines, 0, axis)


def padded(array: Any, widths: Any, mode: Any, lengths: Any, ends: Any) -> Any:
    """``np.pad`` with statistics of the ends of lines, or with ramps."""
    found = np.asarray(array)
    for d in list(range(found.ndim)):
        lines = np.moveaxis(found, d, 0)
        n = lines.shape[0]
        parts = [lines]
        for side in (0, 1):
            width = widths[d][side]
            if mode == "linear_ramp":
                edge = lines[0] if side == 0 else lines[n - 1]
                part = ramp(edge, ends[d][side], width, lines.dtype, side)
            else:
                length = n if lengths is None else min(lengths[d][side], n)
                some = lines[:length] if side == 0 else lines[n - length :]
                value = statistic(some, mode, lines.dtype)
                part = np.broadcast_to(value, (width, *lines.shape[1:]))
            if width > 0:
                parts = [part, *parts] if side == 0 else [*parts, part]
        found = np.moveaxis(np.concatenate(parts), 0, d)
    return found


def statistic(lines: Any, mode: Any, kind: Any) -> Any:
    """One of some lines, in the type of the array."""
    if mode == "maximum":
        return np.max(lines, axis=0)
    if mode == "minimum":
        return np.min(lines, axis=0)
    found = np.mean(lines, axis=0) if mode == "mean" else np.median(lines, axis=0)
    return (np.rint(found) if kind.kind in "iu" else found).astype(kind)


def ramp(edge: Any, end: Any, width: Any, kind: Any, side: Any) -> Any:
    """From a value outside to the edge."""
    steps = np.linspace(np.full(np.shape(edge), end), edge, width, endpoint=False, axis=0)
    return (steps if side == 0 else steps[::-1]).astype(kind)


def padded_by(function: Any, array: Any, widths: Any, keywords: Any) -> Any:
    """``np.pad`` with a function of each line, which it changes."""
    found = np.pad(np.asarray(array), widths)
    for d in list(range(found.ndim)):
        lines = np.moveaxis(found, d, -1)
        for place in np.ndindex(lines.shape[:-1]):
            line = lines[place].copy()
            function(line, widths[d], d, keywords)
            lines[place] = line
        found = np.moveaxis(lines, -1, d)
    return found


def linspaced(
    start: Any, stop: Any, num: Any, endpoint: Any, retstep: object, dtype: Any, axis: Any
) -> Any:
    """``np.linspace`` between arrays."""
    shape = np.broadcast_shapes(np.shape(start), np.shape(stop))
    low, high = np.broadcast_to(start, shape) * 1.0, np.broadcast_to(stop, shape) * 1.0
    parts = num - 1 if endpoint else num
    step = (high - low) / (parts if parts > 0 else 1)
    places = np.arange(num).reshape((num,) + (1,) * len(shape))
    found = low + places * step
    if endpoint:
        found = np.where((places == parts) & (parts > 0), high, found)
    if dtype is not None:
        found = (np.floor(found) if dtype.kind in "iu" else found).astype(dtype)
    found = np.moveaxis(found, 0, axis)
    return (found, step) if retstep else found


def unique_lines(
    ar: Any, axis: Any, return_index: object, return_inverse: object, return_counts: object
) -> Any:
    """``np.unique`` of lines along a dimension, in the order of their elements."""
    lines = np.moveaxis(np.asarray(ar), axis, 0)
    n = lines.shape[0]
    flat = lines.reshape(n, -1)
    order = np.lexsort(flat.T[::-1])
    ordered = flat[order]
    first = np.ones(n, dtype=bool)
    first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    places = np.nonzero(first)[0]
    kept = order[places]
    found = [np.moveaxis(lines[kept], 0, axis)]
    if return_index:
        found.append(kept)
    if return_inverse:
        inverse = np.zeros(n, dtype=np.int64)
        inverse[order] = np.cumsum(first) - 1
        found.append(inverse)
    if return_counts:
        found.append(np.append(places[1:], n) - places)
    return tuple(found) if len(found) > 1 else found[0]


def grid_of_slices(slices: object, sparse: Any) -> Any:
    """``np.mgrid[slices]``; of ``np.ogrid`` the lines alone."""
    every = slices if isinstance(slices, tuple) else (slices,)
    lines = []
    for one in every:
        start = 0 if one.start is None else one.start
        step = 1 if one.step is None else one.step
        if isinstance(step, complex):
            lines.append(np.linspace(start, one.stop, int(abs(step))))
        else:
            lines.append(np.arange(start, one.stop, step))
    if not isinstance(slices, tuple):
        return lines[0]
    kind = np.result_type(*lines)
    grids = np.meshgrid(*[line.astype(kind) for line in lines], indexing="ij", sparse=sparse)
    return tuple(grids) if sparse else np.stack(grids)


def place_of_complex(values: Any, axis: Any, keepdims: Any, most: Any) -> Any:
    """``np.argmax`` or ``np.argmin`` of complex numbers: by real parts, then by imaginary ones."""
    sign = 1.0 if most else -1.0
    real, imaginary = sign * np.real(values), sign * np.imag(values)
    top = np.max(real, axis=axis, keepdims=True)
    tied = np.where(real == top, imaginary, -np.inf)
    return np.argmax(np.where(np.isnan(values), np.inf, tied), axis=axis, keepdims=keepdims)


def numbers_of_python(values: Any) -> Any:
    """``values.tolist()`` of an array of one dimension."""
    return [value.item() for value in values]
