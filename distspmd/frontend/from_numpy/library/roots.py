"""Zeros of functions between two places, by the steps of ``scipy.optimize``."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALLEST = 8.881784197001252e-16
"""The smallest relative tolerance that SciPy takes, and its default."""


class Found:
    """A zero, and what it took: ``scipy.optimize.RootResults``."""

    def __init__(self, root: Any, function_calls: Any, iterations: Any, converged: Any) -> None:
        self.root = root
        self.function_calls = function_calls
        self.iterations = iterations
        self.converged = converged


def told(root: Any, calls: Any, steps: Any, converged: Any, full_output: Any) -> Any:
    """A zero as the caller wants it."""
    return (root, Found(root, calls, steps, converged)) if full_output else root


def value_at(f: Any, x: Any, args: Any) -> Any:
    """A value of the function, which has to be a number."""
    found = float(f(x, *args))
    if np.isnan(found):
        raise ValueError(f"The function value at x={x} is NaN; solver cannot continue.")
    return found


def tuple_of(args: Any) -> Any:
    """Further arguments, of which there may be a single one."""
    return args if isinstance(args, tuple) else (args,)


def check_tolerances(xtol: Any, rtol: Any) -> None:
    """Raise what SciPy raises."""
    if xtol <= 0:
        raise ValueError("xtol too small: it has to be above 0")
    if rtol < SMALLEST:
        raise ValueError("rtol too small: it has to be 4 * np.finfo(float).eps at least")


def check_signs(one: Any, other: Any) -> None:
    """Raise an error unless a zero lies between two values."""
    if one != 0 and other != 0 and np.signbit(one) == np.signbit(other):
        raise ValueError("f(a) and f(b) must have different signs")


def check_end(converged: Any, disp: Any, steps: Any) -> None:
    """Raise an error where there were not enough iterations."""
    if disp and not converged:
        raise RuntimeError(f"Failed to converge after {steps} iterations.")


def brent_step(xpre: Any, fpre: Any, xcur: Any, fcur: Any, xblk: Any, fblk: Any, way: str) -> Any:
    """The step of an interpolation, or of an extrapolation (zeros/brentq.c, brenth.c)."""
    if xpre == xblk:
        step = -fcur * (xcur - xpre) / (fcur - fpre)
    else:
        dpre = (fpre - fcur) / (xpre - xcur)
        dblk = (fblk - fcur) / (xblk - xcur)
        if way == "quadratic":
            step = -fcur * (fblk * dblk - fpre * dpre) / (dblk * dpre * (fblk - fpre))
        else:
            step = -fcur * (fblk - fpre) / (fblk * dpre - fpre * dblk)
    return step


def further(step: Any, half: Any, least: Any) -> Any:
    """A step, or one towards the middle if it is shorter than the tolerance."""
    smallest = least if half > 0 else -least
    return step if abs(step) > least else smallest


def by_brent(
    f: Any, a: Any, b: Any, args: Any, xtol: Any, rtol: Any, maxiter: Any, way: str
) -> tuple[Any, Any, Any, Any]:
    """Brent's method: the zero, calls, iterations, and whether it converged."""
    args = tuple_of(args)
    check_tolerances(xtol, rtol)
    xpre = float(a)
    xcur = float(b)
    fpre = value_at(f, xpre, args)
    fcur = value_at(f, xcur, args)
    check_signs(fpre, fcur)
    xblk = 0.0
    fblk = 0.0
    spre = 0.0
    scur = 0.0
    steps = 0
    if fpre == 0:
        xcur = xpre
    converged = fpre == 0 or fcur == 0
    while not converged and steps < maxiter:
        steps += 1
        if fpre != 0 and fcur != 0 and np.signbit(fpre) != np.signbit(fcur):
            xblk = xpre
            fblk = fpre
            spre = xcur - xpre
            scur = spre
        if abs(fblk) < abs(fcur):
            xpre = xcur
            xcur = xblk
            xblk = xpre
            fpre = fcur
            fcur = fblk
            fblk = fpre
        delta = (xtol + rtol * abs(xcur)) / 2
        sbis = (xblk - xcur) / 2
        if fcur == 0 or abs(sbis) < delta:
            converged = True
        else:
            step = sbis
            short = False
            if abs(spre) > delta and abs(fcur) < abs(fpre):
                step = brent_step(xpre, fpre, xcur, fcur, xblk, fblk, way)
                short = 2 * abs(step) < min(abs(spre), 3 * abs(sbis) - delta)
            spre = scur if short else sbis
            scur = step if short else sbis
            xpre = xcur
            fpre = fcur
            xcur += further(scur, sbis, delta)
            fcur = value_at(f, xcur, args)
    return xcur, 2 + steps - converged * (steps > 0), steps, converged


