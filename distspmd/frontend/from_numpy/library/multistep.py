"""``scipy.integrate.odeint``: LSODA, the formulas of Adams and, where a problem is stiff, of BDF.

The steps are those of ODEPACK (Hindmarsh 1983, Petzold 1983): orders and step sizes follow from
estimates of errors, and the kind of formula from what both kinds would allow. States are kept as
scaled derivatives (Nordsieck): row ``j`` of ``rows`` is ``h**j / j!`` times the derivative ``j``.

One loop has all iterations of all steps, with one call of the function: what is done with the slope
that it gives, the phase says. So programs that read these functions read them once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.multistep_tables import (
    ADAMS,
    BDF,
    CONSTANTS,
    FORMULAS,
    ORDERS,
    PAIRS,
    ROWS,
    STABLE,
    TESTS,
)

_UNIT = float(np.finfo(float).eps)
ITERATION, COLUMN, SLOPE = 0, 1, 2
"""What a slope is asked for: to correct a state, for a column of the matrix, to begin anew."""
FAILS = "Repeated error test failures (internal error)."
DIVERGES = "Repeated convergence failures (perhaps bad Jacobian or tolerances)."
TOO_EXACT = "Excess accuracy requested (tolerances too small)."
TOO_MANY = "Excess work done on this call (perhaps wrong Dfun type)."


def size_of(x: Any, weights: Any) -> Any:
    """The largest of the values, each times its weight."""
    return np.max(np.abs(x) * weights)


class Steps:
    """Where an integration is, and how it goes on."""

    def __init__(self, y: Any, slope: Any, t: Any, h: Any, weights: Any, limits: Any) -> None:
        n = y.size
        self.rows = np.zeros((ROWS, n))
        self.rows[0] = y
        self.rows[1] = h * slope
        self.y = y.copy()
        self.weights = weights.copy()
        self.correction = np.zeros(n)
        self.matrix = np.eye(n)
        self.base = np.zeros(n)
        self.column = 0
        self.shift = 1.0
        self.phase = ITERATION
        self.start = t
        self.t = t
        self.h = h
        self.kind = 0
        self.order = 1
        self.wait = 2
        self.grows = 10000.0
        self.rate = 1.0
        self.first = 1.0
        self.crate = 0.7
        self.renews = False
        self.is_new = False
        self.steps = 0
        self.since = 0
        self.calls = 1
        self.renewed = 0
        self.count = 20
        self.is_limited = False
        self.estimate = 0.0
        self.last = 0.0
        self.norm = 0.0
        self.size = 0.0
        self.iteration = 0
        self.change = 0.0
        self.before = 0.0
        self.ratio = 0.0
        self.failures = 0
        self.divergences = 0
        self.longest, self.shortest = limits


def shift_rows(s: Any, sign: Any) -> None:
    """Predict the rows behind a step, or take the prediction back."""
    order = s.order
    rows = s.rows
    for i in range(order * (order + 1) // 2):
        j = PAIRS[order, i]
        rows[j] = rows[j] + sign * rows[j + 1]


def change_step(s: Any, order: Any, ratio: Any, anew: Any) -> None:
    """Take up an order, and change the size of steps within what is allowed and stable."""
    first = FORMULAS[s.kind, order - 1, 0]
    if order != s.order:
        s.rate = s.rate * first / s.first
        s.first = first
    s.order = order
    ratio = max(ratio, s.shortest / abs(s.h))
    if not anew:
        ratio = min(ratio, s.grows)
        ratio = ratio / max(1.0, abs(s.h) * s.longest * ratio)
        if s.kind == ADAMS:
            far = max(abs(s.h) * s.last, 0.000001)
            s.is_limited = ratio * far * 1.00001 >= STABLE[order - 1]
            if s.is_limited:
                ratio = STABLE[order - 1] / far
        powers = np.concatenate((np.ones(1), np.cumprod(np.full(ROWS - 1, ratio))))
        factors = np.where(np.arange(ROWS) <= order, powers, 1.0)
        s.rows[...] = s.rows * factors[:, None]
        s.rate = s.rate * ratio
        s.wait = order + 1
    s.h = s.h * ratio


def next_column(s: Any, slope: Any, jacobian: Any) -> Any:
    """Go on with the matrix of Newton's steps: the slope to go on with, and whether it is ready."""
    n = s.y.size
    scale = -s.h * s.first
    if jacobian is not None:
        s.base[...] = slope
        s.matrix[...] = scale * jacobian(s.y, s.t)
        s.column = n
    elif s.phase == COLUMN:
        s.matrix[:, s.column] = (slope - s.base) * (scale / s.shift)
        s.column = s.column + 1
    else:
        s.base[...] = slope
        s.column = 0
    ready = s.column == n
    y = s.rows[0].copy()
    if ready:
        sums = np.sum(np.abs(s.matrix) / s.weights, axis=1)
        s.norm = np.max(sums * s.weights) / abs(scale)
        s.matrix[...] = s.matrix + np.eye(n)
        s.renews = False
        s.is_new = True
        s.rate = 1.0
        s.renewed = s.steps
        s.crate = 0.7
        s.phase = ITERATION
    else:
        least = 1000.0 * abs(s.h) * _UNIT * n * size_of(s.base, s.weights)
        if least == 0.0:
            least = 1.0
        place = s.column
        s.shift = max(_UNIT**0.5 * abs(y[place]), least / s.weights[place])
        y[place] = y[place] + s.shift
        s.phase = COLUMN
    s.y[...] = y
    return s.base, ready


