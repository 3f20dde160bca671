"""Statistics of samples, and how likely they are by chance, as ``scipy.stats`` computes them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.incomplete import betainc, fdtrc, gammaincc, stdtr

Test = namedtuple("Test", ["statistic", "pvalue"])
Line = namedtuple("Line", ["slope", "intercept", "rvalue", "pvalue", "stderr"])
Mode = namedtuple("Mode", ["mode", "count"])


def side_of(value: Any, alternative: Any) -> Any:
    """A value whose chance to be below is asked for, and how often it counts."""
    if alternative == "less":
        return value, 1.0
    if alternative == "greater":
        return -value, 1.0
    if alternative != "two-sided":
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    return -np.abs(value), 2.0


def of_student(t: Any, df: Any, alternative: Any) -> Any:
    """How likely a value of Student's distribution is."""
    side, times = side_of(t, alternative)
    return times * stdtr(df, side)


def pearsonr(
    x: Any, y: Any, *, alternative: Any = "two-sided", method: Any = None, axis: Any = 0
) -> Any:
    """The correlation of two samples."""
    if method is not None:
        raise NotImplementedError("scipy.stats.pearsonr with a method")
    one, other = np.moveaxis(np.asarray(x), axis, -1), np.moveaxis(np.asarray(y), axis, -1)
    n = one.shape[-1]
    constant = np.all(one == one[..., :1], axis=-1) | np.all(other == other[..., :1], axis=-1)
    a, b = one - np.mean(one, -1, keepdims=True), other - np.mean(other, -1, keepdims=True)
    sizes = np.sqrt(np.sum(a * a, axis=-1)) * np.sqrt(np.sum(b * b, axis=-1))
    r = np.sum(a * b, axis=-1) / np.where(constant, 1.0, sizes)
    r = np.where(constant, np.nan, np.clip(r, -1.0, 1.0))[()]
    if n == 2:
        r = np.round(r)
        return Test(r, np.where(np.isnan(r), np.nan, 1.0)[()])
    half = n / 2 - 1
    side, times = side_of(r, alternative)
    return Test(r, times * betainc(half, half, (1.0 + side) / 2.0))


def ranked(a: Any) -> Any:
    """Ranks from 1 on; equal values have their mean rank."""
    order = np.argsort(a, kind="stable")
    inverse = np.argsort(order, kind="stable")
    values = a[order]
    n = values.shape[0]
    first = np.searchsorted(values, values, "left")
    last = np.searchsorted(values, values, "right")
    return ((first + last + 1) * 0.5)[inverse] if n > 0 else values * 0.5


def rankdata(
    a: Any, method: Any = "average", *, axis: Any = None, nan_policy: Any = "propagate"
) -> Any:
    """Ranks of values."""
    values = np.asarray(a)
    if axis is not None and values.ndim > 1:
        return np.apply_along_axis(rankdata, axis, values, method)
    values = np.ravel(values)
    order = np.argsort(values, kind="stable")
    places = np.argsort(order, kind="stable")
    if method == "ordinal":
        return places + 1
    in_order = values[order]
    if method == "average":
        return ranked(values)
    if method == "min":
        return (np.searchsorted(in_order, in_order, "left") + 1)[places]
    if method == "max":
        return np.searchsorted(in_order, in_order, "right")[places]
    if method != "dense":
        raise ValueError(f'unknown method "{method}"')
    new = np.concatenate((np.ones(1, dtype=bool), in_order[1:] != in_order[:-1]))
    return np.cumsum(new)[places]


def spearmanr(
    a: Any,
    b: Any = None,
    axis: Any = 0,
    nan_policy: Any = "propagate",
    alternative: Any = "two-sided",
) -> Any:
    """The correlation of the ranks of two samples."""
    both = np.asarray(a)
    if b is not None:
        if axis != 0 or both.ndim != 1:
            raise NotImplementedError("scipy.stats.spearmanr of other than two vectors")
        one, other = ranked(both), ranked(np.asarray(b))
    else:
        if axis != 0 or both.shape[1] != 2:
            raise NotImplementedError("scipy.stats.spearmanr of more than two variables")
        one, other = ranked(both[:, 0]), ranked(both[:, 1])
    n = one.shape[0]
    r = np.corrcoef(one, other)[1, 0]
    t = r * np.sqrt(np.maximum((n - 2) / ((r + 1.0) * (1.0 - r)), 0))
    return Test(r, of_student(t, n - 2, alternative))


