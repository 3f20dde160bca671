"""A function of the program of the neighbours of each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.neighbourhoods import with_border


def neighbours(values: Any, size: Any, footprint: Any, mode: object, cval: object) -> Any:
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


def without_more(output: object, origin: object, axes: object = None) -> None:
    """Refuse what is not covered."""
    if output is not None or origin != 0 or axes is not None:
        raise NotImplementedError("scipy.ndimage with output=, axes= or an origin")


def generic_filter(
    input: Any,
    function: Any,
    size: Any = None,
    footprint: Any = None,
    output: object = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: object = 0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: object = None,
) -> Any:
    """``scipy.ndimage.generic_filter``: a function of the neighbours of each element."""
    without_more(output, origin, axes)
    given = np.asarray(input)
    every = neighbours(given * 1.0, size, footprint, mode, cval)
    named = {} if extra_keywords is None else extra_keywords
    found = np.apply_along_axis(lambda line: function(line, *extra_arguments, **named), 0, every)
    return found.astype(given.dtype)
