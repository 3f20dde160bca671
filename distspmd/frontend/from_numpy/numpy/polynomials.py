"""Polynomials: ``np.poly`` and its like, ``np.polynomial``; their objects are Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre
from numpy.polynomial import polynomial as ascending

from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag, apply_real
from distspmd.frontend.from_numpy.arrays.real_or_complex import real_or_complex
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library.series import summed
from distspmd.frontend.from_numpy.numpy import sequences  # noqa: F401 (it has np.polyval)
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.written_out import written_out

# -- what is real if values are -------------------------------------------------------------------


def real_if(run: Context, found: Tensor, is_complex: object) -> Tensor:
    """Complex numbers that are real ones unless something holds."""
    tracer = run.tracer
    test = tracer.stored_anew(tracer.tensor(is_complex), "is_complex")
    whole = choose(tracer, test, found, converted(tracer, apply_real(found), found.dtype))
    return real_or_complex(tracer, tracer.stored_anew(whole), test)


@function(np.real_if_close)
def _real_if_close(run: Context, a: Any, tol: Any = 100) -> Any:
    tensor = run.tracer.tensor(a)
    if tensor.dtype.kind != "c":
        return tensor
    if tol > 1:
        tol = np.finfo(tensor.dtype).eps * tol
    sizes = combine(run.tracer, np.absolute, [apply_imag(tensor)])
    near = run.call(np.all, [combine(run.tracer, np.less, [sizes, tol])], {})
    return real_if(run, tensor, run.call(np.logical_not, [near], {}))


def real_if_in_pairs(found: object, zeros: object) -> Any:
    """What ``np.poly`` makes of zeros: real where each has its conjugate among them."""
    raise NotImplementedError


@function(real_if_in_pairs)
def _real_if_in_pairs(run: Context, found: Any, zeros: Any) -> Any:
    alike = [run.call(np.sort, [z], {}) for z in (zeros, run.call(np.conj, [zeros], {}))]
    return real_if(run, found, run.call(np.any, [run.call(np.not_equal, alike, {})], {}))


def _of_root(name: str) -> None:
    """Add a function of ``np.emath`` that is complex where a number is negative."""
    called = getattr(np, name)

    @function(getattr(np.emath, name))
    def handler(run: Context, x: object) -> Any:
        tensor = run.tracer.tensor(x)
        if tensor.dtype.kind == "c":
            return combine(run.tracer, called, [tensor])
        below = run.call(np.any, [run.call(np.less, [tensor, 0], {})], {})
        kind = np.result_type(tensor.dtype, np.complex64 if tensor.dtype.itemsize < 8 else complex)
        return real_if(run, combine(run.tracer, called, [converted(run.tracer, x, kind)]), below)


for _name in ("sqrt", "log"):
    _of_root(_name)


# -- zeros ----------------------------------------------------------------------------------------


@written_out(np.roots)
def _roots(p: Any) -> Any:
    p = np.ravel(p)
    if p[0] == 0 or p[-1] == 0:
        raise ValueError(
            "np.roots: the first or the last coefficient is zero, and NumPy would leave it out"
        )
    n = p.shape[0]
    if n < 2:
        return np.zeros(0)
    first = -p[1:] / p[0]
    return np.linalg.eigvals(np.concatenate((first[np.newaxis], np.eye(n - 2, n - 1))))


@written_out(ascending.polyroots)
def _polyroots(c: object) -> Any:
    return np.sort(np.roots(np.asarray(c)[::-1]))


@written_out(np.poly)
def _poly(seq_of_zeros: Any) -> Any:
    zeros = np.atleast_1d(seq_of_zeros)
    of_matrix = zeros.ndim == 2
    if of_matrix:
        zeros = np.linalg.eigvals(zeros)
    n = zeros.shape[0]
    found = np.zeros(n + 1, zeros.astype(complex).dtype if of_matrix else (zeros + 0.0).dtype)
    found[0] = 1.0
    for k in range(n):
        found[1 : k + 2] = found[1 : k + 2] - zeros[k] * found[: k + 1]
    if of_matrix:
        return np.real(found)
    return real_if_in_pairs(found, zeros) if np.iscomplexobj(zeros) is True else found


# -- quotients and fits ---------------------------------------------------------------------------


@written_out(np.polydiv)
def _polydiv(u: Any, v: Any) -> Any:
    u = np.atleast_1d(u) + 0.0
    v = np.atleast_1d(v) + 0.0
    m = u.shape[0] - 1
    n = v.shape[0] - 1
    rest = u * np.ones(1, v.dtype)
    found = np.zeros(max(m - n + 1, 1), rest.dtype)
    scale = 1.0 / v[0]
    for k in range(m - n + 1):
        found[k] = scale * rest[k]
        rest[k : k + n + 1] -= found[k] * v
    large = np.append(~(np.abs(rest[:-1]) <= 1e-8), True)
    return found, rest[int(np.argmax(large)) :]


@written_out(np.polyfit)
def _polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    left = np.vander(x + 0.0, deg + 1)
    right = y + 0.0
    if w is not None:
        left = left * w[:, np.newaxis]
        right = right * (w if right.ndim == 1 else w[:, np.newaxis])
    scale = np.sqrt((left * left).sum(axis=0))
    found, residuals, rank, sizes = np.linalg.lstsq(left / scale, right, rcond=rcond)
    found = found / (scale if right.ndim == 1 else scale[:, np.newaxis])
    if full:
        limit = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
        return found, residuals, rank, sizes, limit
    if cov is False:
        return found
    spread = np.linalg.inv(np.dot(left.T, left) / np.outer(scale, scale))
    spread = spread / np.outer(scale, scale)
    factor = 1 if cov == "unscaled" else residuals / (len(x) - (deg + 1))
    if right.ndim == 1:
        return found, spread * factor
    return found, spread[:, :, np.newaxis] * factor


# -- sums, products and integrals -----------------------------------------------------------------


@written_out(np.polymul)
def _polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(a1, a2)


@written_out(np.polyadd)
def _polyadd(a1: Any, a2: Any) -> Any:
    one, two = np.atleast_1d(a1), np.atleast_1d(a2)
    n = max(len(one), len(two))
    return np.pad(one, (n - len(one), 0)) + np.pad(two, (n - len(two), 0))


@written_out(np.polysub)
def _polysub(a1: Any, a2: Any) -> Any:
    one, two = np.atleast_1d(a1), np.atleast_1d(a2)
    n = max(len(one), len(two))
    return np.pad(one, (n - len(one), 0)) - np.pad(two, (n - len(two), 0))


@written_out(np.polyder)
def _polyder(p: Any, m: int = 1) -> Any:
    p = np.atleast_1d(p)
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@written_out(np.polyint)
def _polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    p = np.atleast_1d(p)
    constants = np.zeros(m) if k is None else np.atleast_1d(k) * np.ones(m)
    for n in range(m):
        p = np.concatenate((p / np.arange(len(p), 0, -1), constants[n : n + 1]))
    return p


# -- the lowest power first -----------------------------------------------------------------------


@written_out(ascending.polyval)
def _ascending_polyval(x: Any, c: Any, tensor: bool = True) -> Any:
    if np.ndim(c) != 1:
        raise NotImplementedError("polyval of several polynomials")
    return np.polyval(np.asarray(c)[::-1], x)


@written_out(ascending.polyfit)
def _ascending_polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None
) -> Any:
    if full:
        raise NotImplementedError("polyfit with full=: use np.polyfit")
    return np.polyfit(x, y, deg, rcond, False, w)[::-1]


@written_out(ascending.polymul)
def _ascending_polymul(c1: Any, c2: Any) -> Any:
    return np.convolve(c1, c2)


@written_out(ascending.polyvander)
def _ascending_polyvander(x: Any, deg: Any) -> Any:
    return np.vander(x + 0.0, deg + 1, increasing=True)


def _reversed(called: object, like: object) -> None:
    """A function of coefficients in the other order."""

    @function(called)
    def handler(run: Context, *given: object) -> Any:
        turned = [run.call(np.flip, [v], {}) if run.tracer.tensor(v).ndim else v for v in given]
        return run.call(np.flip, [run.call(like, turned, {})], {})


_reversed(ascending.polyadd, np.polyadd)
_reversed(ascending.polysub, np.polysub)
_reversed(ascending.polyder, np.polyder)
_reversed(ascending.polyint, np.polyint)
_reversed(ascending.polyfromroots, np.poly)


@written_out(chebyshev.chebval)
def _chebval(x: object, c: object, tensor: bool = True) -> Any:
    return summed(x, c, lambda v, x, k: v * (2 * x), lambda k: 1, lambda one, two, x: one + two * x)


@written_out(legendre.legval)
def _legval(x: object, c: object, tensor: bool = True) -> Any:
    return summed(
        x,
        c,
        lambda v, x, k: v * x * (2 * k - 1) / k,
        lambda k: (k - 1) / k,
        lambda one, two, x: one + two * x,
    )


@written_out(hermite.hermval)
def _hermval(x: object, c: object, tensor: bool = True) -> Any:
    return summed(
        x,
        c,
        lambda v, x, k: v * (x * 2),
        lambda k: 2 * (k - 1),
        lambda one, two, x: one + two * (x * 2),
    )


@written_out(hermite_e.hermeval)
def _hermeval(x: object, c: object, tensor: bool = True) -> Any:
    return summed(x, c, lambda v, x, k: v * x, lambda k: k - 1, lambda one, two, x: one + two * x)


@written_out(laguerre.lagval)
def _lagval(x: object, c: object, tensor: bool = True) -> Any:
    return summed(
        x,
        c,
        lambda v, x, k: v * ((2 * k - 1) - x) / k,
        lambda k: (k - 1) / k,
        lambda one, two, x: one + two * (1 - x),
    )
