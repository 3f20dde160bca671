"""Functions of SciPy that are NumPy's by other names, and distances between points.

SciPy is needed by the program alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import named
from distspmd.frontend.from_numpy.numpy.written_out import written_out_in

# -- as in NumPy ----------------------------------------------------------------------------------


def _like(called: Any, *options: str) -> Any:
    """A function of SciPy that NumPy has; options that change no values may be given."""

    def handler(run: Context, *given: Any, **keywords: Any) -> Any:
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
) -> Any:
    if type != 1 or b is not None:
        raise NotImplementedError("scipy.linalg.eigh of two matrices")
    part: Any = "L" if lower else "U"
    return np.linalg.eigvalsh(a, part) if eigvals_only else np.linalg.eigh(a, part)


# -- distances ------------------------------------------------------------------------------------


@written_out_in("scipy.spatial")
def _cdist(XA: Any, XB: Any, metric: Any = "euclidean") -> Any:  # noqa: N803
    if not callable(metric):
        raise NotImplementedError("SciPy knows the distance")
    return np.array([[metric(u, v) for v in np.asarray(XB)] for u in np.asarray(XA)])


@written_out_in("scipy.spatial")
def _pdist(X: Any, metric: Any = "euclidean") -> Any:  # noqa: N803
    if not callable(metric):
        raise NotImplementedError("SciPy knows the distance")
    points = np.asarray(X)
    first, second = np.triu_indices(points.shape[0], 1)
    return np.array([metric(points[i], points[j]) for i, j in zip(first, second, strict=True)])


@written_out_in("scipy.spatial")
def _euclidean(u: Any, v: Any) -> Any:
    return np.sqrt(np.sum((np.asarray(u) - np.asarray(v)) ** 2))


@written_out_in("scipy.spatial")
def _sqeuclidean(u: Any, v: Any) -> Any:
    return np.sum((np.asarray(u) - np.asarray(v)) ** 2)


@written_out_in("scipy.spatial")
def _cityblock(u: Any, v: Any) -> Any:
    return np.sum(np.abs(np.asarray(u) - np.asarray(v)))


@written_out_in("scipy.spatial")
def _chebyshev(u: Any, v: Any) -> Any:
    return np.max(np.abs(np.asarray(u) - np.asarray(v)))
