"""Polynomials between places that meet smoothly, as ``scipy.interpolate`` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.banded import solve_banded


class Piecewise:
    """Polynomials between places: ``c[-1 - k, i]`` is of the power ``k`` behind ``x[i]``."""

    def __init__(self, x: Any, c: Any, extrapolate: Any = True, axis: Any = 0) -> None:
        self.x = x
        self.c = c
        self.extrapolate = extrapolate
        self.axis = axis

    def __call__(self, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
        """The values at other places, or those of a derivative."""
        at = np.asarray(x) * 1.0
        outside = self.extrapolate if extrapolate is None else extrapolate
        if self.c.ndim > 2 and at.ndim != 1 and self.axis != 0:
            raise NotImplementedError("splines along another axis at other than a vector of places")
        if outside == "periodic":
            at = self.x[0] + (at - self.x[0]) % (self.x[-1] - self.x[0])
        place = np.clip(np.searchsorted(self.x, at, "right") - 1, 0, self.x.shape[0] - 2)
        parts = (at - self.x[place])[(...,) + (np.newaxis,) * (self.c.ndim - 2)]
        found = power_sum(self.c, place, parts, nu)
        if not outside:
            misses = (at < self.x[0]) | (at > self.x[-1])
            misses = misses[(...,) + (np.newaxis,) * (self.c.ndim - 2)]
            found = np.where(misses, np.nan, found)
        return np.moveaxis(found, 0, self.axis) if self.axis != 0 else found

    def derivative(self, nu: Any = 1) -> Any:
        """The derivative."""
        c = self.c
        for _ in range(nu):
            powers = np.arange(c.shape[0] - 1, 0, -1.0)
            c = c[:-1] * powers[(slice(None),) + (np.newaxis,) * (c.ndim - 1)]
        return Piecewise(self.x, c, self.extrapolate, self.axis)

    def antiderivative(self, nu: Any = 1) -> Any:
        """The antiderivative that is zero at the first place."""
        if nu != 1:
            raise NotImplementedError("antiderivative but of the first order: call it twice")
        many = (slice(None),) + (np.newaxis,) * (self.c.ndim - 1)
        c = self.c / np.arange(self.c.shape[0], 0, -1.0)[many]
        width = np.diff(self.x)[(slice(None),) + (np.newaxis,) * (self.c.ndim - 2)]
        whole = np.zeros(c.shape[1:])
        for k in range(c.shape[0]):
            whole = (whole + c[k]) * width
        first = np.concatenate((np.zeros_like(whole[:1]), np.cumsum(whole, axis=0)[:-1]))
        return Piecewise(self.x, np.concatenate((c, first[None])), self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two places."""
        whole = self.antiderivative()
        return whole(b) - whole(a)

    def integral(self, a: Any, b: Any) -> Any:
        """The same, by the name that FITPACK's splines have for it."""
        return self.integrate(a, b)


def power_sum(c: Any, place: Any, parts: Any, nu: Any) -> Any:
    """Of the polynomials at some places, the values or derivatives of an order."""
    order = c.shape[0]
    found = np.zeros(np.shape(parts)) + 0.0 * c[0, place]
    for k in range(order - nu):
        factor = 1.0
        for m in range(nu):
            factor = factor * (order - 1 - k - m)
        found = found * parts + c[k, place] * factor
    return found


def by_slopes(x: Any, y: Any, slopes: Any, extrapolate: Any = True, axis: Any = 0) -> Piecewise:
    """The cubics of given values and slopes."""
    width = np.diff(x)[(slice(None),) + (np.newaxis,) * (y.ndim - 1)]
    mean = np.diff(y, axis=0) / width
    bend = (slopes[:-1] + slopes[1:] - 2 * mean) / width
    first = (mean - slopes[:-1]) / width - bend
    return Piecewise(x, np.stack((bend / width, first, slopes[:-1], y[:-1])), extrapolate, axis)


def given_end(end: Any) -> Any:
    """What holds at an end: the order of a derivative, and its value."""
    if isinstance(end, str):
        return {"clamped": (1, 0.0), "natural": (2, 0.0), "not-a-knot": (0, 0.0)}[end]
    return end


