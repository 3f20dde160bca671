"""``scipy.optimize``: the functions that call MINPACK, by their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.equations import (
    Found,
    by_hybrid,
    by_marquardt,
    tuple_of,
)


def values_of(func: Any, args: Any) -> Any:
    """The function of a vector that gives a vector of floats."""

    def value(x: Any) -> Any:
        return np.ravel(np.asarray(func(x, *args), dtype=float))

    return value


def derivatives_of(fprime: Any, args: Any, turned: Any) -> Any:
    """The derivatives as a matrix of floats, one row for each value; None where none are given."""
    if fprime is None:
        return None

    def slopes(x: Any) -> Any:
        found = np.atleast_2d(np.asarray(fprime(x, *args), dtype=float))
        return found.T if turned else found

    return slopes


def fsolve(
    func: Any,
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = 0,
    col_deriv: Any = 0,
    xtol: Any = 1.49012e-8,
    maxfev: Any = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: Any = 100,
    diag: Any = None,
) -> Any:
    """``scipy.optimize.fsolve``, without SciPy's warnings."""
    if band is not None:
        raise NotImplementedError("scipy.optimize.fsolve with band=")
    more, start = tuple_of(args), np.ravel(np.array(x0) * 1.0)
    most = maxfev if maxfev else (200 if fprime is None else 100) * (start.shape[0] + 1)
    x, fx, calls, info = by_hybrid(
        values_of(func, more),
        start,
        derivatives_of(fprime, more, col_deriv),
        xtol,
        most,
        0.0 if epsfcn is None else epsfcn,
        factor,
        diag,
    )
    return (x, {"nfev": calls + 2, "fvec": fx}, info, "") if full_output else x


def root(
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = "hybr",
    jac: Any = None,
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """``scipy.optimize.root`` by the methods of MINPACK."""
    given = {} if options is None else options
    more, start = tuple_of(args), np.ravel(np.array(x0) * 1.0)
    if method not in ("hybr", "lm") or callback is not None or jac is True:
        raise NotImplementedError(
            "scipy.optimize.root but by 'hybr' or 'lm'; with callback=, jac=True"
        )
    slopes = derivatives_of(jac if callable(jac) else None, more, given.get("col_deriv", 0))
    exact = given.get("xtol", 1.49012e-8 if tol is None else tol)
    f, n = values_of(fun, more), start.shape[0]
    most = 200 if slopes is None else 100
    if method == "hybr":
        most = given.get("maxfev", most * (n + 1))
        eps = given.get("eps", None)
        eps = 0.0 if eps is None else eps
        x, fx, calls, info = by_hybrid(f, start, slopes, exact, most, eps, 100, None)
        return Found(x, fx, calls + 2, info, info == 1)
    most = given.get("maxiter", most * (n + 1))
    small = given.get("ftol", 1.49012e-8 if tol is None else tol)
    x, fx, _, calls, info = by_marquardt(
        f, start, slopes, small, exact, given.get("gtol", 0.0), most, 0.0, 100, None
    )
    return Found(x, fx, calls, info, info <= 4)


def covariance_of(slopes: Any) -> Any:
    """The inverse of the product of derivatives."""
    _, r = np.linalg.qr(slopes)
    back = np.linalg.inv(r)
    return back @ back.T


def leastsq(
    func: Any,
    x0: Any,
    args: Any = (),
    Dfun: Any = None,  # noqa: N803
    full_output: Any = False,
    col_deriv: Any = False,
    ftol: Any = 1.49012e-8,
    xtol: Any = 1.49012e-8,
    gtol: Any = 0.0,
    maxfev: Any = 0,
    epsfcn: Any = None,
    factor: Any = 100,
    diag: Any = None,
) -> Any:
    """``scipy.optimize.leastsq``, without SciPy's warnings."""
    more, start = tuple_of(args), np.ravel(np.array(x0) * 1.0)
    most = maxfev if maxfev else (200 if Dfun is None else 100) * (start.shape[0] + 1)
    x, fx, slopes, calls, info = by_marquardt(
        values_of(func, more),
        start,
        derivatives_of(Dfun, more, col_deriv),
        ftol,
        xtol,
        gtol,
        most,
        0.0 if epsfcn is None else epsfcn,
        factor,
        diag,
    )
    if not full_output:
        return x, info
    return x, covariance_of(slopes), {"nfev": calls, "fvec": fx}, "", info


def curve_fit(
    f: Any,
    xdata: Any,
    ydata: Any,
    p0: Any,
    sigma: Any = None,
    absolute_sigma: Any = False,
    check_finite: Any = None,
    bounds: Any = None,
    method: Any = None,
    jac: Any = None,
    full_output: Any = False,
    nan_policy: Any = None,
    maxfev: Any = 0,
    ftol: Any = 1.49012e-8,
    xtol: Any = 1.49012e-8,
) -> Any:
    """``scipy.optimize.curve_fit`` without bounds: the parameters and their covariances."""
    if bounds is not None or method not in (None, "lm") or full_output or callable(jac):
        raise NotImplementedError("scipy.optimize.curve_fit with bounds=, jac= or full_output=")
    places, wanted = np.asarray(xdata), np.asarray(ydata) * 1.0
    weights = 1.0 if sigma is None else 1.0 / np.asarray(sigma)
    if np.ndim(weights) > 1:
        raise NotImplementedError("scipy.optimize.curve_fit with a matrix as sigma=")

    def misses(params: Any) -> Any:
        return weights * (f(places, *[params[i] for i in range(n)]) - wanted)

    start = np.atleast_1d(np.asarray(p0) * 1.0)
    n = start.shape[0]
    x, cov, told, _, info = leastsq(
        misses, start, full_output=True, maxfev=maxfev, ftol=ftol, xtol=xtol
    )
    if info > 4:
        raise RuntimeError("Optimal parameters not found: the number of calls has reached maxfev.")
    if not absolute_sigma:
        cov = cov * (np.sum(told["fvec"] ** 2) / (wanted.size - n))
    return x, cov
