"""Minima of functions of one number, by the steps of ``scipy.optimize``."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.roots import tuple_of

_GOLD = 1.618034
_INNER = 0.3819660
_OUTER = 0.61803399


class Minimum:
    """What ``scipy.optimize.OptimizeResult`` has of numbers."""

    def __init__(self, x: Any, fun: Any, nit: Any, nfev: Any, success: Any) -> None:
        self.x = x
        self.fun = fun
        self.nit = nit
        self.nfev = nfev
        self.success = success

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def vertex(xa: Any, xb: Any, xc: Any, fa: Any, fb: Any, fc: Any, grow_limit: Any) -> Any:
    """The next place, and its kind: inside, at the limit, between both, or by the golden ratio."""
    tmp1 = (xb - xa) * (fb - fc)
    tmp2 = (xb - xc) * (fb - fa)
    apart = tmp2 - tmp1
    denom = 2.0 * np.where(np.abs(apart) < 1e-21, 1e-21, apart)
    w = xb - ((xb - xc) * tmp2 - (xb - xa) * tmp1) / denom
    limit = xb + grow_limit * (xc - xb)
    if (w - xc) * (xb - w) > 0.0:
        kind = 0
    elif (w - limit) * (limit - xc) >= 0.0:
        w = limit
        kind = 1
    elif (w - limit) * (xc - w) > 0.0:
        kind = 2
    else:
        w = xc + _GOLD * (xc - xb)
        kind = 3
    return w, kind


def bracket(
    func: Any,
    xa: Any = 0.0,
    xb: Any = 1.0,
    args: Any = (),
    grow_limit: Any = 110.0,
    maxiter: Any = 1000,
) -> Any:
    """Three places of which the function is least in the middle one, and its values there."""
    args = tuple_of(args)
    xa = np.float64(xa)
    xb = np.float64(xb)
    fa = np.float64(func(xa, *args))
    fb = np.float64(func(xb, *args))
    if fa < fb:
        xa, xb, fa, fb = xb, xa, fb, fa
    xc = xb + _GOLD * (xb - xa)
    fc = np.float64(func(xc, *args))
    calls = 3
    steps = 0
    found = False
    while not found and fc < fb:
        if steps > maxiter:
            raise RuntimeError("No valid bracket was found before the iteration limit was reached.")
        steps += 1
        w, kind = vertex(xa, xb, xc, fa, fb, fc, grow_limit)
        fw = np.float64(func(w, *args))
        calls += 1
        if kind == 0 and fw < fc:
            xa, fa, xb, fb = xb, fb, w, fw
            found = True
        elif kind == 0 and fw > fb:
            xc, fc = w, fw
            found = True
        else:
            again = kind == 0
            if kind == 2 and fw < fc:
                xb, fb, xc, fc = xc, fc, w, fw
                again = True
            if again:
                w = xc + _GOLD * (xc - xb)
                fw = np.float64(func(w, *args))
                calls += 1
            xa, fa, xb, fb, xc, fc = xb, fb, xc, fc, w, fw
    least = (fb < fc and fb <= fa) or (fb < fa and fb <= fc)
    between = (xa < xb and xb < xc) or (xc < xb and xb < xa)
    if not (least and between and np.isfinite(xa) and np.isfinite(xb) and np.isfinite(xc)):
        raise RuntimeError("The algorithm terminated without finding a valid bracket.")
    return xa, xb, xc, fa, fb, fc, calls


def bracketed(func: Any, brack: Any, args: Any) -> Any:
    """Three places around a minimum, from what the caller knows."""
    if brack is None:
        return bracket(func, 0.0, 1.0, args)
    if len(brack) == 2:
        return bracket(func, brack[0], brack[1], args)
    xa, xb, xc = brack
    if xa > xc:
        xc, xa = xa, xc
    if not (xa < xb and xb < xc):
        raise ValueError("Bracketing values (xa, xb, xc) do not fulfill (xa < xb) and (xb < xc)")
    fa, fb, fc = func(xa, *args), func(xb, *args), func(xc, *args)
    if not (fb < fa and fb < fc):
        raise ValueError("Bracketing values do not fulfill f(xb) < f(xa) and f(xb) < f(xc)")
    return np.float64(xa), np.float64(xb), np.float64(xc), fa, fb, fc, 3


def parabola(x: Any, w: Any, v: Any, fx: Any, fw: Any, fv: Any) -> Any:
    """Numerator and denominator of the step to the vertex of a parabola through three places."""
    r = (x - w) * (fx - fv)
    q = (x - v) * (fx - fw)
    p = (x - v) * q - (x - w) * r
    q = 2.0 * (q - r)
    return np.where(q > 0.0, -p, p)[()], np.abs(q)


def by_brent(func: Any, brack: Any, args: Any, tol: Any, maxiter: Any) -> Any:
    """Brent's method: the place, the value, iterations, calls."""
    args = tuple_of(args)
    xa, xb, xc, _fa, fb, _fc, calls = bracketed(func, brack, args)
    x, w, v = xb, xb, xb
    fx, fw, fv = fb, fb, fb
    a, b = np.minimum(xa, xc), np.maximum(xa, xc)
    far = np.float64(0.0)
    step = np.float64(0.0)
    steps = 0
    done = False
    while not done and steps < maxiter:
        tol1 = tol * np.abs(x) + 1.0e-11
        tol2 = 2.0 * tol1
        middle = 0.5 * (a + b)
        if np.abs(x - middle) < tol2 - 0.5 * (b - a):
            done = True
        else:
            steps += 1
            calls += 1
            step, far = brent_step(x, w, v, fx, fw, fv, a, b, step, far, middle, tol1)
            u = x + np.where(np.abs(step) < tol1, np.where(step >= 0, tol1, -tol1), step)[()]
            fu = func(u, *args)
            if fu > fx:
                if u < x:
                    a = u
                else:
                    b = u
                if fu <= fw or w == x:
                    v, fv, w, fw = w, fw, u, fu
                elif fu <= fv or v in (x, w):
                    v, fv = u, fu
            else:
                if u >= x:
                    a = x
                else:
                    b = x
                v, fv, w, fw, x, fx = w, fw, x, fx, u, fu
    return x, fx, steps, calls


