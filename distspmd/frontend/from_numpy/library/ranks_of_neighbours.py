"""What is computed of the neighbours of each element: ranks, any function, and shapes of masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.neighbourhoods import with_border


def neighbours(values: Any, size: Any, footprint: Any, mode: Any, cval: Any) -> Any:
    """All neighbours, the first dimension of which numbers them."""
    extents, places = window_of(size, footprint, values.ndim)
    widths = [(n // 2, n - 1 - n // 2) for n in extents]
    wide = with_border(values, widths, mode, cval)
    parts = []
    for place in places:
        ends = zip(place, values.shape, strict=True)
        parts.append(wide[tuple([slice(p, p + n) for p, n in ends])])
    return np.stack(parts)


def window_of(size: Any, footprint: Any, count: Any) -> Any:
    """The extents of a known window, and which places in it are taken."""
    if footprint is None:
        inside = np.ones((size,) * count if np.ndim(size) == 0 else tuple(size), dtype=bool)
    else:
        inside = np.asarray(footprint).astype(bool)
    return inside.shape, [tuple(int(n) for n in place) for place in np.argwhere(inside)]


def without_more(output: Any, origin: Any, axes: Any = None) -> None:
    """Refuse what is not covered."""
    if output is not None or origin != 0 or axes is not None:
        raise NotImplementedError("scipy.ndimage with output=, axes= or an origin")


def rank_filter(
    input: Any,
    rank: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """``scipy.ndimage.rank_filter``."""
    without_more(output, origin, axes)
    return np.sort(neighbours(np.asarray(input), size, footprint, mode, cval), axis=0)[rank]


def median_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """``scipy.ndimage.median_filter``."""
    without_more(output, origin, axes)
    every = neighbours(np.asarray(input), size, footprint, mode, cval)
    return np.sort(every, axis=0)[every.shape[0] // 2]


def percentile_filter(
    input: Any,
    percentile: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """``scipy.ndimage.percentile_filter``."""
    without_more(output, origin, axes)
    every = neighbours(np.asarray(input), size, footprint, mode, cval)
    count = every.shape[0]
    part = percentile + 100.0 if percentile < 0 else percentile
    rank = count - 1 if part == 100.0 else int(float(count) * part / 100.0)
    return np.sort(every, axis=0)[rank]


def generic_filter(
    input: Any,
    function: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """``scipy.ndimage.generic_filter``: a function of the neighbours of each element."""
    without_more(output, origin, axes)
    given = np.asarray(input)
    every = neighbours(given * 1.0, size, footprint, mode, cval)
    named = {} if extra_keywords is None else extra_keywords
    found = np.apply_along_axis(lambda line: function(line, *extra_arguments, **named), 0, every)
    return found.astype(given.dtype)


def structure_of(structure: Any, count: Any, turned: Any) -> Any:
    """A known structure: an element and those beside it, where none is given."""
    if structure is None:
        far = sum(np.abs(places - 1) for places in np.indices((3,) * count))
        return far <= 1
    inside = np.asarray(structure).astype(bool)
    if any(n % 2 == 0 for n in inside.shape):
        raise NotImplementedError("scipy.ndimage with a structure of an even extent")
    return np.flip(inside) if turned else inside


def eroded(mask: Any, structure: Any, iterations: Any, border: Any, turned: Any) -> Any:
    """A mask where all neighbours are true; turned, where any of them is."""
    found = np.asarray(mask) != 0
    inside = structure_of(structure, found.ndim, turned)
    if iterations < 1:
        raise NotImplementedError("scipy.ndimage with iterations below 1")
    for _ in range(iterations):
        every = neighbours(found, None, inside, "constant", bool(border))
        found = np.any(every, axis=0) if turned else np.all(every, axis=0)
    return found


def binary_erosion(
    input: Any,
    structure: Any = None,
    iterations: Any = 1,
    mask: Any = None,
    output: Any = None,
    border_value: Any = 0,
    origin: Any = 0,
    brute_force: Any = False,
    *,
    axes: Any = None,
) -> Any:
    """``scipy.ndimage.binary_erosion``."""
    without_more(output if mask is None else mask, origin, axes)
    return eroded(input, structure, iterations, border_value, False)


def binary_dilation(
    input: Any,
    structure: Any = None,
    iterations: Any = 1,
    mask: Any = None,
    output: Any = None,
    border_value: Any = 0,
    origin: Any = 0,
    brute_force: Any = False,
    *,
    axes: Any = None,
) -> Any:
    """``scipy.ndimage.binary_dilation``."""
    without_more(output if mask is None else mask, origin, axes)
    return eroded(input, structure, iterations, border_value, True)


def binary_opening(input: Any, structure: Any = None, iterations: Any = 1) -> Any:
    """``scipy.ndimage.binary_opening``."""
    found = eroded(input, structure, iterations, 0, False)
    return eroded(found, structure, iterations, 0, True)


def binary_closing(input: Any, structure: Any = None, iterations: Any = 1) -> Any:
    """``scipy.ndimage.binary_closing``."""
    found = eroded(input, structure, iterations, 0, True)
    return eroded(found, structure, iterations, 0, False)


def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """``scipy.ndimage.center_of_mass`` of the whole array."""
    if labels is not None or index is not None:
        raise NotImplementedError("scipy.ndimage.center_of_mass with labels")
    values = np.asarray(input)
    whole = np.sum(values)
    found = []
    for d in list(range(values.ndim)):
        places = np.arange(values.shape[d]).reshape(
            [-1 if e == d else 1 for e in range(values.ndim)]
        )
        found.append(np.sum(values * places) / whole)
    return tuple(found)
