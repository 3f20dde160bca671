"""Splines of our own, beside those of ``scipy.interpolate``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.frontend.from_numpy.library import grids, splines

interpolate = pytest.importorskip("scipy.interpolate")
RNG = np.random.default_rng(3)
X, Y, T = np.sort(RNG.random(9) * 5), RNG.normal(size=9), RNG.normal(size=(9, 3))
AT = np.linspace(X[0] - 0.5, X[-1] + 0.5, 31)


def assert_same(found: Any, wanted: Any) -> None:
    assert np.shape(found) == np.shape(wanted)
    assert np.allclose(found, wanted, rtol=1e-11, atol=1e-11, equal_nan=True)


@pytest.mark.parametrize(
    ("ends", "y"),
    [
        *((ends, y) for ends in ("not-a-knot", "natural", "clamped") for y in (Y, T)),
        (((1, 0.5), (2, -1.0)), Y),
    ],
)
def test_cubics_are_those_of_scipy(ends: Any, y: Any) -> None:
    found = splines.cubic_spline(X, y, bc_type=ends)
    wanted = interpolate.CubicSpline(X, y, bc_type=ends)
    assert_same(found(AT), wanted(AT))
    assert_same(found(AT, 1), wanted(AT, 1))
    assert_same(found.derivative(2)(AT), wanted.derivative(2)(AT))
    assert_same(found.integrate(X[0] + 0.3, 4.0), wanted.integrate(X[0] + 0.3, 4.0))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_places_are_enough(n: int) -> None:
    assert_same(splines.cubic_spline(X[:n], Y[:n])(AT), interpolate.CubicSpline(X[:n], Y[:n])(AT))


@pytest.mark.parametrize("y", [Y, np.floor(Y), np.floor(T)], ids=["all differ", "flat", "several"])
def test_local_cubics_are_those_of_scipy(y: Any) -> None:
    assert_same(splines.pchip(X, y)(AT), interpolate.PchipInterpolator(X, y)(AT))
    assert_same(splines.akima(X, y)(AT), interpolate.Akima1DInterpolator(X, y)(AT))


def test_splines_of_fitpack_are_cubics() -> None:
    tck = interpolate.splrep(X, Y)
    assert_same(splines.univariate_spline(X, Y, s=0)(AT, 1), interpolate.splev(AT, tck, 1))
    assert_same(splines.make_interp_spline(X, T)(AT), interpolate.make_interp_spline(X, T)(AT))


def test_splines_of_rectangles_are_those_of_scipy() -> None:
    z = RNG.normal(size=(5, 9))
    found, wanted = (
        f(np.arange(5.0), X, z) for f in (grids.OnRectangle, interpolate.RectBivariateSpline)
    )
    one, other = np.linspace(-0.5, 4.5, 31), AT
    assert_same(found(one, other), wanted(one, other))
    assert_same(found.ev(one, other, dy=1), wanted.ev(one, other, dy=1))
