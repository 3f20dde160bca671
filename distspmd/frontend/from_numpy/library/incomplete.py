"""Incomplete beta and gamma functions, by continued fractions and series (Lentz, 1976)."""

from __future__ import annotations

from typing import Any

import numpy as np

_STEPS = 300
_LEAST = 1e-300
_EPS = 2.220446049250313e-16


def stirling_error(n: Any) -> Any:
    """What Stirling's formula lacks of the logarithm of the factorial (Loader, 2000)."""
    from scipy.special import gammaln  # type: ignore[import-untyped,unused-ignore]

    large = np.maximum(n, 16.0)
    s = large * large
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / s) / s) / s) / s) / large
    small = np.clip(n, 1e-300, 16.0)
    direct = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - 0.9189385332046728
    return np.where(n < 16.0, direct, series)


def deviance(x: Any, m: Any) -> Any:
    """``x log(x / m) + m - x``, also where both are close (Loader, 2000)."""
    apart = x - m
    v = apart / (x + m)
    close = np.abs(apart) < 0.1 * (x + m)
    w = np.where(close, v * v, 0.0)
    total = np.zeros(np.shape(w))
    for k in range(12, 0, -1):
        total = (total + 1.0 / (2 * k + 1)) * w
    series = apart * v + 2.0 * x * v * total
    return np.where(close, series, x * np.log(np.maximum(x, _LEAST) / m) + m - x)


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """``x**a (1 - x)**b / B(a, b)``, inside."""
    n = a + b
    y = 1.0 - x
    sizes = stirling_error(n) - stirling_error(a) - stirling_error(b)
    logs = sizes - deviance(a, n * x) - deviance(b, n * y)
    return np.exp(logs) * np.sqrt(a * b / (2.0 * np.pi * n))


def gamma_density(a: Any, x: Any) -> Any:
    """``x**a exp(-x) / gamma(a)``, above zero."""
    return np.exp(-stirling_error(a) - deviance(a, x)) * np.sqrt(a / (2.0 * np.pi))


def not_zero(x: Any) -> Any:
    """A number that can be divided by."""
    return np.where(np.abs(x) < _LEAST, _LEAST, x)


def beta_fraction(a: Any, b: Any, x: Any) -> Any:
    """The continued fraction of the incomplete beta function, for x below its mean."""
    c = np.ones(np.shape(x))
    d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0))
    found = d
    m = 0
    far = 1.0
    while m < _STEPS and far > _EPS:
        m += 1
        even = m * (b - m) * x / ((a - 1.0 + 2 * m) * (a + 2 * m))
        d = 1.0 / not_zero(1.0 + even * d)
        c = not_zero(1.0 + even / c)
        found = found * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1.0 + 2 * m))
        d = 1.0 / not_zero(1.0 + odd * d)
        c = not_zero(1.0 + odd / c)
        found = found * d * c
        far = np.max(np.abs(d * c - 1.0), initial=0.0)
    return found


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function."""
    a, b, x = np.broadcast_arrays(np.asarray(a) + 0.0, np.asarray(b) + 0.0, np.asarray(x) + 0.0)
    inside = (x > 0.0) & (x < 1.0) & (a > 0.0) & (b > 0.0)
    one, other, at = np.where(inside, a, 1.0), np.where(inside, b, 1.0), np.where(inside, x, 0.5)
    turned = at > (one + 1.0) / (one + other + 2.0)
    p, q = np.where(turned, other, one), np.where(turned, one, other)
    part = beta_density(one, other, at) * beta_fraction(p, q, np.where(turned, 1.0 - at, at)) / p
    found = np.where(turned, 1.0 - part, part)
    ends = np.where((a > 0.0) & (b > 0.0), np.where(x == 0.0, 0.0, 1.0), np.nan)
    return np.where(inside, found, np.where((x == 0.0) | (x == 1.0), ends, np.nan))[()]


def gamma_series(a: Any, x: Any) -> Any:
    """The lower part over the density, for small x."""
    term = 1.0 / a
    found = term
    n = 0
    while n < _STEPS * 10 and np.max(np.abs(term / found), initial=0.0) > _EPS / 4:
        n += 1
        term = term * x / (a + n)
        found = found + term
    return found


def gamma_fraction(a: Any, x: Any) -> Any:
    """The upper part over the density, for large x."""
    b = x + 1.0 - a
    c = np.full(np.shape(x), 1.0 / _LEAST)
    d = 1.0 / not_zero(b)
    found = d
    n = 0
    far = 1.0
    while n < _STEPS * 10 and far > _EPS:
        n += 1
        above = -n * (n - a)
        b = b + 2.0
        d = 1.0 / not_zero(above * d + b)
        c = not_zero(b + above / c)
        found = found * d * c
        far = np.max(np.abs(d * c - 1.0), initial=0.0)
    return found


def gamma_parts(a: Any, x: Any) -> Any:
    """The regularised lower and upper incomplete gamma function."""
    a, x = np.broadcast_arrays(np.asarray(a) + 0.0, np.asarray(x) + 0.0)
    inside = (x > 0.0) & (a > 0.0) & np.isfinite(x)
    shape, at = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    low = at < shape + 1.0
    density = gamma_density(shape, at)
    below = density * gamma_series(shape, np.where(low, at, 0.5 * shape))
    above = density * gamma_fraction(shape, np.where(low, shape + 2.0, at))
    lower, upper = np.where(low, below, 1.0 - above), np.where(low, 1.0 - below, above)
    valid = (a >= 0.0) & (x >= 0.0) & ((a > 0.0) | (x > 0.0))
    least = np.where((x == 0.0) & (a > 0.0), 0.0, 1.0)
    outside = np.where(valid, least, np.nan)
    return np.where(inside, lower, outside)[()], np.where(inside, upper, 1.0 - outside)[()]


def gammainc(a: Any, x: Any) -> Any:
    """The lower part."""
    return gamma_parts(a, x)[0]


def gammaincc(a: Any, x: Any) -> Any:
    """The upper part."""
    return gamma_parts(a, x)[1]


def stdtr(df: Any, t: Any) -> Any:
    """Chances of Student's distribution to be below."""
    t = np.asarray(t) + 0.0
    half = 0.5 * betainc(np.asarray(df) / 2.0, 0.5, df / (df + t * t))
    return np.where(t > 0.0, 1.0 - half, half)[()]


def fdtrc(dfn: Any, dfd: Any, x: Any) -> Any:
    """Chances of the F distribution to be above."""
    x = np.asarray(x) + 0.0
    return betainc(np.asarray(dfd) / 2.0, np.asarray(dfn) / 2.0, dfd / (dfd + dfn * x))


def fdtr(dfn: Any, dfd: Any, x: Any) -> Any:
    """Chances of the F distribution to be below."""
    x = np.asarray(x) + 0.0
    return betainc(np.asarray(dfn) / 2.0, np.asarray(dfd) / 2.0, dfn * x / (dfd + dfn * x))


def chdtrc(v: Any, x: Any) -> Any:
    """Chances of the chi-square distribution to be above."""
    return gammaincc(np.asarray(v) / 2.0, np.asarray(x) / 2.0)


def chdtr(v: Any, x: Any) -> Any:
    """Chances of the chi-square distribution to be below."""
    return gammainc(np.asarray(v) / 2.0, np.asarray(x) / 2.0)
