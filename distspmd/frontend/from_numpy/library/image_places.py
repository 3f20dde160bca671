"""Images at places between their elements, as ``scipy.ndimage`` interpolates them."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np

_PADDED = 12
"""How many elements SciPy adds where the nearest one goes on."""


def filter_matrix(n: Any, order: Any, mode: Any) -> Any:
    """What turns values into coefficients of splines, of known extents: SciPy's own filter."""
    ndimage: Any = importlib.import_module("scipy.ndimage")
    return ndimage.spline_filter1d(np.eye(n), order, axis=0, mode=mode)


def coefficients(values: Any, order: Any, mode: Any) -> Any:
    """The coefficients of the spline through all elements."""
    found = values
    for d in list(range(values.ndim)):
        lines = np.moveaxis(found, d, 0)
        turned = np.tensordot(filter_matrix(lines.shape[0], order, mode), lines, axes=1)
        found = np.moveaxis(turned, 0, d)
    return found


def weights_of(part: Any, order: Any) -> Any:
    """The weights of the neighbours of a place, by its distance from the one below."""
    if order == 0:
        return [1.0]
    if order == 1:
        return [1.0 - part, part]
    rest = 1.0 - part
    return [
        rest**3 / 6.0,
        (part * part * (part - 2.0) * 3.0 + 4.0) / 6.0,
        (rest * rest * (rest - 2.0) * 3.0 + 4.0) / 6.0,
        part**3 / 6.0,
    ]


def values_at(
    image: Any, places: Any, order: Any, mode: Any, cval: Any, prefilter: Any = True
) -> Any:
    """The values at places, one array for each dimension."""
    values = np.asarray(image)
    if values.dtype.kind != "f" or order not in (0, 1, 3):
        raise NotImplementedError(
            "scipy.ndimage between elements but of floats, by order 0, 1 or 3"
        )
    if mode not in ("constant", "nearest", "mirror"):
        raise NotImplementedError(f"scipy.ndimage between elements with the mode {mode!r}")
    shape, shift = values.shape, 0
    table = values
    if order == 3 and prefilter:
        if mode == "nearest":
            table = np.pad(values, _PADDED, "edge")
            shift = _PADDED
        table = coefficients(table, order, "nearest" if mode == "nearest" else "mirror")
    misses = np.zeros(places[0].shape, dtype=bool)
    firsts, parts = [], []
    for n, at in zip(shape, places, strict=True):
        misses = misses | (at < 0) | (at > n - 1)
        if mode == "mirror" and n > 1:
            at = np.abs(at) % (2.0 * (n - 1))
            at = np.where(at > n - 1, 2.0 * (n - 1) - at, at)
        else:
            at = np.clip(at + shift, 0.0, n - 1.0 + 2 * shift)
        first = np.floor(at + 0.5) if order == 0 else np.floor(at)
        firsts.append(first.astype(int) - (1 if order == 3 else 0))
        parts.append(weights_of(at - first, order))
    found = np.zeros(places[0].shape)
    for corner in itertools.product((0, 1, 2, 3)[: order + 1], repeat=len(shape)):
        weight = 1.0
        neighbours = []
        for d, k in zip(range(len(shape)), corner, strict=True):
            weight = weight * parts[d][k]
            most = table.shape[d] - 1
            place = np.abs(firsts[d] + k)
            neighbours.append(np.where(place > most, np.maximum(2 * most - place, 0), place))
        found = found + weight * table[tuple(neighbours)]
    found = np.where(misses, cval, found) if mode == "constant" else found
    return found.astype(values.dtype)


def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: Any = 3,
    mode: Any = "constant",
    cval: Any = 0.0,
    prefilter: Any = True,
) -> Any:
    """``scipy.ndimage.map_coordinates``."""
    without_output(output)
    given = np.asarray(coordinates) * 1.0
    places = [given[d] for d in range(given.shape[0])]
    return values_at(input, places, order, mode, cval, prefilter)


