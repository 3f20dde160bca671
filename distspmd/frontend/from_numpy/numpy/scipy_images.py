"""Stencils of ``scipy.ndimage`` and ``scipy.signal``: kernels that are split with borders."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import ranks_of_neighbours
from distspmd.frontend.from_numpy.library.neighbourhoods import (
    differences,
    gaussian_weights,
    in_full,
    of_line,
    of_neighbours,
    part_of_full,
    weighted,
)
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.written_out import written_out_in

# -- neighbourhoods -------------------------------------------------------------------------------


@written_out_in("scipy.ndimage")
def _correlate(
    input: object,
    weights: object,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
) -> Any:
    return weighted(input, weights, output, mode, cval, origin)


@written_out_in("scipy.ndimage")
def _convolve(
    input: object,
    weights: object,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
) -> Any:
    turned = np.flip(np.asarray(weights))
    if origin != 0:
        raise NotImplementedError("scipy.ndimage.convolve with an origin: shift the result")
    return weighted(input, turned, output, mode, cval, origin, True)


@written_out_in("scipy.ndimage")
def _correlate1d(
    input: object,
    weights: object,
    axis: int = -1,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
) -> Any:
    return of_line(input, np.asarray(weights), axis, output, mode, cval, origin)


@written_out_in("scipy.ndimage")
def _convolve1d(
    input: object,
    weights: object,
    axis: int = -1,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
) -> Any:
    turned = np.flip(np.asarray(weights))
    if origin != 0:
        raise NotImplementedError("scipy.ndimage.convolve1d with an origin: shift the result")
    even = 1 - turned.shape[0] % 2
    return of_line(input, turned, axis, output, mode, cval, -even)


@written_out_in("scipy.ndimage")
def _gaussian_filter1d(
    input: object,
    sigma: object,
    axis: int = -1,
    order: int = 0,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    truncate: object = 4.0,
    *,
    radius: object = None,
) -> Any:
    return of_line(
        input, gaussian_weights(sigma, order, truncate, radius), axis, output, mode, cval, 0
    )


@written_out_in("scipy.ndimage")
def _gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: object = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
    axes: object = None,
) -> Any:
    if axes is not None or output is not None:
        raise NotImplementedError("scipy.ndimage.gaussian_filter with axes= or output=")
    found = np.asarray(input)
    for d in list(range(found.ndim)):
        own = sigma if np.ndim(sigma) == 0 else sigma[d]
        derivative = order if np.ndim(order) == 0 else order[d]
        border = mode if isinstance(mode, str) else mode[d]
        if own > 1e-15:
            weights = gaussian_weights(own, derivative, truncate, radius)
            found = of_line(found, weights, d, None, border, cval, 0)
    return found


@written_out_in("scipy.ndimage")
def _uniform_filter1d(
    input: Any,
    size: Any,
    axis: int = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    if np.asarray(input).dtype.kind not in "f":
        raise NotImplementedError("SciPy adds whole numbers up as such")
    return of_line(input, np.full(size, 1.0 / size), axis, output, mode, cval, origin)


@written_out_in("scipy.ndimage")
def _uniform_filter(
    input: Any,
    size: Any = 3,
    output: object = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    if np.asarray(input).dtype.kind not in "f":
        raise NotImplementedError("SciPy adds whole numbers up as such")
    found = np.asarray(input)
    for d in list(range(found.ndim)):
        own = size if np.ndim(size) == 0 else size[d]
        if own > 1:
            found = of_line(found, np.full(own, 1.0 / own), d, None, mode, cval, origin)
    return found


@written_out_in("scipy.ndimage")
def _laplace(
    input: Any, output: object = None, mode: object = "reflect", cval: object = 0.0
) -> Any:
    found = of_line(input, np.array([1.0, -2.0, 1.0]), 0, None, mode, cval, 0)
    for d in list(range(1, np.ndim(input))):
        found = found + of_line(input, np.array([1.0, -2.0, 1.0]), d, None, mode, cval, 0)
    return found


@written_out_in("scipy.ndimage")
def _sobel(
    input: object,
    axis: int = -1,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
) -> Any:
    return differences(input, axis, np.array([1.0, 2.0, 1.0]), mode, cval)


@written_out_in("scipy.ndimage")
def _prewitt(
    input: object,
    axis: int = -1,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
) -> Any:
    return differences(input, axis, np.array([1.0, 1.0, 1.0]), mode, cval)


@written_out_in("scipy.ndimage")
def _maximum_filter(
    input: object,
    size: object = None,
    footprint: object = None,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
) -> Any:
    return of_neighbours(np.maximum, input, size, footprint, mode, cval)


@written_out_in("scipy.ndimage")
def _minimum_filter(
    input: object,
    size: object = None,
    footprint: object = None,
    output: object = None,
    mode: object = "reflect",
    cval: object = 0.0,
    origin: object = 0,
) -> Any:
    return of_neighbours(np.minimum, input, size, footprint, mode, cval)


# -- signals --------------------------------------------------------------------------------------


@written_out_in("scipy.signal")
def _correlate2d(
    in1: object, in2: Any, mode: object = "full", boundary: object = "fill", fillvalue: object = 0
) -> Any:
    up, left = in2.shape[0] - 1, in2.shape[1] - 1
    found = in_full(in1, np.conj(np.asarray(in2)), boundary, fillvalue)
    return part_of_full(found, in1, in2, mode, (up - up // 2, left - left // 2))


@written_out_in("scipy.signal")
def _convolve2d(
    in1: object, in2: Any, mode: object = "full", boundary: object = "fill", fillvalue: object = 0
) -> Any:
    found = in_full(in1, np.asarray(in2)[::-1, ::-1], boundary, fillvalue)
    middle = ((in2.shape[0] - 1) // 2, (in2.shape[1] - 1) // 2)
    return part_of_full(found, in1, in2, mode, middle)


@function(ranks_of_neighbours.window_of)
def _window_of(run: Context, size: object, footprint: object, count: object) -> Any:
    if has_data([size, footprint]):
        run.tracer.refuse("a size or a footprint that is not known before the run")
    return ranks_of_neighbours.window_of(size, footprint, count)
