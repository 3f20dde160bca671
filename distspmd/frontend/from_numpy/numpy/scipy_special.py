"""``scipy.special``, written out: error functions, gammas, and sums of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arrays.arithmetic import converted
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import named
from distspmd.frontend.from_numpy.numpy.written_out import written_out_in


def _elementwise(name: str, operation: str) -> None:
    """Add a function of elements that is an operation."""

    @named("scipy.special", name)
    def handler(run: Context, x: Any) -> Tensor:
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
    **{name: name for name in ("j0", "j1", "y0", "y1")},
}.items():
    _elementwise(_name, _operation)


@written_out_in("scipy.special")
def _jv(v: Any, z: Any) -> Any:
    from scipy.special import j0, j1  # type: ignore[import-untyped,unused-ignore]

    if v not in (0, 1):
        raise NotImplementedError("the C library has the orders 0 and 1")
    return j1(z) if v else j0(z)


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
def _ndtr(x: Any) -> Any:
    from scipy.special import erfc  # type: ignore[import-untyped,unused-ignore]

    return 0.5 * erfc(-np.asarray(x) / np.sqrt(2.0))


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
