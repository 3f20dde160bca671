"""Functions of SciPy beside those of ``scipy.linalg``: NumPy's by other names, or written out.

SciPy is needed by the program alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.functions.registry import named
from distspmd.frontend.from_numpy.functions.written_out import read_in_place, written_out_in
from distspmd.frontend.from_numpy.library import distances
from distspmd.frontend.from_numpy.library.distances import distances_of
from distspmd.frontend.from_numpy.library.matrix_functions import eigenvectors

# -- as in NumPy ----------------------------------------------------------------------------------


def _like(called: Any, *options: str) -> Any:
    """A function of SciPy that NumPy has; options that change no values may be given."""

    def handler(run: Any, *given: Any, **keywords: Any) -> Any:
        kept = {key: value for key, value in keywords.items() if key not in options}
        return run.call(called, list(given), kept)

    return handler


_TRANSFORMS = (
    *("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2"),
    *("fftn", "ifftn", "rfftn", "irfftn", "fftfreq", "rfftfreq", "fftshift", "ifftshift"),
)
for _name in _TRANSFORMS:
    _known = _like(getattr(np.fft, _name), "overwrite_x", "workers", "plan")
    for _module in ("scipy.fft", "scipy.fftpack"):
        if _module == "scipy.fft" or not _name.startswith(("rfft", "irfft")):
            named(_module, _name)(_known)  # rfft of fftpack has its parts in another order
for _name in ("det", "pinv", "norm", "svdvals", "eigvalsh"):
    _known = _like(getattr(np.linalg, _name), "check_finite", "overwrite_a")
    named("scipy.linalg", _name)(_known)
_OF_LAPACK = ("check_finite", "overwrite_a", "overwrite_b", "lapack_driver")
for _name in ("svd", "lstsq"):
    _known = _like(getattr(np.linalg, _name), *_OF_LAPACK)
    named("scipy.linalg", _name)(_known)
named("scipy.integrate", "trapezoid")(_like(np.trapezoid))


# -- linear algebra -------------------------------------------------------------------------------


@written_out_in("scipy.linalg")
def _eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    driver: Any = None,
) -> Any:
    if type != 1:
        raise NotImplementedError("scipy.linalg.eigh of another type than 1")
    if b is not None or not eigvals_only:
        values, vectors = eigenvectors(a, b, lower)
    else:
        values, vectors = np.linalg.eigvalsh(a, "L" if lower else "U"), None
    if subset_by_index is not None:
        low, high = subset_by_index
        values = values[low : high + 1]
        vectors = None if eigvals_only else vectors[:, low : high + 1]
    return values if eigvals_only else (values, vectors)


@written_out_in("scipy.linalg")
def _toeplitz(c: Any, r: Any = None) -> Any:
    column = np.ravel(c)
    row = np.conj(column) if r is None else np.ravel(r)
    m = len(column)
    values = np.concatenate((column[::-1], row[1:]))
    return values[np.arange(m - 1, -1, -1)[:, None] + np.arange(len(row))]


@written_out_in("scipy.linalg")
def _solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    from scipy.linalg import toeplitz  # type: ignore[import-untyped,unused-ignore]

    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, np.conj(c_or_cr))
    return np.linalg.solve(toeplitz(column, row), b)


@written_out_in("scipy.linalg")
def _block_diag(*arrays: Any) -> Any:
    parts = [np.atleast_2d(part) for part in arrays]
    kind = np.result_type(*parts)
    found = np.zeros((sum(p.shape[0] for p in parts), sum(p.shape[1] for p in parts)), kind)
    row = 0
    column = 0
    for part in parts:
        found[row : row + part.shape[0], column : column + part.shape[1]] = part
        row += part.shape[0]
        column += part.shape[1]
    return found


# -- distances ------------------------------------------------------------------------------------


@written_out_in("scipy.spatial")
def _cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, p: Any = 2.0) -> Any:  # noqa: N803
    one = np.asarray(XA, dtype=float)
    other = np.asarray(XB, dtype=float)
    if callable(metric):
        return np.array([[metric(u, v) for v in other] for u in one])
    return distances_of(one[:, None, :], other[None, :, :], metric, p)


@written_out_in("scipy.spatial")
def _pdist(X: Any, metric: Any = "euclidean", *, p: Any = 2.0) -> Any:  # noqa: N803
    points = np.asarray(X, dtype=float)
    first, second = np.triu_indices(points.shape[0], 1)
    if callable(metric):
        return np.array([metric(points[i], points[j]) for i, j in zip(first, second, strict=True)])
    return distances_of(points[first], points[second], metric, p)


read_in_place(
    "scipy.spatial",
    *(distances.squareform, distances.euclidean, distances.sqeuclidean, distances.cityblock),
    distances.chebyshev,
)


# -- integrals ------------------------------------------------------------------------------------


@written_out_in("scipy.integrate")
def _cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    values = np.moveaxis(np.asarray(y), axis, -1)
    width = dx if x is None else np.diff(x)
    found = np.cumsum(width * (values[..., 1:] + values[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        found = np.concatenate((np.zeros((*found.shape[:-1], 1)), found), axis=-1)
    return np.moveaxis(found, -1, axis)


@written_out_in("scipy.integrate")
def _simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    # an even number of points has Cartwright's correction for the last interval, as in SciPy 1.11
    values = np.moveaxis(np.asarray(y), axis, -1)
    n = values.shape[-1]
    width = np.full(n - 1, float(dx)) if x is None else np.diff(x)
    if n == 1:
        return np.zeros(values.shape[:-1])
    if n == 2:
        return 0.5 * width[..., 0] * (values[..., 0] + values[..., 1])
    last = n - 2 if n % 2 == 0 else n - 1
    one, other = width[..., 0:last:2], width[..., 1:last:2]
    both = one + other
    parts = (
        values[..., 0:last:2] * (2.0 - other / one)
        + values[..., 1 : last + 1 : 2] * (both * both / (one * other))
        + values[..., 2 : last + 1 : 2] * (2.0 - one / other)
    )
    found = (both / 6.0 * parts).sum(axis=-1)
    if n % 2 == 0:
        before, end = width[..., -2], width[..., -1]
        third = (2 * end**2 + 3 * end * before) / (6 * (before + end))
        middle = (end**2 + 3.0 * end * before) / (6 * before)
        first = end**3 / (6 * before * (before + end))
        found = found + third * values[..., -1] + middle * values[..., -2] - first * values[..., -3]
    return found


# -- cosines --------------------------------------------------------------------------------------


@written_out_in("scipy.fft", "scipy.fftpack")
def _dct(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    if type != 2 or n is not None or norm not in (None, "backward", "ortho"):
        raise NotImplementedError("dct of another type than 2, of other lengths, or scaled so")
    values = np.moveaxis(np.asarray(x), axis, -1)
    length = values.shape[-1]
    angles = np.pi / length * (np.arange(length)[:, None] + 0.5) * np.arange(length)[None, :]
    found = 2 * (values @ np.cos(angles))
    if norm == "ortho":
        scale = np.full(length, np.sqrt(1 / (2 * length)))
        scale[0] = np.sqrt(1 / (4 * length))
        found = found * scale
    return np.moveaxis(found, -1, axis)


@written_out_in("scipy.fft", "scipy.fftpack")
def _idct(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    if type != 2 or n is not None or norm not in (None, "backward", "ortho"):
        raise NotImplementedError("idct of another type than 2, of other lengths, or scaled so")
    values = np.moveaxis(np.asarray(x), axis, -1)
    length = values.shape[-1]
    angles = np.pi / length * np.arange(length)[:, None] * (np.arange(length)[None, :] + 0.5)
    scale = np.full(length, np.sqrt(2 / length) if norm == "ortho" else 1 / length)
    scale[0] = np.sqrt(1 / length) if norm == "ortho" else 1 / (2 * length)
    return np.moveaxis((values * scale) @ np.cos(angles), -1, axis)