def cubic(x: Any, y: Any, ends: Any) -> Any:
    """The slopes of the cubic spline through given values."""
    n = x.shape[0]
    many = (slice(None),) + (np.newaxis,) * (y.ndim - 1)
    dx = np.diff(x)
    width = dx[many]
    mean = np.diff(y, axis=0) / width
    (low, at_low), (high, at_high) = ends
    if n == 2 and low == 0:
        low, at_low = 1, mean[0]
    if n == 2 and high == 0:
        high, at_high = 1, mean[0]
    if n == 3 and low == 0 and high == 0:
        return by_parabola(y, mean, dx)
    bands = np.zeros((3, n)) + 0.0 * x[0]
    right = np.zeros(y.shape) + 0.0 * y
    bands[1, 1:-1] = 2 * (dx[:-1] + dx[1:])
    bands[0, 2:] = dx[:-1]
    bands[2, :-2] = dx[1:]
    right[1:-1] = 3 * (width[1:] * mean[:-1] + width[:-1] * mean[1:])
    if low == 0:
        far = x[2] - x[0]
        bands[1, 0] = dx[1]
        bands[0, 1] = far
        right[0] = ((dx[0] + 2 * far) * dx[1] * mean[0] + dx[0] ** 2 * mean[1]) / far
    else:
        bands[1, 0] = 1.0 if low == 1 else 2 * dx[0]
        bands[0, 1] = 0.0 if low == 1 else dx[0]
        right[0] = at_low if low == 1 else -0.5 * at_low * dx[0] ** 2 + 3 * (y[1] - y[0])
    if high == 0:
        far = x[-1] - x[-3]
        bands[1, -1] = dx[-2]
        bands[2, -2] = far
        right[-1] = (dx[-1] ** 2 * mean[-2] + (2 * far + dx[-1]) * dx[-2] * mean[-1]) / far
    else:
        bands[1, -1] = 1.0 if high == 1 else 2 * dx[-1]
        bands[2, -2] = 0.0 if high == 1 else dx[-1]
        right[-1] = at_high if high == 1 else 0.5 * at_high * dx[-1] ** 2 + 3 * (y[-1] - y[-2])
    return solve_banded((1, 1), bands, right)


def by_parabola(y: Any, mean: Any, dx: Any) -> Any:
    """The slopes of the parabola through three values."""
    bend = (mean[1] - mean[0]) / (dx[0] + dx[1])
    middle = mean[0] + bend * dx[0]
    return np.stack((mean[0] - bend * dx[0], middle, mean[1] + bend * dx[1]))