def brentq(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = SMALLEST,
    maxiter: Any = 100,
    full_output: Any = False,
    disp: Any = True,
) -> Any:
    """Brent's method with inverse quadratic extrapolation."""
    root, calls, steps, converged = by_brent(f, a, b, args, xtol, rtol, maxiter, "quadratic")
    check_end(converged, disp, steps)
    return told(root, calls, steps, converged, full_output)


def brenth(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = SMALLEST,
    maxiter: Any = 100,
    full_output: Any = False,
    disp: Any = True,
) -> Any:
    """Brent's method with hyperbolic extrapolation."""
    root, calls, steps, converged = by_brent(f, a, b, args, xtol, rtol, maxiter, "hyperbolic")
    check_end(converged, disp, steps)
    return told(root, calls, steps, converged, full_output)


def bisect(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = SMALLEST,
    maxiter: Any = 100,
    full_output: Any = False,
    disp: Any = True,
) -> Any:
    """Bisection (zeros/bisect.c)."""
    args = tuple_of(args)
    check_tolerances(xtol, rtol)
    low = float(a)
    root = low
    at_low = value_at(f, low, args)
    at_high = value_at(f, float(b), args)
    check_signs(at_low, at_high)
    converged = at_low == 0
    if at_high == 0 and not converged:
        root = float(b)
        converged = True
    width = float(b) - low
    steps = 0
    while not converged and steps < maxiter:
        steps += 1
        width *= 0.5
        root = low + width
        value = value_at(f, root, args)
        if np.signbit(value) == np.signbit(at_low):
            low = root
        converged = value == 0 or abs(width) < xtol + rtol * abs(root)
    check_end(converged, disp, steps)
    return told(root, 2 + steps, steps, converged, full_output)


def ridder(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = SMALLEST,
    maxiter: Any = 100,
    full_output: Any = False,
    disp: Any = True,
) -> Any:
    """Ridders' method (zeros/ridder.c)."""
    args = tuple_of(args)
    check_tolerances(xtol, rtol)
    xa = float(a)
    xb = float(b)
    tolerance = xtol + rtol * min(abs(xa), abs(xb))
    fa = value_at(f, xa, args)
    fb = value_at(f, xb, args)
    check_signs(fa, fb)
    root = xa
    converged = fa == 0
    if fb == 0 and not converged:
        root = xb
        converged = True
    steps = 0
    while not converged and steps < maxiter:
        steps += 1
        half = 0.5 * (xb - xa)
        middle = xa + half
        fm = value_at(f, middle, args)
        side = 1.0 if fb - fa > 0 else -1.0
        shift = side * half * fm / float(np.sqrt(fm * fm - fa * fb))
        root = middle - (1.0 if shift > 0 else -1.0) * min(abs(shift), abs(half) - 0.5 * tolerance)
        value = value_at(f, root, args)
        if np.signbit(value) != np.signbit(fm):
            xa = root
            fa = value
            xb = middle
            fb = fm
        elif np.signbit(value) != np.signbit(fa):
            xb = root
            fb = value
        else:
            xa = root
            fa = value
        tolerance = xtol + rtol * root
        converged = value == 0.0 or abs(xb - xa) < tolerance
    check_end(converged, disp, steps)
    return told(root, 2 + 2 * steps, steps, converged, full_output)
