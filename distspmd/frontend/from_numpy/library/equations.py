"""Zeros of several functions and least squares, by the methods of MINPACK (Moré and others 1980).

The matrices are kept whole, and systems of equations are solved anew in each step, where MINPACK
changes factors: the steps are the same but for rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_EPS = float(np.finfo(float).eps)


class Found:
    """What ``scipy.optimize.OptimizeResult`` has of numbers."""

    def __init__(self, x: Any, fun: Any, nfev: Any, status: Any, success: Any) -> None:
        self.x = x
        self.fun = fun
        self.nfev = nfev
        self.status = status
        self.success = success

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def tuple_of(args: Any) -> Any:
    """Further arguments, of which one may be given alone."""
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


def size_of(x: Any) -> Any:
    """The root of the sum of squares."""
    return np.sqrt(np.sum(x * x))


def slopes_at(f: Any, x: Any, fx: Any, epsfcn: Any) -> Any:
    """The derivatives by forward differences."""
    step = np.sqrt(max(epsfcn, _EPS))
    found = np.zeros((fx.shape[0], x.shape[0]))
    for j in range(x.shape[0]):
        h = np.where(x[j] == 0.0, step, step * np.abs(x[j]))
        moved = x.copy()
        moved[j] = x[j] + h
        found[:, j] = (f(moved) - fx) / h
    return found


def dogleg(slopes: Any, fx: Any, scale: Any, radius: Any) -> Any:
    """The step within a radius: of Newton, down the gradient, or between both."""
    newton = np.linalg.solve(slopes, fx)
    length = size_of(scale * newton)
    gradient = slopes.T @ fx / scale
    steep = size_of(gradient)
    safe = np.where(steep == 0.0, 1.0, steep)
    down = gradient / safe / scale
    curved = size_of(slopes @ down)
    far = np.where(steep == 0.0, 0.0, steep / np.where(curved == 0.0, 1.0, curved) ** 2)
    part = radius / np.where(length == 0.0, 1.0, length)
    ratio = far / radius
    left = 1.0 - ratio**2
    mixed = size_of(fx) / safe * (size_of(fx) / np.where(length == 0.0, 1.0, length)) * ratio
    root = np.sqrt(np.maximum((mixed - part) ** 2 + (1.0 - part**2) * left, 0.0))
    mixed = mixed - part * ratio**2 + root
    alpha = np.where(far < radius, part * left / np.where(mixed == 0.0, 1.0, mixed), 0.0)
    alpha = np.where(steep == 0.0, part, alpha)
    between = (1.0 - alpha) * np.minimum(far, radius) * down + alpha * newton
    return np.where(length <= radius, newton, between)


def by_hybrid(
    f: Any, x: Any, jac: Any, xtol: Any, most: Any, epsfcn: Any, factor: Any, diag: Any
) -> Any:
    """Powell's hybrid method: the zero, the values there, calls, and how it ended."""
    n = x.shape[0]
    fx = f(x)
    norm = size_of(fx)
    slopes = np.zeros((n, n))
    scale = np.ones(n) if diag is None else diag
    radius, xnorm = 0.0, 0.0
    calls, trials, good, bad, slow, slower, info = 1, 0, 0, 0, 0, 0, 0
    renews, is_new = True, True
    while info == 0:
        if renews:
            slopes = slopes_at(f, x, fx, epsfcn) if jac is None else jac(x)
            calls = calls + (n if jac is None else 0)
            sizes = np.sqrt(np.sum(slopes * slopes, axis=0))
            if trials == 0:
                scale, xnorm, radius = first_scale(slopes, scale, x, factor, diag is None)
            elif diag is None:
                scale = np.maximum(scale, sizes)
            is_new = True
        step = -dogleg(slopes, fx, scale, radius)
        length = size_of(scale * step)
        if trials == 0:
            radius = min(radius, length)
        trial = x + step
        value = f(trial)
        calls = calls + 1
        new_norm = size_of(value)
        gained = 1.0 - (new_norm / norm) ** 2 if new_norm < norm else -1.0
        linear = size_of(fx + slopes @ step)
        hoped = 1.0 - (linear / norm) ** 2 if linear < norm else 0.0
        ratio = gained / hoped if hoped > 0.0 else 0.0
        good = 0 if ratio < 0.1 else good + 1
        bad = bad + 1 if ratio < 0.1 else 0
        radius = radius_of_hybrid(radius, length, ratio, good)
        accepted = ratio >= 0.0001
        rest = (value - fx - slopes @ step) / length
        slow = 0 if gained >= 0.001 else slow + 1
        slower = 0 if gained >= 0.1 else slower + (1 if is_new else 0)
        if accepted:
            x = trial
            fx = value
            norm = new_norm
            xnorm = size_of(scale * x)
            trials = trials + 1
        info = end_of_hybrid(radius, xnorm, norm, xtol, calls >= most, length, slower, slow)
        renews = bad == 2
        is_new = False
        slopes = slopes + rest[:, None] * (scale * (scale * step / length))
    return x, fx, calls, info


