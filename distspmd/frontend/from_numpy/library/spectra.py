"""Spectra and responses in frequency, as ``scipy.signal`` computes them."""

from __future__ import annotations

from typing import Any

import numpy as np


def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,  # noqa: N803
    whole: bool = False,
    plot: Any = None,
    fs: Any = 6.283185307179586,
    include_nyquist: bool = False,
) -> Any:
    """The response of a filter at frequencies."""
    above, below = np.atleast_1d(b), np.atleast_1d(a)
    if above.ndim > 1 or below.ndim > 1:
        raise NotImplementedError("scipy.signal.freqz of several filters; call it for each")
    if worN is None:
        worN = 512  # noqa: N806
    if np.ndim(worN) == 0 and isinstance(worN, int):
        end = 2 * np.pi if whole else np.pi
        w = np.linspace(0, end, worN, endpoint=include_nyquist and not whole)
    else:
        w = 2 * np.pi * np.atleast_1d(worN) / fs
    z = np.exp(-1j * w)
    h = np.polyval(above[::-1], z) / np.polyval(below[::-1], z)
    return w * (fs / (2 * np.pi)), h


def sosfreqz(
    sos: Any,
    worN: Any = 512,  # noqa: N803
    whole: bool = False,
    fs: Any = 6.283185307179586,
) -> Any:
    """The response of a filter in sections."""
    w, h = freqz(sos[0, :3], sos[0, 3:], worN, whole, None, fs)
    for k in range(1, len(sos)):
        _, more = freqz(sos[k, :3], sos[k, 3:], worN, whole, None, fs)
        h = h * more
    return w, h


def hilbert(x: Any, N: Any = None, axis: Any = -1) -> Any:  # noqa: N803
    """The analytic signal."""
    given = np.asarray(x)
    n = given.shape[axis] if N is None else N
    spectrum = np.moveaxis(np.fft.fft(given, n, axis=axis), axis, -1)
    weights = np.zeros(n)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    return np.moveaxis(np.fft.ifft(spectrum * weights, axis=-1), -1, axis)


def window_of(window: Any, nperseg: Any) -> Any:
    """A window by its name, which has to be known, or by its values."""
    if isinstance(window, str | tuple):
        from scipy.signal import get_window  # type: ignore[import-untyped,unused-ignore]

        return get_window(window, nperseg)
    return np.asarray(window)


def segments(x: Any, nperseg: Any, step: Any) -> Any:
    """Overlapping segments along a dimension that is added in the end."""
    count = (x.shape[-1] - nperseg) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(nperseg)
    return x[..., places]


def without_trend(parts: Any, detrend: Any) -> Any:
    """Segments without their means, or lines."""
    if detrend in (False, None):
        return parts
    if isinstance(detrend, str):
        from scipy.signal import detrend as trend_of  # type: ignore[import-untyped,unused-ignore]

        return trend_of(parts, axis=-1, type=detrend)
    return detrend(parts)


def transformed(
    x: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any
) -> Any:
    """Frequencies, window, overlap, and the transforms of segments."""
    n = x.shape[-1]
    length = min(256, n) if nperseg is None else nperseg
    if not isinstance(window, str | tuple):
        length = np.shape(window)[0]
    length = min(length, n)
    shape = window_of(window, length)
    overlap = length // 2 if noverlap is None else noverlap
    points = length if nfft is None else nfft
    parts = without_trend(segments(x, length, length - overlap), detrend)
    if np.iscomplexobj(x):
        return np.fft.fftfreq(points, 1 / fs), shape, overlap, np.fft.fft(parts * shape, points)
    return np.fft.rfftfreq(points, 1 / fs), shape, overlap, np.fft.rfft(parts * shape, points)


def scale_of(window: Any, fs: Any, scaling: Any) -> Any:
    """By what squares are divided."""
    if scaling == "density":
        return 1.0 / (fs * np.sum(window * window))
    if scaling == "spectrum":
        return 1.0 / np.sum(window) ** 2
    raise ValueError(f"Unknown scaling: {scaling!r}")