def iterate(s: Any, slope: Any) -> Any:
    """Correct the state: whether it converged, and whether it failed."""
    if s.iteration == 0:
        s.correction[...] = np.zeros(s.y.size)
        s.ratio = 0.0
        s.before = 0.0
    found = s.h * slope - s.rows[1]
    step = found - s.correction
    if s.kind == BDF:
        step = np.linalg.solve(s.matrix, s.h * slope - (s.rows[1] + s.correction))
        found = s.correction + step
    s.change = size_of(step, s.weights)
    s.correction[...] = found
    s.y[...] = s.rows[0] + s.first * s.correction
    converged = s.change <= 100.0 * s.size * _UNIT
    if not converged and (s.iteration != 0 or s.kind == BDF):
        if s.iteration != 0:
            shrinks = s.change / s.before if s.change <= 1024.0 * s.before else 1024.0
            s.ratio = max(s.ratio, shrinks)
            s.crate = max(0.2 * s.crate, shrinks)
        allowed = TESTS[s.kind, s.order - 1, 1] * (0.5 / (s.order + 2))
        converged = s.change * min(1.0, 1.5 * s.crate) / allowed <= 1.0
        if converged:
            s.estimate = max(s.estimate, s.ratio / abs(s.h * s.first))
            if s.estimate != 0.0:
                s.last = s.estimate
    fails = False
    if not converged:
        s.iteration = s.iteration + 1
        fails = s.iteration == 3 or (s.iteration >= 2 and s.change > 2.0 * s.before)
        s.before = s.change
    return converged, fails


def choose_order(s: Any, error: Any, failed: Any) -> Any:
    """The order that allows the largest step, and the ratio of this step to the last one."""
    q = s.order
    highest = ORDERS[0] if s.kind == ADAMS else ORDERS[1]
    up = 0.0
    if not failed and q < highest:
        larger = size_of(s.correction - s.rows[highest], s.weights) / TESTS[s.kind, q - 1, 2]
        up = 1.0 / (1.4 * larger ** (1.0 / (q + 2)) + 0.0000014)
    same = 1.0 / (1.2 * error ** (1.0 / (q + 1)) + 0.0000012)
    down = 0.0
    if q != 1:
        smaller = size_of(s.rows[q], s.weights) / TESTS[s.kind, q - 1, 0]
        down = 1.0 / (1.3 * smaller ** (1.0 / q) + 0.0000013)
    far = max(abs(s.h) * s.last, 0.000001)
    if s.kind == ADAMS:
        if q < highest:
            up = min(up, STABLE[min(q, 11)] / far)
        same = min(same, STABLE[q - 1] / far)
        if q > 1:
            down = min(down, STABLE[q - 2] / far)
        s.estimate = 0.0
    order = q
    ratio = same
    if (same >= up and same < down) or (same < up and up <= down):
        order = q - 1
        ratio = min(down, 1.0) if failed else down
    elif same < up:
        order = q + 1
        ratio = up
    is_enough = failed or ratio >= 1.1
    if s.kind == ADAMS and order <= q and ratio * far * 1.00001 >= STABLE[order - 1]:
        is_enough = True
    if is_enough and order > q:
        s.rows[order] = s.correction * (FORMULAS[s.kind, q - 1, q] / order)
    return order, ratio, is_enough


