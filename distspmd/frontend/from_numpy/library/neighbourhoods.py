"""Sums over the neighbours of each element, as ``scipy.ndimage`` computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

BORDERS: Any = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "constant": "constant",
    "grid-constant": "constant",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}
"""What NumPy calls the borders of SciPy."""


def with_border(values: np.ndarray[Any, Any], widths: Any, mode: Any, cval: Any) -> Any:
    """An array with a border of so many elements on each side."""
    if mode not in BORDERS:
        raise NotImplementedError(f"scipy.ndimage with the mode {mode!r}")
    if mode in ("constant", "grid-constant"):
        return np.pad(values, widths, "constant", constant_values=cval)
    return np.pad(values, widths, BORDERS[mode])


def is_exact(values: np.ndarray[Any, Any], weights: Any) -> bool:
    """Whether sums are those of SciPy, which cuts whole ones of weights that are not."""
    kinds = values.dtype.kind + weights.dtype.kind
    return "c" not in kinds and (values.dtype.kind == "f" or weights.dtype.kind != "f")


def of_line(
    values: Any, weights: Any, axis: Any, output: object, mode: Any, cval: Any, origin: Any
) -> Any:
    """Weighted sums along a dimension, in the type of the array."""
    given = np.asarray(values)
    if output is not None or not is_exact(given, weights):
        raise NotImplementedError("scipy.ndimage with output=, or of such types")
    n = weights.shape[0]
    before = n // 2 + origin
    lines = np.moveaxis(given, axis, -1)
    widths = [(0, 0)] * (given.ndim - 1) + [(before, n - 1 - before)]
    wide = with_border(lines + 0.0, widths, mode, cval)
    length = lines.shape[-1]
    found = weights[0] * wide[..., :length]
    for k in range(1, n):
        found = found + weights[k] * wide[..., k : k + length]
    return np.moveaxis(found, -1, axis).astype(given.dtype)


def weighted(
    values: object,
    weights: object,
    output: object,
    mode: object,
    cval: object,
    origin: object,
    turned: object = False,
) -> Any:
    """Weighted sums of the neighbours in all dimensions, in the type of the array."""
    if output is not None or origin != 0:
        raise NotImplementedError("scipy.ndimage with output= or an origin")
    given, kernel = np.asarray(values), np.asarray(weights)
    if not is_exact(given, kernel):
        raise NotImplementedError("scipy.ndimage of such types")
    befores = [n // 2 - (1 - n % 2 if turned else 0) for n in kernel.shape]
    widths = [(b, n - 1 - b) for b, n in zip(befores, kernel.shape, strict=True)]
    wide = with_border(given + 0.0, widths, mode, cval)
    found = np.zeros(given.shape)
    for place in np.ndindex(*kernel.shape):
        part = wide[tuple([slice(p, p + n) for p, n in zip(place, given.shape, strict=True)])]
        found = found + kernel[place] * part
    return found.astype(given.dtype)


def of_neighbours(
    combine: Any, values: Any, size: Any, footprint: object, mode: Any, cval: Any
) -> Any:
    """The greatest or the least of the neighbours."""
    if footprint is not None:
        raise NotImplementedError("scipy.ndimage with a footprint: give size=")
    found = np.asarray(values)
    for d in list(range(found.ndim)):
        n = size if np.ndim(size) == 0 else size[d]
        lines = np.moveaxis(found, d, -1)
        widths = [(0, 0)] * (found.ndim - 1) + [(n // 2, n - 1 - n // 2)]
        wide = with_border(lines, widths, mode, cval)
        length = lines.shape[-1]
        best = wide[..., :length]
        for k in range(1, n):
            best = combine(best, wide[..., k : k + length])
        found = np.moveaxis(best, -1, d)
    return found


def gaussian_weights(sigma: Any, order: object, truncate: Any, radius: Any) -> Any:
    """A Gaussian, or a derivative of it, on as many elements as matter."""
    reach = int(truncate * float(sigma) + 0.5) if radius is None else radius
    x = np.arange(-reach, reach + 1)
    square = sigma * sigma
    weights = np.exp(-0.5 / square * x**2)
    weights = weights / weights.sum()
    if order == 0:
        return weights
    if order == 1:
        return (x / square * weights)[::1]
    if order == 2:
        return (x * x / square - 1.0) / square * weights
    raise NotImplementedError("scipy.ndimage with a derivative above the second")


def in_full(values: Any, kernel: Any, boundary: Any, fillvalue: Any) -> Any:
    """Weighted sums wherever a kernel of two dimensions meets an array."""
    rows, columns = kernel.shape
    widths = [(rows - 1, rows - 1), (columns - 1, columns - 1)]
    borders = {"fill": "constant", "wrap": "wrap", "symm": "reflect"}
    wide = with_border(values, widths, borders[boundary], fillvalue)
    m, n = values.shape[0] + rows - 1, values.shape[1] + columns - 1
    found = np.zeros((m, n), np.result_type(values, kernel))
    for i, j in np.ndindex(rows, columns):
        found = found + kernel[i, j] * wide[i : i + m, j : j + n]
    return found


def part_of_full(found: Any, values: Any, kernel: Any, mode: object, middle: Any) -> Any:
    """The part of such sums that a mode of ``scipy.signal`` keeps."""
    m, n = values.shape
    if mode == "same":
        return found[middle[0] : middle[0] + m, middle[1] : middle[1] + n]
    if mode == "valid":
        return found[kernel.shape[0] - 1 : m, kernel.shape[1] - 1 : n]
    return found


def differences(input: Any, axis: int, smoothing: object, mode: object, cval: object) -> Any:
    """Central differences along one dimension, smoothed along all others."""
    found = of_line(input, np.array([-1.0, 0.0, 1.0]), axis, None, mode, cval, 0)
    for d in list(range(np.ndim(input))):
        if d != axis % np.ndim(input):
            found = of_line(found, smoothing, d, None, mode, cval, 0)
    return found
