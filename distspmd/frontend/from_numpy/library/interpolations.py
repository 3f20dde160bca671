"""Interpolation between known places, as ``scipy.interpolate`` does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.splines import cubic_spline

_KINDS = ("linear", "nearest", "previous", "next", "cubic")
_DEGREES = {0: "previous", 1: "linear", 3: "cubic", "zero": "previous", "slinear": "linear"}


class Interp1d:
    """Values between those at places in order, along one dimension."""

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: Any = -1,
        copy: Any = True,
        bounds_error: Any = None,
        fill_value: Any = np.nan,
        assume_sorted: Any = False,
    ) -> None:
        kind = _DEGREES.get(kind, kind)
        if kind not in _KINDS:
            raise NotImplementedError(f"scipy.interpolate.interp1d of the kind {kind!r}")
        places, values = np.asarray(x) * 1.0, np.moveaxis(np.asarray(y) * 1.0, axis, -1)
        if not assume_sorted:
            order = np.argsort(places, kind="stable")
            places, values = places[order], values[..., order]
        self.x = places
        self.y = values
        self.kind = kind
        self.spline = cubic_spline(places, values, -1) if kind == "cubic" else None
        self.axis = axis
        self.extends = isinstance(fill_value, str)
        self.fill = np.nan if self.extends else fill_value
        free = self.extends or isinstance(fill_value, tuple) or fill_value == fill_value
        self.checks = not free if bounds_error is None else bounds_error

    def __call__(self, x: Any) -> Any:
        """The values at other places."""
        at = np.asarray(x) * 1.0
        if self.y.ndim > 1 and at.ndim != 1:
            raise NotImplementedError("interp1d of several lines at other than a vector of places")
        low, high = at < self.x[0], at > self.x[-1]
        if self.checks and np.any(low | high):
            raise ValueError("A value in x_new is outside of the interpolation range.")
        found = self.within(at)
        if not self.extends:
            below, above = self.fill if isinstance(self.fill, tuple) else (self.fill, self.fill)
            found = np.where(low, below, np.where(high, above, found))
        return found if self.y.ndim == 1 else np.moveaxis(found, -1, self.axis)

    def within(self, at: Any) -> Any:
        """The values at places, of which none is outside."""
        n = self.x.shape[0]
        if self.spline is not None:
            return self.spline(at)
        if self.kind == "nearest":
            middles = self.x[:-1] + (self.x[1:] - self.x[:-1]) / 2.0
            return self.y[..., np.clip(np.searchsorted(middles, at, "left"), 0, n - 1)]
        if self.kind == "previous":
            return self.y[..., np.clip(np.searchsorted(self.x, at, "right") - 1, 0, n - 1)]
        if self.kind == "next":
            return self.y[..., np.clip(np.searchsorted(self.x, at, "left"), 0, n - 1)]
        above = np.clip(np.searchsorted(self.x, at), 1, n - 1)
        one, other = self.x[above - 1], self.x[above]
        slope = (self.y[..., above] - self.y[..., above - 1]) / (other - one)
        return slope * (at - one) + self.y[..., above - 1]