def radius_of_hybrid(radius: Any, length: Any, ratio: Any, good: Any) -> Any:
    """How far the next step may lead."""
    wider = np.maximum(radius, length / 0.5)
    found = np.where((ratio >= 0.5) | (good > 1), wider, radius)
    found = np.where(np.abs(ratio - 1.0) <= 0.1, length / 0.5, found)
    return float(np.where(ratio < 0.1, 0.5 * radius, found))


def end_of_hybrid(
    radius: Any, xnorm: Any, norm: Any, xtol: Any, many: Any, length: Any, slower: Any, slow: Any
) -> Any:
    """How the search ends, as MINPACK numbers it; 0 where it goes on."""
    info = 0
    if slow == 10:
        info = 5
    if slower == 5:
        info = 4
    if 0.1 * max(0.1 * radius, length) <= _EPS * xnorm:
        info = 3
    if many:
        info = 2
    if radius <= xtol * xnorm or norm == 0.0:
        info = 1
    return info


def damped(slopes: Any, fx: Any, scale: Any, par: Any) -> Any:
    """The step of damped least squares, and the triangle of its factors."""
    n = slopes.shape[1]
    rows = np.concatenate((slopes, np.sqrt(par) * np.diag(scale)))
    q, r = np.linalg.qr(rows)
    return np.linalg.solve(r, q.T @ np.concatenate((fx, np.zeros(n)))), r


def step_within(slopes: Any, fx: Any, scale: Any, radius: Any, par: Any) -> Any:
    """The step of least squares within a radius, and how much it is damped (MINPACK's lmpar)."""
    step, r = damped(slopes, fx, scale, 0.0)
    length = size_of(scale * step)
    beyond = length - radius
    rounds = 0
    if beyond <= 0.1 * radius:
        par = 0.0
    else:
        turned = np.linalg.solve(r.T, scale * (scale * step / length))
        least = beyond / radius / np.sum(turned * turned)
        gradient = size_of(slopes.T @ fx / scale)
        most = gradient / radius
        if most == 0.0:
            most = float(np.finfo(float).tiny) / min(radius, 0.1)
        par = min(max(par, least), most)
        if par == 0.0:
            par = gradient / length
        going = True
        while going:
            rounds = rounds + 1
            if par == 0.0:
                par = max(float(np.finfo(float).tiny), 0.001 * most)
            step, r = damped(slopes, fx, scale, par)
            length = size_of(scale * step)
            before = beyond
            beyond = length - radius
            shrinks = least == 0.0 and beyond <= before and before < 0.0
            going = not (abs(beyond) <= 0.1 * radius or shrinks or rounds == 10)
            if going:
                turned = np.linalg.solve(r.T, scale * (scale * step / length))
                change = beyond / radius / np.sum(turned * turned)
                if beyond > 0.0:
                    least = max(least, par)
                else:
                    most = min(most, par)
                par = max(least, par + change)
    return step, par


def steepness(slopes: Any, fx: Any, sizes: Any, norm: Any) -> Any:
    """The largest cosine between the values and a column of derivatives."""
    safe = np.where(sizes == 0.0, 1.0, sizes) * np.where(norm == 0.0, 1.0, norm)
    return np.max(np.where(sizes == 0.0, 0.0, np.abs(slopes.T @ fx) / safe))


