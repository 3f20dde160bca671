"""``scipy.interpolate``: interpolants between places of the run."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.functions.registry import named, refused_by_name
from distspmd.frontend.from_numpy.library.interpolations import Interp1d
from distspmd.frontend.from_numpy.syntax import objects


@named("scipy.interpolate", "interp1d")
def _interp1d(run: Any, *given: Any, **options: Any) -> Any:
    return objects.make(run, Interp1d, list(given), options)


refused_by_name(
    "scipy.interpolate",
    *("CubicSpline", "PchipInterpolator", "Akima1DInterpolator", "UnivariateSpline"),
    *("InterpolatedUnivariateSpline", "splrep", "splev", "make_interp_spline", "BSpline"),
    instead="np.interp and interp1d are linear; a cubic needs scipy.linalg.solve_banded",
)
refused_by_name(
    "scipy.interpolate",
    *("griddata", "RegularGridInterpolator", "interpn", "RectBivariateSpline", "Rbf"),
    *("RBFInterpolator", "LinearNDInterpolator", "NearestNDInterpolator"),
    instead="write the weights of the neighbours, with arrays of indices",
)
