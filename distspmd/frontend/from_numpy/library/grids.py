"""Interpolation on grids of several dimensions, as ``scipy.interpolate`` does it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.splines import cubic_spline


class OnGrid:
    """``scipy.interpolate.RegularGridInterpolator``, linear or of the nearest places."""

    def __init__(
        self,
        points: Any,
        values: Any,
        method: Any = "linear",
        bounds_error: Any = True,
        fill_value: Any = np.nan,
    ) -> None:
        if method not in ("linear", "nearest"):
            raise NotImplementedError(f"scipy.interpolate.RegularGridInterpolator by {method!r}")
        self.grid = [np.asarray(p) * 1.0 for p in points]
        self.values = np.asarray(values) * 1.0
        self.method = method
        self.checks = bounds_error
        self.fill = fill_value
        if self.values.ndim != len(self.grid):
            raise NotImplementedError("RegularGridInterpolator of several values at each place")

    def __call__(self, xi: Any, method: Any = None) -> Any:
        """The values at other places."""
        way = self.method if method is None else method
        if isinstance(xi, tuple):
            places = [p * 1.0 for p in np.broadcast_arrays(*[np.asarray(x) for x in xi])]
        else:
            rows = np.asarray(xi) * 1.0
            rows = rows[None] if rows.ndim == 1 and len(self.grid) > 1 else rows
            rows = rows[:, None] if rows.ndim == 1 else rows
            places = [rows[..., d] for d in range(len(self.grid))]
        misses = np.zeros(places[0].shape, dtype=bool)
        for axis, at in zip(self.grid, places, strict=True):
            misses = misses | (at < axis[0]) | (at > axis[-1])
        if self.checks and np.any(misses):
            raise ValueError("One of the requested xi is out of bounds")
        found = self.within(places, way)
        if self.checks or self.fill is None:
            return found
        return np.where(misses, self.fill, found)

    def within(self, places: Any, way: Any) -> Any:
        """The values at places of the grid."""
        lower, parts = [], []
        for axis, at in zip(self.grid, places, strict=True):
            place = np.clip(np.searchsorted(axis, at) - 1, 0, axis.shape[0] - 2)
            lower.append(place)
            parts.append((at - axis[place]) / (axis[place + 1] - axis[place]))
        if way == "nearest":
            nearest = [np.where(t <= 0.5, i, i + 1) for i, t in zip(lower, parts, strict=True)]
            return self.values[tuple(nearest)]
        found = np.zeros(places[0].shape)
        for corner in itertools.product((0, 1), repeat=len(lower)):
            weight = 1.0
            for side, t in zip(corner, parts, strict=True):
                weight = weight * (t if side else 1 - t)
            at = tuple([i + side for side, i in zip(corner, lower, strict=True)])
            found = found + weight * self.values[at]
        return found


class OnRectangle:
    """``scipy.interpolate.RectBivariateSpline`` through all values, of degree 3."""

    def __init__(
        self, x: Any, y: Any, z: Any, bbox: Any = None, kx: Any = 3, ky: Any = 3, s: Any = 0
    ) -> None:
        if bbox is not None or kx != 3 or ky != 3 or s != 0:
            raise NotImplementedError("scipy.interpolate.RectBivariateSpline but of degree 3, s=0")
        self.x = np.asarray(x) * 1.0
        self.y = np.asarray(y) * 1.0
        self.z = np.asarray(z) * 1.0

    def __call__(self, x: Any, y: Any, dx: Any = 0, dy: Any = 0, grid: Any = True) -> Any:
        """The values at all pairs of places, or with ``grid=False`` at each pair."""
        one, other = np.asarray(x) * 1.0, np.asarray(y) * 1.0
        if not grid:
            return self.ev(one, other, dx, dy)
        one = np.clip(np.atleast_1d(one), self.x[0], self.x[-1])
        other = np.clip(np.atleast_1d(other), self.y[0], self.y[-1])
        lines = cubic_spline(self.x, self.z)(one, dx)
        return cubic_spline(self.y, lines.T)(other, dy).T

    def ev(self, xi: Any, yi: Any, dx: Any = 0, dy: Any = 0) -> Any:
        """The values at pairs of places."""
        one, other = np.broadcast_arrays(np.asarray(xi) * 1.0, np.asarray(yi) * 1.0)
        shape = one.shape
        one = np.clip(np.ravel(one), self.x[0], self.x[-1])
        other = np.clip(np.ravel(other), self.y[0], self.y[-1])
        along = cubic_spline(self.y, cubic_spline(self.x, self.z)(one, dx).T)
        count = np.arange(one.shape[0])
        place = np.clip(np.searchsorted(self.y, other, "right") - 1, 0, self.y.shape[0] - 2)
        part = other - self.y[place]
        found = np.zeros(one.shape[0])
        for k in range(4 - dy):
            factor = 1.0
            for m in range(dy):
                factor = factor * (3 - k - m)
            found = found * part + along.c[k, place, count] * factor
        return found.reshape(shape)


def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: Any = "linear",
    bounds_error: Any = True,
    fill_value: Any = np.nan,
) -> Any:
    """``scipy.interpolate.interpn``."""
    return OnGrid(points, values, method, bounds_error, fill_value)(xi)
