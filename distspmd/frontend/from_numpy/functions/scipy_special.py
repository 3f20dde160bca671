"""``scipy.special``, written out: error functions, gammas, and sums of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arithmetic import converted
from distspmd.frontend.from_numpy.functions.registry import named
from distspmd.frontend.from_numpy.functions.written_out import read_in_place, written_out_in
from distspmd.frontend.from_numpy.library import bessel_j
from distspmd.frontend.from_numpy.library.gammas import sign_of_gamma
from distspmd.frontend.from_numpy.library.quantiles_of_normal import normal_quantile
from distspmd.frontend.from_numpy.values import Tensor


def _elementwise(name: str, operation: str) -> None:
    """Add a function of elements that is an operation."""

    @named("scipy.special", name)
    def handler(run: Any, x: Any) -> Tensor:
        tensor = run.tracer.tensor(x)
        kind = tensor.dtype if tensor.dtype == np.float32 else np.dtype(np.float64)
        if tensor.dtype.kind == "c":
            run.tracer.refuse(f"scipy.special.{name} of complex numbers")
        whole = converted(run.tracer, tensor, kind)
        return Tensor(whole.shape, kind, lambda i: apply(operation, whole.element(i)))


for _name, _operation in {
    "erf": "erf",
    "erfc": "erfc",
    "gamma": "gamma",
    "gammaln": "lgamma",
    "expit": "sigmoid",
}.items():
    _elementwise(_name, _operation)


@written_out_in("scipy.special")
def _logit(x: Any) -> Any:
    return np.log(x / (1 - np.asarray(x)))


@written_out_in("scipy.special")
def _xlogy(x: Any, y: Any) -> Any:
    none = np.equal(x, 0) & ~np.isnan(y)
    return np.where(none, 0.0, x * np.log(np.where(none, 1.0, y)))


@written_out_in("scipy.special")
def _xlog1py(x: Any, y: Any) -> Any:
    none = np.equal(x, 0) & ~np.isnan(y)
    return np.where(none, 0.0, x * np.log1p(np.where(none, 0.0, y)))


@written_out_in("scipy.special")
def _entr(x: Any) -> Any:
    inside = -x * np.log(np.where(np.greater(x, 0), x, 1.0))
    return np.where(np.equal(x, 0), 0.0, np.where(np.less(x, 0), -np.inf, inside))


@written_out_in("scipy.special")
def _rel_entr(x: Any, y: Any) -> Any:
    both = np.greater(x, 0) & np.greater(y, 0)
    inside = x * np.log(np.where(both, x, 1.0) / np.where(both, y, 1.0))
    none = np.equal(x, 0) & np.greater_equal(y, 0)
    found = np.where(both, inside, np.where(none, 0.0, np.inf))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, found)


@written_out_in("scipy.special")
def _kl_div(x: Any, y: Any) -> Any:
    both = np.greater(x, 0) & np.greater(y, 0)
    inside = x * np.log(np.where(both, x, 1.0) / np.where(both, y, 1.0)) - x + y
    none = np.equal(x, 0) & np.greater_equal(y, 0)
    found = np.where(both, inside, np.where(none, y, np.inf))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, found)


@written_out_in("scipy.special")
def _psi(z: Any) -> Any:
    value = np.asarray(z) + 0.0
    turned = value < 0.5
    x = np.where(turned, 1.0 - value, value)
    total = np.zeros(np.shape(value))
    for _ in range(10):
        low = x < 10.0
        total = total - np.where(low, 1.0 / x, 0.0)
        x = np.where(low, x + 1.0, x)
    s = 1.0 / (x * x)
    series = 1 / 12 - s * (
        1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760)))
    )
    found = total + np.log(x) - 0.5 / x - s * series
    pole = turned & (value == np.floor(value))
    angle = np.pi * np.where(pole, 0.5, value - np.floor(value))
    found = np.where(turned, found - np.pi / np.tan(np.where(turned, angle, 0.5)), found)
    return np.where(pole, np.where(value == 0, np.copysign(np.inf, -value), np.nan), found)


@written_out_in("scipy.special")
def _ndtr(x: Any) -> Any:
    from scipy.special import erfc  # type: ignore[import-untyped,unused-ignore]

    return 0.5 * erfc(-np.asarray(x) / np.sqrt(2.0))


@written_out_in("scipy.special")
def _ndtri(y: Any) -> Any:
    return normal_quantile(y)


@written_out_in("scipy.special")
def _erfinv(y: Any) -> Any:
    return normal_quantile((np.asarray(y) + 1.0) / 2.0) / np.sqrt(2.0)


@written_out_in("scipy.special")
def _i0(x: Any) -> Any:
    return np.i0(x)


@written_out_in("scipy.special")
def _betaln(a: Any, b: Any) -> Any:
    from scipy.special import gammaln  # type: ignore[import-untyped,unused-ignore]

    return gammaln(a) + gammaln(b) - gammaln(np.add(a, b))


@written_out_in("scipy.special")
def _beta(a: Any, b: Any) -> Any:
    from scipy.special import gamma, gammaln  # type: ignore[import-untyped,unused-ignore]

    total = np.add(a, b) + 0.0
    small = (np.abs(a) < 20.0) & (np.abs(b) < 20.0)
    one, other = np.where(small, a, 1.0), np.where(small, b, 1.0)
    near = gamma(one) * gamma(other) / gamma(one + other)
    far = np.exp(gammaln(a) + gammaln(b) - gammaln(total))
    far = far * sign_of_gamma(a) * sign_of_gamma(b) * sign_of_gamma(total)
    return np.where(small, near, far)[()]


@written_out_in("scipy.special")
def _binom(n: Any, k: Any) -> Any:
    from scipy.special import gammaln  # type: ignore[import-untyped,unused-ignore]

    rest = np.subtract(n, k) + 1.0
    found = np.exp(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(rest))
    found = found * sign_of_gamma(n + 1.0) * sign_of_gamma(k + 1.0) * sign_of_gamma(rest)
    found = np.where(np.less(n, 0) & np.equal(n, np.floor(n)), np.nan, found)
    whole = np.equal(n, np.floor(n)) & np.equal(k, np.floor(k)) & (found < 1e13)
    return np.where(whole, np.rint(found), found)


@written_out_in("scipy.special")
def _comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:  # noqa: N803
    from scipy.special import binom  # type: ignore[import-untyped,unused-ignore]

    if exact:
        raise NotImplementedError("scipy.special.comb with exact=True of values of the run")
    if repetition:
        N = np.add(N, k) - 1  # noqa: N806
    possible = np.less_equal(k, N) & np.greater_equal(N, 0) & np.greater_equal(k, 0)
    return np.where(possible, binom(np.where(possible, N, 0), np.where(possible, k, 0)), 0.0)


@written_out_in("scipy.special")
def _factorial(n: Any, exact: bool = False, extend: Any = "zero") -> Any:
    from scipy.special import gamma  # type: ignore[import-untyped,unused-ignore]

    if exact:
        raise NotImplementedError("scipy.special.factorial with exact=True of values of the run")
    found = gamma(np.where(np.less(n, 0), 0, n) + 1.0)
    whole = np.equal(n, np.floor(n)) & (found < 1e15)
    return np.where(np.less(n, 0), 0.0, np.where(whole, np.rint(found), found))


# -- Bessel functions -----------------------------------------------------------------------------

read_in_place("scipy.special", bessel_j.j0, bessel_j.j1)


@named("scipy.special", "jv", "jn")
def _bessel(run: Any, v: Any, z: Any) -> Any:
    if not isinstance(v, int | float) or v not in (0, 1):
        run.tracer.refuse("scipy.special.jv of another order than the numbers 0 and 1")
    return run.call(bessel_j.j1 if v else bessel_j.j0, [z], {})


# -- sums of exponentials -------------------------------------------------------------------------


@written_out_in("scipy.special")
def _logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    if return_sign:
        raise NotImplementedError("scipy.special.logsumexp with return_sign=True")
    values = np.asarray(a) + 0.0
    if b is not None:
        values = np.where(np.equal(b, 0), -np.inf, values)
    most = np.max(values, axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    parts = np.exp(values - most) if b is None else b * np.exp(values - most)
    found = np.log(np.sum(parts, axis=axis, keepdims=True)) + most
    if keepdims:
        return found
    return np.squeeze(found) if axis is None else np.squeeze(found, axis)


@written_out_in("scipy.special")
def _softmax(x: Any, axis: Any = None) -> Any:
    parts = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return parts / np.sum(parts, axis=axis, keepdims=True)


@written_out_in("scipy.special")
def _log_softmax(x: Any, axis: Any = None) -> Any:
    moved = x - np.max(x, axis=axis, keepdims=True)
    return moved - np.log(np.sum(np.exp(moved), axis=axis, keepdims=True))
