"""``scipy.optimize.minimize`` by BFGS and by simplexes, and by names of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.equations import tuple_of
from distspmd.frontend.from_numpy.library.quasi_newton import STEP, by_bfgs


class Least:
    """What ``scipy.optimize.OptimizeResult`` has of numbers."""

    def __init__(self, x: Any, fun: Any, nit: Any, nfev: Any, status: Any) -> None:
        self.x = x
        self.fun = fun
        self.nit = nit
        self.nfev = nfev
        self.status = status
        self.success = status == 0
        self.jac: Any = None
        self.hess_inv: Any = None

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def by_simplex(
    f: Any, x: Any, xatol: Any, fatol: Any, most: Any, calls_at_most: Any, adaptive: Any
) -> Any:
    """Nelder's and Mead's method: the minimum, its value, rounds, calls, and how it ended."""
    n = x.shape[0]
    wide, narrow, shrink = 2.0, 0.5, 0.5
    if adaptive:
        wide, narrow, shrink = 1 + 2 / n, 0.75 - 1 / (2 * n), 1 - 1 / n
    moved = np.where(x != 0, 1.05 * x, 0.00025)
    corners = np.concatenate((x[None], np.where(np.eye(n, dtype=bool), moved, x)))
    values = np.zeros(n + 1)
    for k in range(n + 1):
        values[k] = f(corners[k])
    order = np.argsort(values, kind="stable")
    corners, values = corners[order], values[order]
    rounds, calls = 1, n + 1
    going = not small(corners, values, xatol, fatol) and calls < calls_at_most and rounds < most
    while going:
        centre = np.sum(corners[:-1], axis=0) / n
        worst = corners[-1]
        turned = 2.0 * centre - worst
        there = f(turned)
        calls = calls + 1
        new, new_value = turned, there
        shrinks = False
        if there < values[0] or there >= values[-2]:
            part = -narrow if there >= values[-1] else narrow
            part = wide if there < values[0] else part
            other = (1.0 + part) * centre - part * worst
            value = f(other)
            calls = calls + 1
            better = is_better(value, there, values)
            shrinks = not better and there >= values[0]
            new = np.where(better, other, turned)
            new_value = np.where(better, value, there)[()]
        if shrinks:
            for k in range(1, n + 1):
                corners[k] = corners[0] + shrink * (corners[k] - corners[0])
                values[k] = f(corners[k])
            calls = calls + n
        else:
            corners[-1] = new
            values[-1] = new_value
        rounds = rounds + 1
        order = np.argsort(values, kind="stable")
        corners[...] = corners[order]
        values[...] = values[order]
        going = calls < calls_at_most and rounds < most
        going = going and not small(corners, values, xatol, fatol)
    status = 0
    if rounds >= most:
        status = 2
    if calls >= calls_at_most:
        status = 1
    return corners[0].copy(), values[0] * 1.0, rounds, calls, status


def is_better(value: Any, there: Any, values: Any) -> Any:
    """Whether the second place is better than what it is compared with: the first, or the worst."""
    first = np.where(there < values[0], value < there, value <= there)
    return np.where(there < values[-1], first, value < values[-1])[()]


def small(corners: Any, values: Any, xatol: Any, fatol: Any) -> Any:
    """Whether a simplex is small, and the values at its corners are alike."""
    far = np.max(np.abs(corners[1:] - corners[0]))
    return far <= xatol and np.max(np.abs(values[0] - values[1:])) <= fatol


def limits(n: Any, maxiter: Any, maxfun: Any) -> Any:
    """The most rounds and calls."""
    if maxiter is None and maxfun is None:
        return n * 200, n * 200
    many = 2**62
    return many if maxiter is None else maxiter, many if maxfun is None else maxfun


def minimize(
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """``scipy.optimize.minimize`` without bounds and constraints."""
    if bounds is not None or len(constraints) > 0:
        raise NotImplementedError("scipy.optimize.minimize with bounds= or constraints=")
    way = "bfgs" if method is None else method.lower()
    given = {} if options is None else options
    if way not in ("bfgs", "nelder-mead") or callback is not None:
        raise NotImplementedError(
            "scipy.optimize.minimize but by BFGS or Nelder-Mead; with callback="
        )
    more, start = tuple_of(args), np.ravel(np.array(x0) * 1.0)

    def value(x: Any) -> Any:
        found = fun(x, *more)
        return np.float64(found[0] if jac is True else found)

    def slopes(x: Any) -> Any:
        found = fun(x, *more)[1] if jac is True else jac(x, *more)
        return np.ravel(np.asarray(found, dtype=float))

    n = start.shape[0]
    if way == "nelder-mead":
        most, calls_at_most = limits(n, given.get("maxiter", None), given.get("maxfev", None))
        near, alike = given.get("xatol", tol), given.get("fatol", tol)
        near, alike = (1e-4 if t is None else t for t in (near, alike))
        adaptive = given.get("adaptive", False)
        by_corners = by_simplex(value, start, near, alike, most, calls_at_most, adaptive)
        simplest = Least(*by_corners)
        if given.get("disp", False):
            tell_simplex(simplest)
        return simplest
    flat = given.get("gtol", 1e-5 if tol is None else tol)
    most = given.get("maxiter", n * 200)
    derivatives = slopes if jac is True or callable(jac) else None
    x, least, grad, inverse, rounds, calls, status = by_bfgs(
        value, derivatives, start, flat, most, given.get("eps", STEP), 1e-4, 0.9
    )
    found = Least(x, least, rounds, calls * (n + 1) if derivatives is None else calls, status)
    found.jac = grad
    found.hess_inv = inverse
    if given.get("disp", False):
        tell_quasi_newton(found, calls)
    return found


def tell_simplex(found: Any) -> None:
    """What SciPy prints at the end of Nelder's and Mead's method; it warns where there is none."""
    if found.status == 0:
        print("Optimization terminated successfully.")
        print(f"         Current function value: {found.fun:f}")
        print(f"         Iterations: {found.nit:d}")
        print(f"         Function evaluations: {found.nfev:d}")


def tell_quasi_newton(found: Any, slopes: Any) -> None:
    """What SciPy prints at the end of BFGS; of what is amiss it warns."""
    if found.status == 0:
        print("Optimization terminated successfully.")
    print(f"         Current function value: {found.fun:f}")
    print(f"         Iterations: {found.nit:d}")
    print(f"         Function evaluations: {found.nfev:d}")
    print(f"         Gradient evaluations: {slopes:d}")


def fmin(
    func: Any,
    x0: Any,
    args: Any = (),
    xtol: Any = 1e-4,
    ftol: Any = 1e-4,
    maxiter: Any = None,
    maxfun: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
    initial_simplex: Any = None,
) -> Any:
    """``scipy.optimize.fmin``."""
    if retall or callback is not None or initial_simplex is not None:
        raise NotImplementedError("scipy.optimize.fmin with retall, callback or initial_simplex")
    given = {"xatol": xtol, "fatol": ftol, "maxiter": maxiter, "maxfev": maxfun, "disp": disp}
    found = minimize(func, x0, args, "Nelder-Mead", options=given)
    more = found.fun, found.nit, found.nfev, found.status
    return (found.x, *more) if full_output else found.x


def fmin_bfgs(
    f: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    gtol: Any = 1e-5,
    norm: Any = np.inf,
    epsilon: Any = STEP,
    maxiter: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
) -> Any:
    """``scipy.optimize.fmin_bfgs``."""
    if retall or full_output or callback is not None or norm != np.inf:
        raise NotImplementedError(
            "scipy.optimize.fmin_bfgs with retall, full_output, callback or norm"
        )
    given = {"gtol": gtol, "eps": epsilon, "disp": disp}
    if maxiter is not None:
        given["maxiter"] = maxiter
    return minimize(f, x0, args, "BFGS", fprime, options=given).x