def choose_kind(s: Any, error: Any) -> Any:
    """The kind of formula for the next steps, and the ratio of their size to that of the last."""
    kind = s.kind
    ratio = 1.0
    power = 1.0 / (s.order + 1)
    near = min(s.order, 5) - 1
    this = 1.0 / (1.2 * error**power + 0.0000012)
    compared = error * (CONSTANTS[s.kind, near] / CONSTANTS[1 - s.kind, near])
    other = 1.0 / (1.2 * compared**power + 0.0000012)
    slower = this if s.kind == ADAMS else other
    far = (s.last if s.kind == ADAMS else s.norm) * abs(s.h)
    most = STABLE[s.order - 1] / far if far * slower > 0.00001 else 2.0 * slower
    slower = min(slower, most)
    if s.kind == BDF:
        exact = max(0.001, slower) ** power * compared > 1000.0 * _UNIT * s.size
        if slower * 5.0 >= 5.0 * this and exact:
            kind = ADAMS
            ratio = slower
    elif s.order <= 5:
        if error > 100.0 * s.size * _UNIT and s.estimate != 0.0:
            if other >= 5.0 * slower:
                kind = BDF
                ratio = other
        elif s.is_limited:
            kind = BDF
            ratio = 2.0
    return kind, ratio


def accept(s: Any, error: Any) -> Any:
    """Take up a step: the order and the ratio of the next one, and whether they change."""
    s.steps = s.steps + 1
    s.rows[...] = s.rows + FORMULAS[s.kind, s.order - 1][:, None] * s.correction
    s.count = s.count - 1
    s.failures = 0
    s.divergences = 0
    order = s.order
    ratio = 1.0
    changes = False
    kind = s.kind
    if s.count < 0:
        kind, ratio = choose_kind(s, error)
    if kind != s.kind:
        s.count = 20
        s.kind = kind
        s.last = 0.0
        changes = True
    else:
        s.wait = s.wait - 1
    return order, ratio, changes


def take_back(s: Any, converged: Any) -> None:
    """Go back to where a step began that failed."""
    s.t = s.start
    shift_rows(s, -1.0)
    s.grows = 2.0
    s.renews = s.kind == BDF and (not converged or s.failures >= 2)
    s.failures = s.failures + converged
    s.divergences = s.divergences + (not converged)
    least = abs(s.h) <= s.shortest * 1.00001
    if converged and (least or s.failures >= 10):
        raise RuntimeError(FAILS)
    if not converged and (least or s.divergences >= 10):
        raise RuntimeError(DIVERGES)


def begin_kind(s: Any) -> None:
    """Begin with the other kind of formula, of the same order."""
    s.renews = s.kind == BDF
    s.wait = s.order + 1
    first = FORMULAS[s.kind, s.order - 1, 0]
    s.rate = s.rate * first / s.first
    s.first = first


def end_step(s: Any, error: Any, converged: Any) -> Any:
    """Take up a step, or take it back, and choose the next one: whether it was taken."""
    taken = converged and error <= 1.0
    order = s.order
    ratio = 0.25
    changes = True
    before = s.kind
    if taken:
        order, ratio, changes = accept(s, error)
    else:
        take_back(s, converged)
    if converged and ((not changes and s.wait == 0) or not taken):
        order, ratio, changes = choose_order(s, error, not taken)
        if not changes:
            s.wait = 3
    elif taken and not changes and s.wait == 1 and order < (12 if before == ADAMS else 5):
        s.rows[12 if before == ADAMS else 5] = s.correction
    if converged and s.failures >= 2:
        ratio = min(ratio, 0.2)
    anew = converged and s.failures >= 3
    if anew:
        order = 1
        ratio = 0.1
        s.wait = 5
        s.phase = SLOPE
        s.y[...] = s.rows[0]
    if changes:
        change_step(s, order, ratio, anew)
        if taken:
            s.grows = 10.0
    if s.kind != before:
        begin_kind(s)
    return taken


def begin_step(s: Any) -> None:
    """Predict the state behind a step."""
    if s.kind == BDF and (abs(s.rate - 1.0) > 0.3 or s.steps >= s.renewed + 20):
        s.renews = True
    s.start = s.t
    s.t = s.t + s.h
    shift_rows(s, 1.0)
    s.size = size_of(s.rows[0], s.weights)
    s.iteration = 0
    s.y[...] = s.rows[0]
    s.phase = ITERATION


