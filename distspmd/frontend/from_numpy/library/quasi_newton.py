"""``scipy.optimize.minimize`` by BFGS, with the line search of Moré and Thuente (1994).

One loop has the trials of all line searches, with one call of the function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEP = float(np.finfo(float).eps) ** 0.5
_LEAST, _MOST = 1e-100, 1e100


class Line:
    """What a line search knows: its best place, the other end, and the bounds of the next one."""

    def __init__(self, value: Any, slope: Any, step: Any) -> None:
        self.begin(value, slope, step)

    def begin(self, value: Any, slope: Any, step: Any) -> None:
        """Begin anew."""
        self.first = value * 1.0
        self.slope = slope * 1.0
        self.is_bracketed = 0.0
        self.stage = 1.0
        self.width = _MOST - _LEAST
        self.before = 2.0 * (_MOST - _LEAST)
        self.x = 0.0
        self.fx = value * 1.0
        self.gx = slope * 1.0
        self.y = 0.0
        self.fy = value * 1.0
        self.gy = slope * 1.0
        self.least = 0.0
        self.most = 5.0 * step
        self.rounds = 0.0


def by_cubic(a: Any, fa: Any, ga: Any, b: Any, fb: Any, gb: Any, kind: Any) -> Any:
    """The minimum of the cubic through two places, as each kind of step takes it."""
    theta = 3.0 * (fa - fb) / (b - a) + ga + gb
    s = max(abs(theta), abs(ga), abs(gb))
    under = (theta / s) ** 2 - (ga / s) * (gb / s)
    gamma = s * np.sqrt(np.maximum(under, 0.0))
    if kind == 1:
        gamma = -gamma if b < a else gamma
        return a + ((gamma - ga) + theta) / (((gamma - ga) + gamma) + gb) * (b - a), gamma, 1.0
    gamma = -gamma if b > a else gamma
    p = (gamma - gb) + theta
    q = (gamma + (ga - gb)) + gamma if kind == 3 else ((gamma - gb) + gamma) + ga
    return b + p / q * (a - b), gamma, p / q


def next_step(s: Any, step: Any, f: Any, g: Any, shift: Any) -> Any:
    """The next place to try; of the function less a line of the slope ``shift``."""
    f = f - step * shift
    fx, fy = s.fx - s.x * shift, s.fy - s.y * shift
    g, gx, gy = g - shift, s.gx - shift, s.gy - shift
    sign = np.sign(g) * np.sign(gx)
    found = step
    if f > fx:
        cubic, _, _ = by_cubic(s.x, fx, gx, step, f, g, 1)
        square = s.x + ((gx / ((fx - f) / (step - s.x) + gx)) / 2.0) * (step - s.x)
        is_near = abs(cubic - s.x) <= abs(square - s.x)
        found = cubic if is_near else cubic + (square - cubic) / 2.0
        s.is_bracketed = 1.0
    elif sign < 0.0:
        cubic, _, _ = by_cubic(s.x, fx, gx, step, f, g, 2)
        secant = step + (g / (g - gx)) * (s.x - step)
        found = cubic if abs(cubic - step) > abs(secant - step) else secant
        s.is_bracketed = 1.0
    elif abs(g) < abs(gx):
        cubic, gamma, ratio = by_cubic(s.x, fx, gx, step, f, g, 3)
        if not (ratio < 0 and gamma != 0):
            cubic = s.most if step > s.x else s.least
        secant = step + (g / (g - gx)) * (s.x - step)
        found = flat_step(s, step, cubic, secant)
    elif s.is_bracketed > 0.0:
        found, _, _ = by_cubic(s.y, fy, gy, step, f, g, 2)
    else:
        found = s.most if step > s.x else s.least
    if f > fx:
        s.y, fy, gy = step, f, g
    else:
        if sign < 0.0:
            s.y, fy, gy = s.x, fx, gx
        s.x, fx, gx = step, f, g
    s.fx, s.fy = fx + s.x * shift, fy + s.y * shift
    s.gx, s.gy = gx + shift, gy + shift
    return found


def flat_step(s: Any, step: Any, cubic: Any, secant: Any) -> Any:
    """The next place where the slope has got smaller, and keeps its sign."""
    if s.is_bracketed > 0.0:
        found = cubic if abs(cubic - step) < abs(secant - step) else secant
        limit = step + 0.66 * (s.y - step)
        found = min(limit, found) if step > s.x else max(limit, found)
    else:
        found = cubic if abs(cubic - step) > abs(secant - step) else secant
        found = np.clip(found, s.least, s.most)
    return found


def search(s: Any, step: Any, f: Any, g: Any, c1: Any, c2: Any) -> Any:
    """Take up a trial: the next step, and whether the search is done or fails."""
    test = c1 * s.slope
    wanted = s.first + step * test
    if s.stage == 1.0 and f <= wanted and g >= 0:
        s.stage = 2.0
    ends = s.is_bracketed > 0.0 and (step <= s.least or step >= s.most)
    tight = s.is_bracketed > 0.0 and s.most - s.least <= 1e-14 * s.most
    done = f <= wanted and abs(g) <= -c2 * s.slope
    s.rounds = s.rounds + 1.0
    fails = not done and (ends or tight or s.rounds > 99.0 or s.slope >= 0.0)
    if not done and not fails:
        shift = test if s.stage == 1.0 and f <= s.fx and f > wanted else 0.0
        step = next_step(s, step, f, g, shift)
        if s.is_bracketed > 0.0:
            if abs(s.y - s.x) >= 0.66 * s.before:
                step = s.x + 0.5 * (s.y - s.x)
            s.before = s.width
            s.width = abs(s.y - s.x)
            s.least = min(s.x, s.y)
            s.most = max(s.x, s.y)
        else:
            s.least = step + 1.1 * (step - s.x)
            s.most = step + 4.0 * (step - s.x)
        step = min(max(step, _LEAST), _MOST)
        stuck = step <= s.least or step >= s.most or s.most - s.least <= 1e-14 * s.most
        if s.is_bracketed > 0.0 and stuck:
            step = s.x
        fails = not np.isfinite(step)
    return step, done, fails


def slopes_of(f: Any, x: Any, value: Any, eps: Any) -> Any:
    """The derivatives by forward differences."""
    found = np.zeros(x.shape[0])
    for j in range(x.shape[0]):
        moved = x.copy()
        moved[j] = x[j] + np.where(x[j] >= 0, eps, -eps)
        found[j] = (f(moved) - value) / (moved[j] - x[j])
    return found


def first_step(value: Any, before: Any, slope: Any) -> Any:
    """The first step of a line search, from how much the last one has gained."""
    step = 1.0
    if slope != 0.0:
        step = min(1.0, 1.01 * 2.0 * (value - before) / slope)
    return 1.0 if step < 0.0 else step


def by_bfgs(f: Any, jac: Any, x: Any, gtol: Any, most: Any, eps: Any, c1: Any, c2: Any) -> Any:
    """The minimum, its value, slopes, inverse of second derivatives, rounds, and how it ended."""
    n = x.shape[0]
    value = f(x)
    grad = slopes_of(f, x, value, eps) if jac is None else jac(x)
    inverse = np.eye(n)
    way = -grad
    slope = np.sum(grad * way)
    before = value + np.sqrt(np.sum(grad * grad)) / 2.0
    step = first_step(value, before, slope)
    line = Line(value, slope, step)
    rounds, calls, status = 0, 1, 0
    going = np.max(np.abs(grad)) > gtol
    while going:
        trial = x + step * way
        there = f(trial)
        new = slopes_of(f, trial, there, eps) if jac is None else jac(trial)
        calls = calls + 1
        step, done, fails = search(line, step, there, np.sum(new * way), c1, c2)
        if fails:
            status = 2
            going = False
        elif done:
            moved, change = step * way, new - grad
            x = trial
            grad = new
            before = value
            value = there
            rounds = rounds + 1
            along = np.sum(change * moved)
            rho = 1000.0 if along == 0.0 else 1.0 / along
            left = np.eye(n) - moved[:, None] * change[None, :] * rho
            right = np.eye(n) - change[:, None] * moved[None, :] * rho
            going = np.max(np.abs(grad)) > gtol and rounds < most and np.isfinite(value)
            if going:
                inverse = left @ (inverse @ right) + rho * moved[:, None] * moved[None, :]
            way = -(inverse @ grad)
            slope = np.sum(grad * way)
            step = first_step(value, before, slope)
            line.begin(value, slope, step)
    if status == 0 and np.max(np.abs(grad)) > gtol:
        status = 1
    return x, value, grad, inverse, rounds, calls, status
