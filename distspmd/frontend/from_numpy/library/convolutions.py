"""Convolutions and correlations of arrays of any dimensions, as ``scipy.signal`` has them."""

from __future__ import annotations

from typing import Any

import numpy as np


def convolve(in1: object, in2: object, mode: object = "full", method: object = "auto") -> Any:
    """Sums of products with a kernel that is turned around."""
    one, other = np.asarray(in1), np.asarray(in2)
    if one.ndim != other.ndim:
        raise ValueError("volume and kernel should have the same dimensionality")
    if one.ndim == 1:
        return cut(np.convolve(one, other), one.shape, other.shape, mode)
    shape = tuple(n + m - 1 for n, m in zip(one.shape, other.shape, strict=True))
    kind = np.result_type(one, other)
    whole: Any
    if kind.kind == "c":
        whole = np.fft.ifftn(np.fft.fftn(one, shape) * np.fft.fftn(other, shape))
    else:
        axes = tuple(range(one.ndim))
        spectra = np.fft.rfftn(one, shape, axes), np.fft.rfftn(other, shape, axes)
        whole = np.fft.irfftn(spectra[0] * spectra[1], shape, axes)
    if kind.kind in "biu":
        whole = np.rint(whole)
    return cut(whole.astype(kind), one.shape, other.shape, mode)


def correlate(in1: object, in2: object, mode: object = "full", method: object = "auto") -> Any:
    """Sums of products with a kernel, or its conjugate."""
    return convolve(in1, np.conj(np.flip(np.asarray(in2))), mode, method)


def fftconvolve(in1: object, in2: object, mode: object = "full", axes: object = None) -> Any:
    """A convolution; of whole numbers it is one of floating point."""
    if axes is not None:
        raise NotImplementedError("scipy.signal.fftconvolve with axes=")
    one, other = np.asarray(in1), np.asarray(in2)
    if np.result_type(one, other).kind in "biu":
        one = one * 1.0
    return convolve(one, other, mode)


def cut(whole: Any, one: Any, other: Any, mode: object) -> Any:
    """The part in the middle that a mode keeps."""
    if mode == "full":
        return whole
    if mode == "same":
        extents = list(one)
    elif mode == "valid":
        extents = [max(n, m) - min(n, m) + 1 for n, m in zip(one, other, strict=True)]
    else:
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    for d in list(range(len(extents))):
        start = (whole.shape[d] - extents[d]) // 2
        lines = np.moveaxis(whole, d, 0)
        whole = np.moveaxis(lines[start : start + extents[d]], 0, d)
    return whole


def correlation_lags(in1_len: Any, in2_len: Any, mode: object = "full") -> Any:
    """By how much arrays are shifted in a correlation."""
    lags = np.arange(-in2_len + 1, in1_len)
    if mode == "full":
        return lags
    if mode == "same":
        start = (lags.size - in1_len) // 2
        return lags[start : start + in1_len]
    if in1_len >= in2_len:
        return np.arange(in1_len - in2_len + 1)
    return np.arange(in1_len - in2_len, 1)