def first_scale(slopes: Any, scale: Any, x: Any, factor: Any, free: Any) -> Any:
    """At first: the scales of the variables, their size, and how far a step may lead."""
    sizes = np.sqrt(np.sum(slopes * slopes, axis=0))
    if free:
        scale = np.where(sizes == 0.0, 1.0, sizes)
    far = size_of(scale * x)
    return scale, far, np.where(far == 0.0, factor, factor * far)[()]


def by_marquardt(
    f: Any,
    x: Any,
    jac: Any,
    ftol: Any,
    xtol: Any,
    gtol: Any,
    most: Any,
    epsfcn: Any,
    factor: Any,
    diag: Any,
) -> Any:
    """Least squares by Levenberg and Marquardt: place, values, derivatives, calls, and the end."""
    n = x.shape[0]
    fx = f(x)
    norm = size_of(fx)
    slopes = np.zeros((fx.shape[0], n))
    scale = np.ones(n) if diag is None else diag
    radius, xnorm, par = 0.0, 0.0, 0.0
    calls, trials, info = 1, 0, 0
    renews = True
    while info == 0:
        if renews:
            slopes = slopes_at(f, x, fx, epsfcn) if jac is None else jac(x)
            calls = calls + (n if jac is None else 0)
            sizes = np.sqrt(np.sum(slopes * slopes, axis=0))
            if trials == 0:
                scale, xnorm, radius = first_scale(slopes, scale, x, factor, diag is None)
            elif diag is None:
                scale = np.maximum(scale, sizes)
            info = 4 if steepness(slopes, fx, sizes, norm) <= gtol else 0
        if info == 0:
            step, par = step_within(slopes, fx, scale, radius, par)
            step = -step
            length = size_of(scale * step)
            if trials == 0:
                radius = min(radius, length)
            value = f(x + step)
            calls = calls + 1
            new_norm = size_of(value)
            gained = 1.0 - (new_norm / norm) ** 2 if 0.1 * new_norm < norm else -1.0
            along = (size_of(slopes @ step) / norm) ** 2
            across = (np.sqrt(par) * length / norm) ** 2
            hoped = along + across / 0.5
            ratio = gained / hoped if hoped != 0.0 else 0.0
            radius, par = radius_of_marquardt(
                radius, par, ratio, length, gained, along + across, new_norm / norm
            )
            renews = ratio >= 0.0001
            if renews:
                x = x + step
                fx = value
                norm = new_norm
                xnorm = size_of(scale * x)
                trials = trials + 1
            info = end_of_marquardt(gained, hoped, ratio, radius, xnorm, ftol, xtol, calls >= most)
    return x, fx, slopes, calls, info


def radius_of_marquardt(
    radius: Any, par: Any, ratio: Any, length: Any, gained: Any, slope: Any, shrinks: Any
) -> Any:
    """How far the next step may lead, and how much it is damped."""
    if ratio <= 0.25:
        part = 0.5 if gained >= 0.0 else -0.5 * slope / (-slope + 0.5 * gained)
        if 0.1 * shrinks >= 1.0 or part < 0.1:
            part = 0.1
        radius = part * min(radius, length / 0.1)
        par = par / part
    elif par == 0.0 or ratio >= 0.75:
        radius = length / 0.5
        par = 0.5 * par
    return radius, par


def end_of_marquardt(
    gained: Any, hoped: Any, ratio: Any, radius: Any, xnorm: Any, ftol: Any, xtol: Any, many: Any
) -> Any:
    """How the search ends, as MINPACK numbers it; 0 where it goes on."""
    info = 0
    flat = abs(gained) <= ftol and hoped <= ftol and 0.5 * ratio <= 1.0
    if abs(gained) <= _EPS and hoped <= _EPS and 0.5 * ratio <= 1.0:
        info = 6
    if radius <= _EPS * xnorm:
        info = 7
    if many:
        info = 5
    if radius <= xtol * xnorm:
        info = 2
    if flat:
        info = 3 if info == 2 else 1
    return info
