"""Functions of SciPy that each rank calls on its block, by the dimensions that they need whole.

A row names a function and its signature, as NumPy writes those of universal functions. Those of
``scipy.special``, and the densities of ``scipy.stats``, take numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.host.blocks import MOST_BLOCKS, term_of
from distspmd.frontend.from_numpy.probes import Form
from distspmd.frontend.from_numpy.values import Tensor
from distspmd.frontend.tensor_ir.whole_numbers import same
from distspmd.runtime.host.host_functions import Signature

_LINES = "(n)->(m)"
_DISTRIBUTIONS = "scipy.stats._distn_infrastructure"
_METHODS = frozenset(
    ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "pmf", "logpmf"]
)
"""Methods of distributions that take numbers."""

SIGNATURES: dict[str, str] = {
    **dict.fromkeys(["signal.lfilter", "signal.filtfilt"], "(b),(a),(n)->(n)"),
    **dict.fromkeys(["signal.sosfilt", "signal.sosfiltfilt"], "(s,c),(n)->(n)"),
    **dict.fromkeys(
        [
            *("signal.savgol_filter", "signal.hilbert", "signal.detrend", "signal.decimate"),
            *("signal.resample", "signal.resample_poly", "signal.czt", "signal.zoom_fft"),
            *("signal.envelope", "fft.hfft", "fft.ihfft"),
            *("fft.dct", "fft.idct", "fft.dst", "fft.idst", "fft.fht", "fft.ifht"),
            *("ndimage.gaussian_filter1d", "ndimage.uniform_filter1d", "ndimage.rank_filter1d"),
            *("ndimage.maximum_filter1d", "ndimage.minimum_filter1d", "ndimage.spline_filter1d"),
            *("ndimage.generic_filter1d", "integrate.cumulative_trapezoid"),
            *("integrate.cumulative_simpson", "stats.zscore", "stats.gzscore", "stats.rankdata"),
        ],
        _LINES,
    ),
    **dict.fromkeys(["ndimage.convolve1d", "ndimage.correlate1d"], "(n),(w)->(n)"),
    **dict.fromkeys(
        [
            *("integrate.trapezoid", "integrate.simpson", "integrate.romb", "stats.gmean"),
            *("stats.hmean", "stats.pmean", "stats.sem", "stats.iqr", "stats.entropy"),
            *("stats.variation", "stats.kurtosis", "stats.skew", "stats.moment", "stats.tmean"),
            *("stats.tvar", "stats.tstd", "stats.tsem", "stats.tmin", "stats.tmax"),
            *("stats.kstat", "stats.kstatvar", "stats.circmean", "stats.circstd", "stats.circvar"),
            *("stats.gstd", "stats.median_abs_deviation", "stats.differential_entropy"),
            *("stats.trim_mean", "special.logsumexp"),
        ],
        "(n)->()",
    ),
    **dict.fromkeys(["special.softmax", "special.log_softmax"], "(n)->(n)"),
    **dict.fromkeys(
        [
            *("linalg.expm", "linalg.logm", "linalg.sqrtm", "linalg.cosm", "linalg.sinm"),
            *("linalg.tanm", "linalg.coshm", "linalg.sinhm", "linalg.tanhm", "linalg.signm"),
            *("linalg.inv", "linalg.pinv", "linalg.cholesky", "linalg.null_space", "linalg.orth"),
        ],
        "(n,m)->(k,l)",
    ),
    "linalg.det": "(n,n)->()",
    "linalg.expm_frechet": "(n,n),(n,n)->(n,n),(n,n)",
    "spatial.distance.cdist": "(d),(m,d)->(m)",
}
"""By the name below ``scipy``; dimensions of results are those that SciPy gives."""


def signature_of(called: Any) -> Signature | None:
    """The signature of a function of SciPy; None where it is in no row."""
    if isinstance(called, np.ufunc):
        numbers = [",".join(["()"] * count) for count in (called.nin, called.nout)]
        return Signature.of(called.signature or "->".join(numbers))
    if getattr(called, "__module__", "") == _DISTRIBUTIONS and called.__name__ in _METHODS:
        return Signature.of("(),(),(),(),(),()->()")  # the distribution, the place, parameters
    text = SIGNATURES.get(_name_of(called))
    return None if text is None else Signature.of(text)


def _name_of(called: Any) -> str:
    """The name of a function below ``scipy``, without modules that are private."""
    parts = str(getattr(called, "__module__", "")).split(".")[1:]
    public = [part for part in parts if not part.startswith("_")]
    return ".".join([*public, str(getattr(called, "__name__", ""))])


def terms_by_signature(
    run: Any,
    called: Any,
    given: Sequence[Any],
    named: Mapping[str, Any],
    data: Sequence[Tensor],
    form: Form,
) -> tuple[list[str], list[str]] | None:
    """Letters of the arrays and results of a call of SciPy; None where it is not split.

    Args:
        run: the interpreter.
        called: the function.
        given: trees of its arguments.
        named: those by name.
        data: the arrays that they name.
        form: of what it returns.
    """
    signature = signature_of(called)
    every = [
        n for shape in (*(t.shape for t in data), *(f.shape for f in form.leaves)) for n in shape
    ]
    if signature is None or run.tracer.is_decided_by_data(*every):
        return None
    places = [each.get("value") if isinstance(each, dict) else None for each in given]
    cores: dict[int, tuple[str, ...]] = dict(zip(places, signature.inputs, strict=False))  # type: ignore[arg-type]
    cores.pop(None, None)  # type: ignore[call-overload]  # numbers and tables that are known
    if cores.keys() != set(range(len(data))):
        return None
    if not _is_along_last(called, given, named, max((t.ndim for t in data), default=0)):
        return None
    blocks = [tuple(t.shape[: t.ndim - len(cores[n])]) for n, t in enumerate(data)]
    if any(t.ndim < len(cores[n]) for n, t in enumerate(data)):
        return None
    batch = run.tracer.broadcast_shape(blocks)
    names = [name for core in cores.values() for name in core]
    if not 0 < len(batch) <= MOST_BLOCKS or len(form.leaves) != len(signature.outputs):
        return None
    if any(
        leaf.most is not None
        or len(leaf.shape) < len(batch)
        or not all(map(same, leaf.shape, batch))
        for leaf in form.leaves
    ):
        return None
    terms = [term_of(block, batch, cores[n], names) for n, block in enumerate(blocks)]
    own = [f"out{d}" for d in range(max(len(leaf.shape) for leaf in form.leaves))]
    made = [term_of(batch, batch, own[: len(f.shape) - len(batch)], own) for f in form.leaves]
    return terms, made


def _is_along_last(called: Any, given: Sequence[Any], named: Mapping[str, Any], ndim: int) -> bool:
    """Whether a call works along the last dimension of its arrays, as it says or by default."""
    if isinstance(called, np.ufunc):
        return not named
    try:
        signature = inspect.signature(called)
        bound = signature.bind_partial(*given, **named)
    except (TypeError, ValueError):  # it does not say what it takes
        return False
    bound.apply_defaults()
    if "axis" not in signature.parameters:
        return _name_of(called) not in _OF_LINES
    axis = bound.arguments["axis"]
    return type(axis) is int and axis in (-1, ndim - 1)


_OF_LINES = frozenset(name for name, text in SIGNATURES.items() if text.startswith("(n)->"))
"""Functions that take an axis, in the versions of SciPy in which they may be split."""