def brent_step(
    x: Any,
    w: Any,
    v: Any,
    fx: Any,
    fw: Any,
    fv: Any,
    a: Any,
    b: Any,
    step: Any,
    far: Any,
    middle: Any,
    tol1: Any,
) -> Any:
    """The next step, and the one before the last: by a parabola where that is useful."""
    outwards = np.where(x >= middle, a - x, b - x)[()]
    p, q = parabola(x, w, v, fx, fw, fv)
    fits = (p > q * (a - x)) & (p < q * (b - x)) & (np.abs(p) < np.abs(0.5 * q * far))
    if np.abs(far) > tol1 and fits:
        far = step
        step = p / q
        if x + step - a < 2.0 * tol1 or b - (x + step) < 2.0 * tol1:
            step = np.where(middle - x >= 0, tol1, -tol1)[()]
    else:
        far = outwards
        step = _INNER * outwards
    return step, far


def by_golden_section(func: Any, brack: Any, args: Any, tol: Any, maxiter: Any) -> Any:
    """Golden sections: the place, the value, iterations, calls."""
    args = tuple_of(args)
    xa, xb, xc, _fa, _fb, _fc, calls = bracketed(func, brack, args)
    rest = 1.0 - _OUTER
    x0, x3 = xa, xc
    if np.abs(xc - xb) > np.abs(xb - xa):
        x1 = xb
        x2 = xb + rest * (xc - xb)
    else:
        x2 = xb
        x1 = xb - rest * (xb - xa)
    f1, f2 = func(x1, *args), func(x2, *args)
    calls += 2
    steps = 0
    while steps < maxiter and np.abs(x3 - x0) > tol * (np.abs(x1) + np.abs(x2)):
        if f2 < f1:
            x0, x1 = x1, x2
            x2 = _OUTER * x1 + rest * x3
            f1 = f2
            f2 = func(x2, *args)
        else:
            x3, x2 = x2, x1
            x1 = _OUTER * x2 + rest * x0
            f2 = f1
            f1 = func(x1, *args)
        calls += 1
        steps += 1
    return np.where(f1 < f2, x1, x2)[()], np.minimum(f1, f2), steps, calls