def cubic_spline(
    x: Any, y: Any, axis: Any = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> Piecewise:
    """``scipy.interpolate.CubicSpline``."""
    places, values = np.asarray(x) * 1.0, np.moveaxis(np.asarray(y) * 1.0, axis, 0)
    if isinstance(bc_type, str) and bc_type == "periodic":
        raise NotImplementedError("scipy.interpolate.CubicSpline with bc_type='periodic'")
    both = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    ends = given_end(both[0]), given_end(both[1])
    outside = True if extrapolate is None else extrapolate
    return by_slopes(places, values, cubic(places, values, ends), outside, axis)


def pchip(x: Any, y: Any, axis: Any = 0, extrapolate: Any = None) -> Piecewise:
    """``scipy.interpolate.PchipInterpolator``: cubics that are monotonic where the values are."""
    places, values = np.asarray(x) * 1.0, np.moveaxis(np.asarray(y) * 1.0, axis, 0)
    width = np.diff(places)[(slice(None),) + (np.newaxis,) * (values.ndim - 1)]
    mean = np.diff(values, axis=0) / width
    outside = True if extrapolate is None else extrapolate
    if places.shape[0] == 2:
        slopes = np.concatenate((mean, mean))
    else:
        one, two = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
        flat = (np.sign(mean[1:]) != np.sign(mean[:-1])) | (mean[1:] == 0) | (mean[:-1] == 0)
        safe = np.where(flat, 1.0, mean[1:]), np.where(flat, 1.0, mean[:-1])
        middle = np.where(flat, 0.0, (one + two) / (one / safe[1] + two / safe[0]))
        first = end_slope(width[0], width[1], mean[0], mean[1])
        last = end_slope(width[-1], width[-2], mean[-1], mean[-2])
        slopes = np.concatenate((first[None], middle, last[None]))
    return by_slopes(places, values, slopes, outside, axis)


def pchip_at(xi: Any, yi: Any, x: Any, der: Any = 0, axis: Any = 0) -> Any:
    """``scipy.interpolate.pchip_interpolate``."""
    return pchip(xi, yi, axis)(x, der)


def hermite(x: Any, y: Any, dydx: Any, axis: Any = 0, extrapolate: Any = None) -> Piecewise:
    """``scipy.interpolate.CubicHermiteSpline``."""
    values, slopes = np.asarray(y) * 1.0, np.asarray(dydx) * 1.0
    values, slopes = np.moveaxis(values, axis, 0), np.moveaxis(slopes, axis, 0)
    return by_slopes(np.asarray(x) * 1.0, values, slopes, extrapolate is not False, axis)


def end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end of monotonic cubics, from those of the two intervals beside it."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(slope) > 3.0 * np.abs(m0))
    return np.where(np.sign(slope) != np.sign(m0), 0.0, np.where(steep, 3.0 * m0, slope))


def akima(x: Any, y: Any, axis: Any = 0, method: Any = "akima", extrapolate: Any = None) -> Any:
    """``scipy.interpolate.Akima1DInterpolator``."""
    if method != "akima":
        raise NotImplementedError("scipy.interpolate.Akima1DInterpolator with another method")
    places, values = np.asarray(x) * 1.0, np.moveaxis(np.asarray(y) * 1.0, axis, 0)
    width = np.diff(places)[(slice(None),) + (np.newaxis,) * (values.ndim - 1)]
    m = np.diff(values, axis=0) / width
    before = 2 * m[0] - m[1], 3 * m[0] - 2 * m[1]
    behind = 2 * m[-1] - m[-2], 3 * m[-1] - 2 * m[-2]
    m = np.concatenate((np.stack((before[1], before[0])), m, np.stack(behind)))
    slopes = 0.5 * (m[3:] + m[:-3])
    change = np.abs(np.diff(m, axis=0))
    one, two = change[2:], change[:-2]
    both = one + two
    bends = both > 1e-9 * np.max(both)
    weighted = (one * m[1:-2] + two * m[2:-1]) / np.where(bends, both, 1.0)
    return by_slopes(places, values, np.where(bends, weighted, slopes), extrapolate or False, axis)


def spline_through(x: Any, y: Any, k: Any, s: Any, w: Any = None) -> Piecewise:
    """The spline of a degree through all values, as FITPACK finds it without smoothing."""
    if k == 1:
        places, values = np.asarray(x) * 1.0, np.asarray(y) * 1.0
        return Piecewise(places, np.stack((np.diff(values) / np.diff(places), values[:-1])))
    if k != 3 or s != 0 or w is not None:
        raise NotImplementedError(
            "splines of FITPACK but of degree 1 or 3, with s=0 and no weights"
        )
    return cubic_spline(x, y)


def interpolated_spline(
    x: Any, y: Any, w: Any = None, bbox: Any = None, k: Any = 3, ext: Any = 0
) -> Any:
    """``scipy.interpolate.InterpolatedUnivariateSpline``."""
    if ext not in (0, "extrapolate") or bbox is not None:
        raise NotImplementedError("splines of FITPACK with ext= or bbox=")
    return spline_through(x, y, k, 0, w)


def univariate_spline(
    x: Any, y: Any, w: Any = None, bbox: Any = None, k: Any = 3, s: Any = None, ext: Any = 0
) -> Any:
    """``scipy.interpolate.UnivariateSpline`` with ``s=0``."""
    if ext not in (0, "extrapolate") or bbox is not None:
        raise NotImplementedError("splines of FITPACK with ext= or bbox=")
    return spline_through(x, y, k, s, w)


def make_interp_spline(
    x: Any, y: Any, k: Any = 3, t: Any = None, bc_type: Any = None, axis: Any = 0
) -> Any:
    """``scipy.interpolate.make_interp_spline`` of degree 1 or 3."""
    if t is not None or k not in (1, 3):
        raise NotImplementedError("scipy.interpolate.make_interp_spline but with k=1 or k=3")
    if k == 1:
        return spline_through(x, y, 1, 0)
    return cubic_spline(x, y, axis, "not-a-knot" if bc_type is None else bc_type)