def go_on(s: Any, slope: Any, jacobian: Any) -> Any:
    """What a slope is for: whether a step was taken, and whether one is to begin."""
    taken = False
    begins = False
    if s.phase == SLOPE:
        s.rows[1] = s.h * slope
        begins = True
    else:
        ready = True
        if s.renews:
            slope, ready = next_column(s, slope, jacobian)
        if ready:
            converged, fails = iterate(s, slope)
            if fails and s.kind == BDF and not s.is_new:
                s.renews = True
                s.iteration = 0
                s.y[...] = s.rows[0]
            elif converged or fails:
                error = s.change if s.iteration == 0 else size_of(s.correction, s.weights)
                if converged:
                    s.is_new = False
                taken = end_step(s, error / TESTS[s.kind, s.order - 1, 1], converged)
                begins = s.phase != SLOPE
    return taken, begins


def values_at(s: Any, times: Any) -> Any:
    """The states at places within the last step."""
    part = ((times - s.t) / s.h)[:, None]
    rows = s.rows
    order = s.order
    found = rows[order] + 0.0 * part
    for k in range(order):
        found = rows[order - 1 - k] + part * found
    return found


def follow(s: Any, f: Any, jacobian: Any, times: Any, rtol: Any, atol: Any, most: Any) -> Any:
    """The states at places, of which the first one is where the steps are."""
    count = times.shape[0]
    found = np.zeros((count, s.y.size))
    found[0] = s.rows[0]
    k = 1
    while k < count:
        slope = f(s.y, s.t)
        s.calls = s.calls + 1
        taken, begins = go_on(s, slope, jacobian)
        if taken:
            inside = ((s.t - times) * s.h >= 0.0) & (np.arange(count) >= k)
            passed = np.sum(inside)
            found = np.where(inside[:, None], values_at(s, times), found)
            k = k + passed
            if passed > 0:
                s.since = s.steps
            elif s.steps - s.since >= most:
                raise RuntimeError(TOO_MANY)
            s.weights[...] = 1.0 / (rtol * np.abs(s.rows[0]) + atol)
            if _UNIT * size_of(s.rows[0], s.weights) > 1.0:
                raise RuntimeError(TOO_EXACT)
        if begins:
            begin_step(s)
    return found


def first_size(slope: Any, weights: Any, y: Any, t: Any, end: Any, rtol: Any, atol: Any) -> Any:
    """The size of the first step."""
    far = max(abs(t), abs(end))
    exact = np.max(rtol)
    if exact <= 0.0:
        exact = np.max(np.where(y == 0, 0.0, atol / np.where(y == 0, 1.0, np.abs(y))))
    exact = min(max(exact, 100.0 * _UNIT), 0.001)
    steep = size_of(slope, weights)
    size = min(1.0 / np.sqrt(1.0 / (exact * far * far) + exact * steep**2), abs(end - t))
    return size if end >= t else -size


def odeint(
    func: Any,
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,  # noqa: N803
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: Any = 0.0,
    hmax: Any = 0.0,
    hmin: Any = 0.0,
    ixpr: Any = 0,
    mxstep: Any = 0,
    mxhnil: Any = 0,
    mxordn: Any = 12,
    mxords: Any = 5,
    printmessg: Any = 0,
    tfirst: Any = False,
) -> Any:
    """``scipy.integrate.odeint``; where SciPy warns that it has given up, the program ends."""
    if full_output or tcrit is not None or ml is not None or mu is not None:
        raise NotImplementedError("scipy.integrate.odeint with full_output, tcrit, ml or mu")
    if mxordn != 12 or mxords != 5:
        raise NotImplementedError("scipy.integrate.odeint with limits of orders")
    more = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    rtol = 1.49012e-8 if rtol is None else rtol
    atol = 1.49012e-8 if atol is None else atol
    times = np.asarray(t) + 0.0
    y = np.ravel(np.array(y0) + 0.0)

    def f(state: Any, time: Any) -> Any:
        found = func(time, state, *more) if tfirst else func(state, time, *more)
        return np.ravel(np.asarray(found, dtype=float))

    def derivatives(state: Any, time: Any) -> Any:
        found = Dfun(time, state, *more) if tfirst else Dfun(state, time, *more)
        found = np.asarray(found, dtype=float)
        return found.T if col_deriv else found

    jacobian = None if Dfun is None else derivatives
    slope = f(y, times[0])
    weights = 1.0 / (rtol * np.abs(y) + atol)
    h = h0
    if h0 == 0.0:
        h = first_size(slope, weights, y, times[0], times[1], rtol, atol)
    if hmax > 0.0:
        h = h / max(1.0, abs(h) / hmax)
    s = Steps(y, slope, times[0], h, weights, (1.0 / hmax if hmax > 0.0 else 0.0, hmin))
    s.phase = SLOPE
    return follow(s, f, jacobian, times, rtol, atol, 500 if mxstep == 0 else mxstep)
