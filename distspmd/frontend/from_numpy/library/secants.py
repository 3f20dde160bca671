"""Zeros of functions near a place: Newton's, Halley's and the secant method, as in SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.roots import check_end, told, tuple_of


def newton(
    func: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: Any = 1.48e-8,
    maxiter: Any = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: Any = 0.0,
    full_output: Any = False,
    disp: Any = True,
) -> Any:
    """A zero, or one near each of several places."""
    args = tuple_of(args)
    if tol <= 0:
        raise ValueError("tol too small: it has to be above 0")
    if np.size(x0) > 1:
        if full_output:
            raise NotImplementedError("newton of several places with full_output=True")
        if fprime is None:
            return secants(func, np.array(x0), args, tol, maxiter)
        return tangents(func, np.array(x0), fprime, fprime2, args, tol, maxiter)
    start = np.asarray(x0)[()] * 1.0
    if fprime is None:
        root, calls, steps, converged = secant(func, start, x1, args, tol, rtol, maxiter)
    else:
        root, calls, steps, converged = tangent(
            func, start, fprime, fprime2, args, tol, rtol, maxiter
        )
    check_end(converged, disp, steps)
    return told(root, calls, steps, converged, full_output)


def tangent(
    func: Any, p0: Any, fprime: Any, fprime2: Any, args: Any, tol: Any, rtol: Any, maxiter: Any
) -> Any:
    """Newton's method, or Halley's."""
    calls = 0
    steps = 0
    converged = False
    while not converged and steps < maxiter:
        value = func(p0, *args)
        calls += 1
        if value == 0:
            converged = True
        else:
            steps += 1
            slope = fprime(p0, *args)
            calls += 1
            if slope == 0:
                raise RuntimeError("Derivative was zero.")
            step = value / slope
            if fprime2 is not None:
                bend = step * fprime2(p0, *args) / slope / 2
                calls += 1
                if np.abs(bend) < 1:
                    step = step / (1.0 - bend)
            p = p0 - step
            converged = abs(p - p0) <= tol + rtol * abs(p0)
            p0 = p
    return p0, calls, steps, converged


def secant(func: Any, p0: Any, x1: Any, args: Any, tol: Any, rtol: Any, maxiter: Any) -> Any:
    """The secant method."""
    if x1 is None:
        p1 = p0 * (1 + 1e-4)
        p1 = p1 + np.where(p1 >= 0, 1e-4, -1e-4)[()]
    else:
        if x1 == p0:
            raise ValueError("x1 and x0 must be different")
        p1 = x1 * 1.0
    q0 = func(p0, *args)
    q1 = func(p1, *args)
    calls = 2
    if abs(q1) < abs(q0):
        p0, p1, q0, q1 = p1, p0, q1, q0
    p = p1
    steps = 0
    converged = False
    flat = False
    while not converged and not flat and steps < maxiter:
        steps += 1
        if q1 == q0:
            if p1 != p0:
                raise RuntimeError(f"Failed to converge after {steps} iterations, value is {p1}.")
            p = (p1 + p0) / 2.0
            flat = True
        else:
            if abs(q1) > abs(q0):
                p = (-q0 / q1 * p1 + p0) / (1 - q0 / q1)
            else:
                p = (-q1 / q0 * p0 + p1) / (1 - q1 / q0)
            converged = abs(p - p1) <= tol + rtol * abs(p1)
            if not converged:
                p0 = p1
                q0 = q1
                p1 = p
                q1 = func(p1, *args)
                calls += 1
    return p, calls, steps, converged or flat


def tangents(
    func: Any, p: Any, fprime: Any, fprime2: Any, args: Any, tol: Any, maxiter: Any
) -> Any:
    """Newton's method, or Halley's, at several places: all go on until the last has converged."""
    p = p * 1.0
    failed = np.ones(p.shape, dtype=bool)
    sloped = np.ones(p.shape, dtype=bool)
    steps = 0
    done = False
    while not done and steps < maxiter:
        steps += 1
        value = np.asarray(func(p, *args))
        if not value.any():
            failed = np.zeros(p.shape, dtype=bool)
            done = True
        else:
            slope = np.asarray(fprime(p, *args))
            sloped = slope != 0
            safe = np.where(sloped, slope, 1)
            step = value / safe
            if fprime2 is not None:
                step = step / (1.0 - 0.5 * step * np.asarray(fprime2(p, *args)) / safe)
            p = np.where(sloped, p - step, p)
            failed = np.where(sloped, np.abs(step) >= tol, failed)
            done = not (failed & sloped).any()
    check_all(failed, sloped, maxiter)
    return p


def secants(func: Any, p: Any, args: Any, tol: Any, maxiter: Any) -> Any:
    """The secant method at several places."""
    dx = np.finfo(float).eps ** 0.33
    p = p * 1.0
    p1 = p * (1 + dx) + np.where(p >= 0, dx, -dx)
    q0 = np.asarray(func(p, *args))
    q1 = np.asarray(func(p1, *args))
    failed = np.ones(p.shape, dtype=bool)
    active = np.ones(p.shape, dtype=bool)
    sloped = np.ones(p.shape, dtype=bool)
    steps = 0
    done = False
    while not done and steps < maxiter:
        steps += 1
        sloped = q1 != q0
        if not sloped.any():
            p = (p1 + p) / 2.0
            done = True
        else:
            step = q1 * (p1 - p) / np.where(sloped, q1 - q0, 1)
            moved = np.where(sloped, p1 - step, p)
            p = np.where(~sloped & active, (p1 + moved) / 2.0, moved)
            active = active & sloped
            failed = np.where(sloped, np.abs(step) >= tol, failed)
            done = not (failed & sloped).any()
            if not done:
                before = p1
                p1 = p
                p = before
                q0 = q1
                q1 = np.asarray(func(p1, *args))
    check_all(failed, sloped, maxiter)
    return p


def check_all(failed: Any, sloped: Any, maxiter: Any) -> None:
    """Raise an error where no place has converged."""
    if failed.all() and not (failed & ~sloped).any():
        raise RuntimeError(f"all failed to converge after {maxiter} iterations")