def by_bounds(func: Any, bounds: Any, args: Any, xatol: Any, maxiter: Any) -> Any:
    """Brent's method between bounds: the place, the value, calls, and whether these sufficed."""
    args = tuple_of(args)
    a, b = np.float64(bounds[0]), np.float64(bounds[1])
    if a > b:
        raise ValueError("The lower bound exceeds the upper bound.")
    root = np.sqrt(2.2e-16)
    golden = 0.5 * (3.0 - np.sqrt(5.0))
    x = a + golden * (b - a)
    w, v = x, x
    step, far = np.float64(0.0), np.float64(0.0)
    fx = func(x, *args)
    fw, fv = fx, fx
    calls = 1
    middle = 0.5 * (a + b)
    tol1 = root * np.abs(x) + xatol / 3.0
    enough = True
    while enough and np.abs(x - middle) > 2.0 * tol1 - 0.5 * (b - a):
        outwards = np.where(x >= middle, a - x, b - x)[()]
        p, q = parabola(x, w, v, fx, fw, fv)
        before, last = far, step
        fits = (np.abs(p) < np.abs(0.5 * q * before)) & (p > q * (a - x)) & (p < q * (b - x))
        if np.abs(before) > tol1 and fits:
            far = last
            step = p / q
            if x + step - a < 2.0 * tol1 or b - (x + step) < 2.0 * tol1:
                step = tol1 * np.where(middle - x >= 0, 1.0, -1.0)[()]
        else:
            far = outwards
            step = golden * outwards
        u = x + np.where(step >= 0, 1.0, -1.0)[()] * np.maximum(np.abs(step), tol1)
        fu = func(u, *args)
        calls += 1
        if fu <= fx:
            if u >= x:
                a = x
            else:
                b = x
            v, fv, w, fw, x, fx = w, fw, x, fx, u, fu
        else:
            if u < x:
                a = u
            else:
                b = u
            if fu <= fw or w == x:
                v, fv, w, fw = w, fw, u, fu
            elif fu <= fv or v in (x, w):
                v, fv = u, fu
        middle = 0.5 * (a + b)
        tol1 = root * np.abs(x) + xatol / 3.0
        enough = calls < maxiter
    return x, fx, calls, enough


def minimize_scalar(
    fun: Any,
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: Any = None,
    options: Any = None,
) -> Any:
    """A minimum, with what it took."""
    given = {} if options is None else options
    way = ("brent" if bounds is None else "bounded") if method is None else method.lower()
    if given.get("disp", 0):
        raise NotImplementedError("minimize_scalar that prints: leave disp out of options")
    if way == "bounded":
        limit = given.get("xatol", 1e-5 if tol is None else tol)
        x, value, calls, enough = by_bounds(fun, bounds, args, limit, given.get("maxiter", 500))
        return Minimum(x, value, calls, calls, enough and not (np.isnan(x) or np.isnan(value)))
    if way == "brent":
        most = given.get("maxiter", 500)
        limit = given.get("xtol", 1.48e-8 if tol is None else tol)
        x, value, steps, calls = by_brent(fun, bracket, args, limit, most)
    elif way == "golden":
        most = given.get("maxiter", 5000)
        limit = given.get("xtol", np.sqrt(np.finfo(float).eps) if tol is None else tol)
        x, value, steps, calls = by_golden_section(fun, bracket, args, limit, most)
    else:
        raise ValueError(f"Unknown solver {method}")
    return Minimum(x, value, steps, calls, steps < most and not (np.isnan(x) or np.isnan(value)))


def brent(
    func: Any,
    args: Any = (),
    brack: Any = None,
    tol: Any = 1.48e-8,
    full_output: Any = 0,
    maxiter: Any = 500,
) -> Any:
    """A minimum by Brent's method."""
    x, value, steps, calls = by_brent(func, brack, args, tol, maxiter)
    return (x, value, steps, calls) if full_output else x


def golden(
    func: Any,
    args: Any = (),
    brack: Any = None,
    tol: Any = 1.4901161193847656e-08,
    full_output: Any = 0,
    maxiter: Any = 5000,
) -> Any:
    """A minimum by golden sections."""
    x, value, _, calls = by_golden_section(func, brack, args, tol, maxiter)
    return (x, value, calls) if full_output else x


def fminbound(
    func: Any,
    x1: Any,
    x2: Any,
    args: Any = (),
    xtol: Any = 1e-5,
    maxfun: Any = 500,
    full_output: Any = 0,
    disp: Any = 1,
) -> Any:
    """A minimum between bounds."""
    x, value, calls, enough = by_bounds(func, (x1, x2), args, xtol, maxfun)
    return (x, value, 1 - enough, calls) if full_output else x