def one_sided(power: Any, points: Any, is_complex: Any) -> Any:
    """Powers of frequencies that stand for their negatives as well."""
    if is_complex:
        return power
    last = power.shape[-1] - (1 if points % 2 == 0 else 0)
    weights = np.ones(power.shape[-1])
    weights[1:last] = 2
    return power * weights


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: Any = "density",
    axis: Any = -1,
    average: Any = "mean",
) -> Any:
    """The cross spectrum by Welch's method."""
    one, other = np.moveaxis(np.asarray(x), axis, -1), np.moveaxis(np.asarray(y), axis, -1)
    if not return_onesided or average != "mean":
        raise NotImplementedError("spectra of two sides, or of medians")
    f, shape, _, first = transformed(one, fs, window, nperseg, noverlap, nfft, detrend)
    _, _, _, second = transformed(other, fs, window, nperseg, noverlap, nfft, detrend)
    points = shape.shape[0] if nfft is None else nfft
    power = np.conj(first) * second * scale_of(shape, fs, scaling)
    found = one_sided(power, points, np.iscomplexobj(one) or np.iscomplexobj(other))
    return f, np.moveaxis(np.mean(found, axis=-2), -1, axis)


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: Any = "density",
    axis: Any = -1,
    average: Any = "mean",
) -> Any:
    """The spectrum of powers by Welch's method."""
    values = np.moveaxis(np.asarray(x), axis, -1)
    if not return_onesided or average != "mean":
        raise NotImplementedError("spectra of two sides, or of medians")
    f, shape, _, parts = transformed(values, fs, window, nperseg, noverlap, nfft, detrend)
    points = shape.shape[0] if nfft is None else nfft
    power = (parts.real**2 + parts.imag**2) * scale_of(shape, fs, scaling)
    found = one_sided(power, points, np.iscomplexobj(values))
    return f, np.moveaxis(np.mean(found, axis=-2), -1, axis)


def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: Any = "density",
    axis: Any = -1,
) -> Any:
    """The spectrum of powers of the whole signal."""
    n = np.shape(x)[axis]
    if nfft is not None and nfft < n:
        raise NotImplementedError("scipy.signal.periodogram with fewer points than values")
    shape = "boxcar" if window is None else window
    return welch(x, fs, shape, n, 0, nfft, detrend, return_onesided, scaling, axis)


def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: Any = "density",
    axis: Any = -1,
    mode: Any = "psd",
) -> Any:
    """Spectra of powers of segments."""
    values = np.asarray(x)
    if not return_onesided or mode != "psd" or axis not in (-1, values.ndim - 1):
        raise NotImplementedError("scipy.signal.spectrogram but for powers along the last axis")
    length = min(256, values.shape[-1]) if nperseg is None else nperseg
    overlap = length // 8 if noverlap is None else noverlap
    f, shape, _, parts = transformed(values, fs, window, length, overlap, nfft, detrend)
    power = (parts.real**2 + parts.imag**2) * scale_of(shape, fs, scaling)
    found = one_sided(power, length if nfft is None else nfft, np.iscomplexobj(values))
    t = (np.arange(parts.shape[-2]) * (length - overlap) + length / 2) / fs
    return f, t, np.swapaxes(found, -1, -2)


def resample(
    x: Any, num: Any, t: Any = None, axis: Any = 0, window: Any = None, domain: Any = "time"
) -> Any:
    """As many values in the same time, by the Fourier transform."""
    if window is not None or domain != "time" or np.iscomplexobj(x):
        raise NotImplementedError("scipy.signal.resample of complex values, or with a window")
    values = np.moveaxis(np.asarray(x), axis, -1)
    n = values.shape[-1]
    spectrum = np.fft.rfft(values, axis=-1)
    least = min(num, n)
    kept = np.zeros((*values.shape[:-1], num // 2 + 1), spectrum.dtype)
    kept[..., : least // 2 + 1] = spectrum[..., : least // 2 + 1]
    if least % 2 == 0 and num != n:
        kept[..., least // 2] *= 2 if num < n else 0.5
    found = np.moveaxis(np.fft.irfft(kept, num, axis=-1) * (num / n), -1, axis)
    if t is None:
        return found
    return found, np.arange(num) * (t[1] - t[0]) * n / num + t[0]
