"""``scipy.integrate.quad`` by the adaptive rules of QUADPACK (Piessens and others 1983).

An interval is halved where its error is the largest, and the sums are extrapolated by the epsilon
algorithm. One loop has all evaluations: of both halves, or at first twice of the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
_HUGE = float(np.finfo(float).max)
_TABLE = 50


def _mirrored(half: Any, sign: float) -> Any:
    return np.array([*half, *[sign * value for value in half[-2::-1]]])


_NODES_21 = [0.995657163025808080735527280689003, 0.973906528517171720077964012084452]
_NODES_21 += [0.930157491355708226001207180059508, 0.865063366688984510732096688423493]
_NODES_21 += [0.780817726586416897063717578345042, 0.679409568299024406234327365114874]
_NODES_21 += [0.562757134668604683339000099272694, 0.433395394129247190799265943165784]
_NODES_21 += [0.294392862701460198131126603103866, 0.148874338981631210884826001129720, 0.0]
_WEIGHTS_21 = [0.011694638867371874278064396062192, 0.032558162307964727478818972459390]
_WEIGHTS_21 += [0.054755896574351996031381300244580, 0.075039674810919952767043140916190]
_WEIGHTS_21 += [0.093125454583697605535065465083366, 0.109387158802297641899210590325805]
_WEIGHTS_21 += [0.123491976262065851077958109831074, 0.134709217311473325928054001771707]
_WEIGHTS_21 += [0.142775938577060080797094273138717, 0.147739104901338491374841515972068]
_WEIGHTS_21 += [0.149445554002916905664936468389821]
_GAUSS_10 = [0.0, 0.066671344308688137593568809893332, 0.0, 0.149451349150580593145776339657697]
_GAUSS_10 += [0.0, 0.219086362515982043995534934228163, 0.0, 0.269266719309996355091226921569469]
_GAUSS_10 += [0.0, 0.295524224714752870173892994651338, 0.0]
_NODES_15 = [0.991455371120812639206854697526329, 0.949107912342758524526189684047851]
_NODES_15 += [0.864864423359769072789712788640926, 0.741531185599394439863864773280788]
_NODES_15 += [0.586087235467691130294144838258730, 0.405845151377397166906606412076961]
_NODES_15 += [0.207784955007898467600689403773245, 0.0]
_WEIGHTS_15 = [0.022935322010529224963732008058970, 0.063092092629978553290700663189204]
_WEIGHTS_15 += [0.104790010322250183839876322541518, 0.140653259715525918745189590510238]
_WEIGHTS_15 += [0.169004726639267902826583426598550, 0.190350578064785409913256402421014]
_WEIGHTS_15 += [0.204432940075298892414161999234649, 0.209482141084727828012999174891714]
_GAUSS_7 = [0.0, 0.129484966168869693270611432679082, 0.0, 0.279705391489276667901467771423780]
_GAUSS_7 += [0.0, 0.381830050505118944950369775488975, 0.0, 0.417959183673469387755102040816327]
RULES = {
    points: (_mirrored(nodes, -1.0), _mirrored(kronrod, 1.0), _mirrored(gauss, 1.0))
    for points, nodes, kronrod, gauss in (
        (21, _NODES_21, _WEIGHTS_21, _GAUSS_10),
        (15, _NODES_15, _WEIGHTS_15, _GAUSS_7),
    )
}
"""By their points: the nodes, and the weights by Kronrod and by Gauss."""


def of_rule(values: Any, length: Any, weights: Any, gauss: Any) -> Any:
    """Of an interval: the integral, its error, and those of what is positive and what varies."""
    half = 0.5 * length
    found = np.sum(weights * values)
    rough = np.sum(gauss * values)
    positive = np.sum(weights * np.abs(values)) * abs(half)
    varies = np.sum(weights * np.abs(values - 0.5 * found)) * abs(half)
    error = abs((found - rough) * half)
    if varies != 0.0 and error != 0.0:
        error = varies * min(1.0, (200.0 * error / varies) ** 1.5)
    if positive > _TINY / (50.0 * _EPS):
        error = max(50.0 * _EPS * positive, error)
    return found * half, error, positive, varies


def extrapolated(table: Any, n: Any, last: Any, times: Any) -> Any:
    """By the epsilon algorithm, the limit of a sequence: its length, the limit, its error."""
    times = times + 1
    error = _HUGE
    found = table[n - 1]
    length = n
    if n >= 3:
        table[n + 1] = table[n - 1]
        steps = (n - 1) // 2
        table[n - 1] = _HUGE
        k = n - 1
        i = 0
        exact = False
        while i < steps and not exact:
            i = i + 1
            limit = table[k + 2]
            e0, e1, e2 = table[k - 2], table[k - 1], limit
            d2, d3 = e2 - e1, e1 - e0
            small2 = abs(d2) <= max(abs(e2), abs(e1)) * _EPS
            small3 = abs(d3) <= max(abs(e1), abs(e0)) * _EPS
            if small2 and small3:
                exact = True
                found = limit
                error = max(abs(d2) + abs(d3), 5.0 * _EPS * abs(limit))
            else:
                e3 = table[k] * 1.0
                table[k] = e1
                d1 = e1 - e3
                ends = abs(d1) <= max(abs(e1), abs(e3)) * _EPS or small2 or small3
                slope = 0.0
                if not ends:
                    slope = 1.0 / d1 + 1.0 / d2 - 1.0 / d3
                    ends = abs(slope * e1) <= 1e-4
                if ends:
                    length = 2 * i - 1
                    i = steps
                else:
                    limit = e1 + 1.0 / slope
                    table[k] = limit
                    k = k - 2
                    this = abs(d2) + abs(limit - e2) + abs(d3)
                    if this <= error:
                        error = this
                        found = limit
        if not exact:
            if length == _TABLE:
                length = _TABLE - 1
            shift_table(table, n, length, steps)
            if times < 4:
                last[times - 1] = found
                error = _HUGE
            else:
                error = np.sum(np.abs(found - last))
                last[:2] = last[1:].copy()
                last[2] = found
            error = max(error, 5.0 * _EPS * abs(found))
    else:
        error = max(error, 5.0 * _EPS * abs(found))
    return length, found, error, times


def shift_table(table: Any, n: Any, length: Any, steps: Any) -> None:
    """Move the table on, and leave out what is too old."""
    begin = 1 if n % 2 == 0 else 0
    places = np.arange(_TABLE + 2)
    moved = (places >= begin) & (places <= begin + 2 * steps) & ((places - begin) % 2 == 0)
    table[...] = np.where(moved, table[np.minimum(places + 2, _TABLE + 1)], table)
    if n != length:
        shifted = table[np.minimum(places + (n - length), _TABLE + 1)]
        table[...] = np.where(places < length, shifted, table)


class Search:
    """What is known of an integral: its parts, and what was extrapolated from their sums."""

    def __init__(self, lo: Any, hi: Any, limit: Any) -> None:
        self.left = np.full(limit, lo)
        self.right = np.full(limit, hi)
        self.parts = np.zeros(limit)
        self.errors = np.zeros(limit)
        self.table = np.zeros(_TABLE + 2)
        self.three = np.zeros(3)
        self.found = 0.0
        self.error = _HUGE
        self.sum = 0.0
        self.error_sum = 0.0
        self.small = 0.375 * abs(hi - lo)
        self.large = 0.0
        self.test = 0.0
        self.lost = 0.0
        self.bound = 0.0
        self.ints = np.zeros(13, dtype=np.int64)


_COUNT, _WORST, _RANK, _LENGTH, _TIMES, _STILL, _EXTRAPOLATES, _NO_MORE = range(8)
_NOISE_1, _NOISE_2, _NOISE_3, _TROUBLE, _IS_DONE = range(8, 13)
"""Where the whole numbers and the conditions of a search are."""


def begin_with(s: Any, whole: Any, epsabs: Any, epsrel: Any) -> None:
    """Take up the integral over the whole interval."""
    found, error, positive, varies = whole
    s.parts[0] = found
    s.errors[0] = error
    s.table[0] = found
    s.found = found
    s.sum = found
    s.error_sum = error
    s.bound = max(epsabs, epsrel * abs(found))
    s.ints[_COUNT] = 1
    s.ints[_RANK] = 1
    s.ints[_LENGTH] = 2
    noise = error <= 100.0 * _EPS * positive and error > s.bound
    enough = error <= s.bound and error != varies
    if noise or enough or error == 0.0 or s.errors.shape[0] == 1:
        s.error = error
        s.ints[_IS_DONE] = 2


def halve(s: Any, one: Any, other: Any, middle: Any, epsabs: Any, epsrel: Any) -> Any:
    """Take up both halves of an interval: the errors before and behind, and how wide each is."""
    n, worst = s.ints[_COUNT], s.ints[_WORST]
    part, error = one[0] + other[0], one[1] + other[1]
    before, old = s.errors[worst] * 1.0, s.parts[worst] * 1.0
    a, b = s.left[worst] * 1.0, s.right[worst] * 1.0
    s.error_sum = s.error_sum + error - before
    s.sum = s.sum + part - old
    if one[3] != one[1] and other[3] != other[1]:
        if abs(old - part) <= 1e-5 * abs(part) and error >= 0.99 * before:
            if s.ints[_EXTRAPOLATES] == 1:
                s.ints[_NOISE_2] += 1
            else:
                s.ints[_NOISE_1] += 1
        if n >= 10 and error > before:
            s.ints[_NOISE_3] += 1
    swap = other[1] > one[1]
    s.left[worst] = middle if swap else a
    s.right[worst] = b if swap else middle
    s.left[n] = a if swap else middle
    s.right[n] = middle if swap else b
    s.parts[worst] = other[0] if swap else one[0]
    s.parts[n] = one[0] if swap else other[0]
    s.errors[worst] = max(one[1], other[1])
    s.errors[n] = min(one[1], other[1])
    s.ints[_COUNT] = n + 1
    s.bound = max(epsabs, epsrel * abs(s.sum))
    if s.ints[_NOISE_1] + s.ints[_NOISE_2] >= 10 or s.ints[_NOISE_3] >= 20:
        s.ints[_TROUBLE] = 2
    if n + 1 == s.errors.shape[0]:
        s.ints[_TROUBLE] = 1
    if max(abs(a), abs(b)) <= (1.0 + 100.0 * _EPS) * (abs(middle) + 1000.0 * _TINY):
        s.ints[_TROUBLE] = 4
    above = np.sum(s.errors > s.errors[worst])
    s.ints[_RANK] = min(s.ints[_RANK], above + 1)
    return before, error, abs(middle - a)


def interval_of_rank(s: Any) -> Any:
    """Which interval has the error of the rank that is looked at."""
    return np.argsort(-s.errors, kind="stable")[s.ints[_RANK] - 1]


def look_further(s: Any) -> Any:
    """Whether there is another large interval, of which the error is less."""
    n, limit = s.ints[_COUNT], s.errors.shape[0]
    last = n if n <= 2 + limit // 2 else limit + 3 - n
    found = False
    while not found and s.ints[_RANK] <= last:
        place = interval_of_rank(s)
        found = abs(s.right[place] - s.left[place]) > s.small
        if not found:
            s.ints[_RANK] += 1
    return found


def extrapolate(s: Any, epsabs: Any, epsrel: Any) -> None:
    """Extrapolate the sums, and go back to the largest error."""
    s.ints[_LENGTH] += 1
    s.table[s.ints[_LENGTH] - 1] = s.sum
    n, found, error, times = extrapolated(s.table, s.ints[_LENGTH], s.three, s.ints[_TIMES])
    s.ints[_LENGTH] = n
    s.ints[_TIMES] = times
    s.ints[_STILL] += 1
    if s.ints[_STILL] > 5 and s.error < 1e-3 * s.error_sum:
        s.ints[_TROUBLE] = 5
    if error < s.error:
        s.ints[_STILL] = 0
        s.error = error
        s.found = found
        s.lost = s.large
        s.test = max(epsabs, epsrel * abs(found))
        if error <= s.test:
            s.ints[_IS_DONE] = 1
    if s.ints[_IS_DONE] == 0:
        if n == 1:
            s.ints[_NO_MORE] = 1
        if s.ints[_TROUBLE] == 5:
            s.ints[_IS_DONE] = 1
        s.ints[_RANK] = 1
        s.ints[_EXTRAPOLATES] = 0
        s.small = s.small * 0.5
        s.large = s.error_sum


def go_on(s: Any, before: Any, error: Any, width: Any, epsabs: Any, epsrel: Any) -> None:
    """After an interval was halved: extrapolate where that is due, and choose the next one."""
    place = interval_of_rank(s)
    if s.error_sum <= s.bound:
        s.ints[_IS_DONE] = 3
    elif s.ints[_TROUBLE] != 0:
        s.ints[_IS_DONE] = 1
    elif s.ints[_COUNT] == 2:
        s.large = s.error_sum
        s.test = s.bound
        s.table[1] = s.sum
    elif s.ints[_NO_MORE] == 0:
        s.large = s.large - before
        if width > s.small:
            s.large = s.large + error
        begins = abs(s.right[place] - s.left[place]) <= s.small
        if s.ints[_EXTRAPOLATES] == 0 and begins:
            s.ints[_EXTRAPOLATES] = 1
            s.ints[_RANK] = 2
        if s.ints[_EXTRAPOLATES] == 1:
            further = False
            if s.ints[_NOISE_2] < 5 and s.large > s.test:
                further = look_further(s)
            if not further:
                extrapolate(s, epsabs, epsrel)
    s.ints[_WORST] = interval_of_rank(s)


def result_of(s: Any) -> Any:
    """The integral and its error: of the sum, or extrapolated."""
    by_sum = s.ints[_IS_DONE] == 3 or s.error == _HUGE
    if s.ints[_IS_DONE] == 1 and (s.ints[_TROUBLE] != 0 or s.ints[_NOISE_2] >= 5):
        if s.ints[_NOISE_2] >= 5:
            s.error = s.error + s.lost
        if s.found != 0.0 and s.sum != 0.0:
            by_sum = by_sum or s.error / abs(s.found) > s.error_sum / abs(s.sum)
        else:
            by_sum = by_sum or s.error > s.error_sum
    if by_sum and s.ints[_IS_DONE] != 2:
        s.found = np.sum(s.parts)
        s.error = s.error_sum
    return s.found, s.error


def integral(f: Any, lo: Any, hi: Any, points: Any, epsabs: Any, epsrel: Any, limit: Any) -> Any:
    """The integral of a function over an interval, and its error."""
    nodes, weights, gauss = RULES[points]
    values = np.zeros(2 * points)
    s = Search(lo, hi, limit)
    first = True
    while s.ints[_IS_DONE] == 0:
        worst = s.ints[_WORST]
        a, b = s.left[worst] * 1.0, s.right[worst] * 1.0
        middle = b if first else 0.5 * (a + b)
        begin = a if first else middle
        centres = np.stack([0.5 * (a + middle), 0.5 * (begin + b)])
        halves = np.stack([0.5 * (middle - a), 0.5 * (b - begin)])
        places = (centres[:, None] + halves[:, None] * nodes).ravel()
        for k in range(2 * points):
            values[k] = f(places[k])
        one = of_rule(values[:points], middle - a, weights, gauss)
        if first:
            first = False
            begin_with(s, one, epsabs, epsrel)
        else:
            other = of_rule(values[points:], b - middle, weights, gauss)
            before, error, width = halve(s, one, other, middle, epsabs, epsrel)
            go_on(s, before, error, width, epsabs, epsrel)
    return result_of(s)


def is_infinite(x: Any) -> Any:
    """Whether a bound is known to be infinite; of one that the run decides, programs say no."""
    return bool(np.isinf(x))


def quad(
    func: Any,
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
    limit: Any = 50,
    points: Any = None,
    weight: Any = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: Any = 50,
    limlst: Any = 50,
    complex_func: Any = False,
) -> Any:
    """``scipy.integrate.quad``: the integral and its error, without SciPy's warnings."""
    if full_output or points is not None or weight is not None or complex_func:
        raise NotImplementedError(
            "scipy.integrate.quad with full_output, points, weight or complex"
        )
    more = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    start, end = a + 0.0, b + 0.0
    below, above = is_infinite(start), is_infinite(end)
    if (below and start > 0) or (above and end < 0):
        raise NotImplementedError("scipy.integrate.quad from infinity downwards: change the sign")

    def value(x: Any) -> Any:
        return np.float64(func(x, *more))

    def mapped(t: Any) -> Any:
        far = (1.0 - t) / t
        if below and above:
            return (value(far) + value(-far)) / t / t
        return value(end - far if below else start + far) / t / t

    if below or above:
        found, error = integral(mapped, 0.0, 1.0, 15, epsabs, epsrel, limit)
        return float(found), float(error)
    if not (np.isfinite(start) and np.isfinite(end)):
        raise ValueError("scipy.integrate.quad: a bound that the run decides is not finite")
    sign = np.where(end < start, -1.0, 1.0)[()]
    lo, hi = np.minimum(start, end), np.maximum(start, end)
    found, error = integral(value, lo, hi, 21, epsabs, epsrel, limit)
    return float(found * sign), float(error)


def fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: Any = 5) -> Any:
    """``scipy.integrate.fixed_quad``: by the rule of Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    places = (b - a) * (nodes + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(weights * func(places, *args), axis=-1), None
