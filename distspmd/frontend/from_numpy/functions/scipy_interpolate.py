"""``scipy.interpolate``: interpolants between places of the run.

They are objects of programs also where all is known before, as they may be asked at places of the
run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distspmd.frontend.from_numpy.functions.registry import named
from distspmd.frontend.from_numpy.library import grids, splines
from distspmd.frontend.from_numpy.library.interpolations import Interp1d
from distspmd.frontend.from_numpy.syntax import objects


def _made_of(name: str, kind: type) -> None:
    def handler(run: Any, *given: Any, **options: Any) -> Any:
        return objects.make(run, kind, list(given), options)

    named("scipy.interpolate", name, always=True)(handler)


def _read_as(name: str, python: Callable[..., Any]) -> None:
    def handler(run: Any, *given: Any, **options: Any) -> Any:
        return run.call(python, list(given), options)

    named("scipy.interpolate", name, always=True)(handler)


_made_of("interp1d", Interp1d)
_made_of("RegularGridInterpolator", grids.OnGrid)
_made_of("RectBivariateSpline", grids.OnRectangle)
_read_as("interpn", grids.interpn)
_read_as("CubicSpline", splines.cubic_spline)
_read_as("PchipInterpolator", splines.pchip)
_read_as("pchip_interpolate", splines.pchip_at)
_read_as("Akima1DInterpolator", splines.akima)
_read_as("CubicHermiteSpline", splines.hermite)
_read_as("InterpolatedUnivariateSpline", splines.interpolated_spline)
_read_as("UnivariateSpline", splines.univariate_spline)
_read_as("make_interp_spline", splines.make_interp_spline)