def without_output(output: Any) -> None:
    """Refuse results that are written elsewhere."""
    if output is not None:
        raise NotImplementedError("scipy.ndimage with output=: assign the result")


def each_of(value: Any, count: Any) -> Any:
    """A value for each dimension."""
    return [value] * count if np.ndim(value) == 0 else [value[d] for d in range(count)]


def grid_of(lines: Any) -> Any:
    """The places of a grid, by those along each dimension."""
    return np.meshgrid(*lines, indexing="ij")


def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: Any = 3,
    mode: Any = "constant",
    cval: Any = 0.0,
    prefilter: Any = True,
    *,
    grid_mode: Any = False,
) -> Any:
    """``scipy.ndimage.zoom``."""
    without_output(output)
    if grid_mode:
        raise NotImplementedError("scipy.ndimage.zoom with grid_mode=True")
    values = np.asarray(input)
    lines = []
    for n, factor in zip(values.shape, each_of(zoom, values.ndim), strict=True):
        m = round(n * factor)
        lines.append(np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 1.0))
    return values_at(values, grid_of(lines), order, mode, cval, prefilter)


def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: Any = 3,
    mode: Any = "constant",
    cval: Any = 0.0,
    prefilter: Any = True,
) -> Any:
    """``scipy.ndimage.shift``."""
    without_output(output)
    values = np.asarray(input)
    far = each_of(shift, values.ndim)
    lines = [np.arange(n) - far[d] for d, n in enumerate(values.shape)]
    return values_at(values, grid_of(lines), order, mode, cval, prefilter)


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: Any = 3,
    mode: Any = "constant",
    cval: Any = 0.0,
    prefilter: Any = True,
) -> Any:
    """``scipy.ndimage.affine_transform`` by a matrix or a diagonal."""
    without_output(output)
    values, turned = np.asarray(input), np.asarray(matrix) * 1.0
    count = values.ndim
    if turned.ndim == 2 and turned.shape[1] == count + 1:
        offset = turned[:count, count]
        turned = turned[:count, :count]
    begin = each_of(offset, count)
    shape = values.shape if output_shape is None else output_shape
    grid = grid_of([np.arange(n) * 1.0 for n in shape])
    places = []
    for d in list(range(count)):
        at = begin[d] + 0.0 * grid[0]
        for e in list(range(count)):
            if turned.ndim == 2:
                at = at + turned[d, e] * grid[e]
            elif d == e:
                at = at + turned[d] * grid[e]
        places.append(at)
    return values_at(values, places, order, mode, cval, prefilter)


def turn(angle: Any) -> Any:
    """The cosine and the sine of degrees."""
    return np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))


def exact_turn(angle: Any) -> Any:
    """The same of a known angle, as SciPy has them."""
    special: Any = importlib.import_module("scipy.special")
    return special.cosdg(angle), special.sindg(angle)


def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: Any = True,
    output: Any = None,
    order: Any = 3,
    mode: Any = "constant",
    cval: Any = 0.0,
    prefilter: Any = True,
) -> Any:
    """``scipy.ndimage.rotate`` of an image of two dimensions."""
    values = np.asarray(input)
    if values.ndim != 2 or sorted(axes) != [0, 1]:
        raise NotImplementedError("scipy.ndimage.rotate but of two dimensions")
    c, s = exact_turn(angle)
    m, n = values.shape
    matrix = np.stack([np.stack([c, s]), np.stack([-s, c])])
    shape = (m, n)
    if reshape:
        rows, cols = [0.0, c * m, s * n, c * m + s * n], [0.0, -s * m, c * n, c * n - s * m]
        shape = (int(max(rows) - min(rows) + 0.5), int(max(cols) - min(cols) + 0.5))
    centre = [(shape[0] - 1) / 2, (shape[1] - 1) / 2]
    offset = [
        (m - 1) / 2 - (c * centre[0] + s * centre[1]),
        (n - 1) / 2 - (c * centre[1] - s * centre[0]),
    ]
    return affine_transform(values, matrix, offset, shape, output, order, mode, cval, prefilter)
