"""``scipy.integrate.solve_ivp`` by the embedded Runge-Kutta formulas that it has, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NODES = {"RK45": [1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0], "RK23": [1 / 2, 3 / 4]}
STAGES: dict[str, list[list[float]]] = {
    "RK45": [
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    ],
    "RK23": [[1 / 2], [0, 3 / 4]],
}
WEIGHTS = {
    "RK45": [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    "RK23": [2 / 9, 1 / 3, 4 / 9],
}
ERRORS = {
    "RK45": [-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40],
    "RK23": [5 / 72, -1 / 12, -1 / 9, 1 / 8],
}
BETWEEN = {
    "RK45": [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ],
    "RK23": [[1, -4 / 3, 5 / 9], [0, 1, -2 / 3], [0, 4 / 3, -8 / 9], [0, -1, 1]],
}
"""Of the polynomials between two steps, the factors of their powers by stages."""
EXPONENTS = {"RK45": 4, "RK23": 2}
"""Orders of the estimates of errors."""
DONE = "The solver successfully reached the end of the integration interval."
TOO_SMALL = "Required step size is less than spacing between numbers."


class Solution:
    """What ``solve_ivp`` gives."""

    def __init__(self, t: Any, y: Any, nfev: Any) -> None:
        self.t = t
        self.y = y
        self.sol = None
        self.t_events = None
        self.y_events = None
        self.nfev = nfev
        self.njev = 0
        self.nlu = 0
        self.status = 0
        self.message = DONE
        self.success = True


def size_of(x: Any) -> Any:
    """The root of the mean square."""
    return np.linalg.norm(x) / x.size**0.5


def combined(slopes: Any, weights: Any) -> Any:
    """A sum of slopes with weights, those that are zero left out."""
    return sum([slope * w for slope, w in zip(slopes, weights, strict=False) if w != 0])


def first_size(
    f: Any,
    t: Any,
    y: Any,
    end: Any,
    most: Any,
    slope: Any,
    way: Any,
    order: Any,
    rtol: Any,
    atol: Any,
) -> Any:
    """The size of the first step, by Hairer, Norsett and Wanner."""
    length = abs(end - t)
    scale = atol + np.abs(y) * rtol
    d0 = size_of(y / scale)
    d1 = size_of(slope / scale)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    h0 = min(h0, length)
    further = f(t + h0 * way, y + h0 * way * slope)
    d2 = size_of((further - slope) / scale) / h0
    if d1 <= 1e-15 and d2 <= 1e-15:
        h1 = max(1e-6, h0 * 1e-3)
    else:
        h1 = (0.01 / max(d1, d2)) ** (1 / (order + 1))
    return min(100 * h0, h1, length, most)


def stages_of(f: Any, t: Any, y: Any, slope: Any, h: Any, method: Any) -> Any:
    """The slopes of a step, but for the one behind it."""
    slopes = [slope]
    for node, stage in zip(NODES[method], STAGES[method], strict=True):
        slopes.append(f(t + node * h, y + combined(slopes, stage) * h))
    return tuple(slopes)


def accepted_step(
    f: Any, t: Any, y: Any, end: Any, slope: Any, size: Any, way: Any, method: Any, tolerances: Any
) -> Any:
    """The place and state behind a step, its slopes, the size of the next one, and calls."""
    weights, errors, power = WEIGHTS[method], ERRORS[method], -1 / (EXPONENTS[method] + 1)
    rtol, atol, most = tolerances
    least = 10 * np.abs(np.nextafter(t, way * np.inf) - t)
    size = min(max(size, least), most)
    is_rejected = False
    is_accepted = False
    calls = 0
    after = t
    state = y
    slopes = tuple([slope for _ in errors])
    while not is_accepted:
        if size < least:
            raise RuntimeError(TOO_SMALL)
        after = t + size * way
        if way * (after - end) > 0:
            after = end
        h = after - t
        size = np.abs(h)
        slopes = stages_of(f, t, y, slope, h, method)
        state = y + h * combined(slopes, weights)
        slopes = (*slopes, f(after, state))
        calls = calls + len(weights)
        scale = atol + np.maximum(np.abs(y), np.abs(state)) * rtol
        error = size_of(combined(slopes, errors) * h / scale)
        if error < 1:
            factor = 10.0 if error == 0 else min(10.0, 0.9 * error**power)
            size = size * (min(1.0, factor) if is_rejected else factor)
            is_accepted = True
        else:
            size = size * max(0.2, 0.9 * error**power)
            is_rejected = True
    return after, state, slopes, size, calls


def between(slopes: Any, t: Any, y: Any, h: Any, places: Any, found: Any, method: Any) -> Any:
    """What was found, with the states at the places that lie in a step."""
    part = (places - t) / h
    factors = [combined(slopes, powers) for powers in zip(*BETWEEN[method], strict=True)]
    inside = sum([factor[:, None] * part ** (n + 1) for n, factor in enumerate(factors)])
    return np.where((part >= 0) & (part <= 1), y[:, None] + h * inside, found)


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    args: Any = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    max_step: Any = np.inf,
    first_step: Any = None,
) -> Solution:
    """``scipy.integrate.solve_ivp``; where steps get too small it ends with an error."""
    more = () if args is None else tuple(args)
    y = np.array(y0) + 0.0
    t = float(t_span[0])
    end = float(t_span[1])
    way = np.sign(end - t) if end != t else 1.0

    def f(time: Any, state: Any) -> Any:
        return np.asarray(fun(time, state, *more), dtype=y.dtype)

    slope = f(t, y)
    calls = 1
    size = first_step
    if first_step is None:
        size = first_size(f, t, y, end, max_step, slope, way, EXPONENTS[method], rtol, atol)
        calls = 2
    times = [t]
    states = [y.copy()]
    found = np.zeros((y.size, 1 if t_eval is None else len(t_eval)), y.dtype)
    while way * (t - end) < 0:
        after, state, slopes, size, tried = accepted_step(
            f, t, y, end, slope, size, way, method, (rtol, atol, max_step)
        )
        calls = calls + tried
        if t_eval is None:
            times.append(after)
            states.append(state.copy())
        else:
            found = between(slopes, t, y, after - t, np.asarray(t_eval), found, method)
        t = after
        y = state
        slope = slopes[-1]
    if t_eval is None:
        return Solution(np.array(times), np.array(states).T, calls)
    return Solution(np.asarray(t_eval), found, calls)