def linregress(x: Any, y: Any, alternative: Any = "two-sided") -> Any:
    """The line of least squares."""
    x, y = np.asarray(x), np.asarray(y)
    n = x.shape[0]
    a, b = x - np.mean(x), y - np.mean(y)
    xx, yy, xy = np.mean(a * a), np.mean(b * b), np.mean(a * b)
    if xx == 0:
        raise ValueError("Cannot calculate a linear regression if all x values are identical")
    r = np.where(yy == 0, 0.0, xy / np.sqrt(xx * np.where(yy == 0, 1.0, yy)))
    r = np.clip(r, -1.0, 1.0)[()]
    slope = xy / xx
    intercept = np.mean(y) - slope * np.mean(x)
    if n == 2:
        return Line(slope, intercept, r, np.where(y[0] == y[1], 1.0, 0.0)[()], 0.0)
    df = n - 2
    t = r * np.sqrt(df / ((1.0 - r + 1.0e-20) * (1.0 + r + 1.0e-20)))
    error = np.sqrt((1 - r**2) * yy / xx / df)
    return Line(slope, intercept, r, of_student(t, df, alternative), error)


def ttest_1samp(
    a: Any,
    popmean: Any,
    axis: Any = 0,
    nan_policy: Any = "propagate",
    alternative: Any = "two-sided",
) -> Any:
    """Whether a sample has a mean."""
    values = np.asarray(a)
    n = values.shape[axis]
    error = np.sqrt(np.var(values, axis=axis, ddof=1) / n)
    t = (np.mean(values, axis=axis) - popmean) / error
    return Test(t, of_student(t, n - 1, alternative))


def ttest_rel(
    a: Any,
    b: Any,
    axis: Any = 0,
    nan_policy: Any = "propagate",
    alternative: Any = "two-sided",
) -> Any:
    """Whether two samples that belong together have the same mean."""
    return ttest_1samp(np.asarray(a) - np.asarray(b), 0.0, axis, nan_policy, alternative)


def ttest_ind(
    a: Any,
    b: Any,
    *,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: Any = "propagate",
    alternative: Any = "two-sided",
) -> Any:
    """Whether two samples have the same mean."""
    one, other = np.asarray(a), np.asarray(b)
    n, m = one.shape[axis], other.shape[axis]
    v, w = np.var(one, axis=axis, ddof=1), np.var(other, axis=axis, ddof=1)
    if equal_var:
        df = n + m - 2.0
        error = np.sqrt(((n - 1) * v + (m - 1) * w) / df * (1.0 / n + 1.0 / m))
    else:
        df = (v / n + w / m) ** 2 / ((v / n) ** 2 / (n - 1) + (w / m) ** 2 / (m - 1))
        error = np.sqrt(v / n + w / m)
    t = (np.mean(one, axis=axis) - np.mean(other, axis=axis)) / error
    return Test(t, of_student(t, df, alternative))


def f_oneway(*samples: Any, axis: Any = 0) -> Any:
    """Whether samples have the same mean."""
    if axis != 0:
        raise NotImplementedError("scipy.stats.f_oneway along another axis than 0")
    parts = [np.asarray(sample) * 1.0 for sample in samples]
    n = sum(part.shape[0] for part in parts)
    middle = sum(np.sum(part, axis=0) for part in parts) / n
    k = len(parts)
    between = sum(part.shape[0] * (np.mean(part, axis=0) - middle) ** 2 for part in parts)
    within = sum(np.sum((part - np.mean(part, axis=0)) ** 2, axis=0) for part in parts)
    f = (between / (k - 1)) / (within / (n - k))
    return Test(f, fdtrc(k - 1.0, n - k + 0.0, f))


def chisquare(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: Any = 0) -> Any:
    """Whether counts are as they are expected to be."""
    counts = np.asarray(f_obs) * 1.0
    expected = np.mean(counts, axis=axis, keepdims=True) if f_exp is None else np.asarray(f_exp)
    found = np.sum((counts - expected) ** 2 / expected, axis=axis)
    df = counts.shape[axis] - 1 - ddof
    return Test(found, gammaincc(df / 2.0, found / 2.0))


def iqr(x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0) -> Any:
    """The range between two quartiles."""
    low, high = rng
    return (np.percentile(x, high, axis=axis) - np.percentile(x, low, axis=axis)) / scale


def median_abs_deviation(x: Any, axis: Any = 0, center: Any = np.median, scale: Any = 1.0) -> Any:
    """The median of distances from the middle."""
    middle = center(x, axis=axis)
    if axis is not None:
        middle = np.expand_dims(middle, axis)
    apart = np.median(np.abs(x - middle), axis=axis)
    return apart / (0.6744897501960817 if scale == "normal" else scale)


def margins(a: Any) -> Any:
    """The sums of a table along all dimensions but one, of each."""
    table = np.asarray(a)
    found = []
    for k in range(table.ndim):
        rest = tuple(j for j in range(table.ndim) if j != k)
        found.append(np.sum(table, axis=rest, keepdims=True))
    return found


def expected_freq(observed: Any) -> Any:
    """How often each place of a table would be found if its dimensions had nothing in common."""
    table = np.asarray(observed, dtype=np.float64)
    found = np.ones((1,) * table.ndim)
    for sums in margins(table):
        found = found * sums
    return found / np.sum(table) ** (table.ndim - 1)
