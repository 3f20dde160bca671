"""Filters of signals, and what is found in them, as ``scipy.signal`` has them."""

from __future__ import annotations

from typing import Any

import numpy as np


def lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """A filter in direct form II, transposed."""
    above, below = np.atleast_1d(b), np.atleast_1d(a)
    n = max(above.shape[0], below.shape[0])
    above = np.pad(above / below[0], (0, n - above.shape[0]))
    below = np.pad(below / below[0], (0, n - below.shape[0]))
    lines = np.moveaxis(np.asarray(x), axis, 0)
    kind = np.result_type(lines, above, below, np.float64)
    found = np.zeros(lines.shape, kind)
    state = np.zeros((n, *lines.shape[1:]), kind)
    if zi is not None:
        state[: n - 1] = np.moveaxis(np.asarray(zi), axis, 0)
    for t in range(lines.shape[0]):
        now = above[0] * lines[t] + state[0]
        found[t] = now
        for k in range(1, n):
            state[k - 1] = state[k] + above[k] * lines[t] - below[k] * now
    if zi is None:
        return np.moveaxis(found, 0, axis)
    return np.moveaxis(found, 0, axis), np.moveaxis(state[: n - 1], 0, axis)


def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a filter that has long seen ones."""
    above, below = np.atleast_1d(b) * 1.0, np.atleast_1d(a) * 1.0
    n = max(above.shape[0], below.shape[0])
    above = np.pad(above / below[0], (0, n - above.shape[0]))
    below = np.pad(below / below[0], (0, n - below.shape[0]))
    whole = np.eye(n - 1)
    whole[:, 0] += below[1:]
    whole[np.arange(n - 2), np.arange(1, n - 1)] -= 1.0
    return np.linalg.solve(whole, above[1:] - below[1:] * above[0])


def extended(x: Any, padtype: Any, count: Any) -> Any:
    """A signal with both ends continued along the last dimension."""
    if padtype is None or count == 0:
        return x
    low, high = x[..., count:0:-1], x[..., -2 : -(count + 2) : -1]
    if padtype == "odd":
        low, high = 2 * x[..., :1] - low, 2 * x[..., -1:] - high
    elif padtype == "constant":
        low, high = x[..., :1] + 0 * low, x[..., -1:] + 0 * high
    elif padtype != "even":
        raise ValueError(f"Unknown value '{padtype}' given to padtype.")
    return np.concatenate((low, x, high), axis=-1)


def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: Any = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: Any = "pad",
    irlen: Any = None,
) -> Any:
    """A filter forwards and backwards."""
    if method != "pad":
        raise NotImplementedError("scipy.signal.filtfilt with another method than 'pad'")
    lines = np.moveaxis(np.asarray(x), axis, -1)
    count = 3 * max(np.size(b), np.size(a)) if padlen is None else padlen
    if padtype is None:
        count = 0
    if lines.shape[-1] <= count:
        raise ValueError(f"The length of the input vector x must be greater than padlen, {count}.")
    zi = lfilter_zi(b, a)
    longer = extended(lines, padtype, count)
    forwards, _ = lfilter(b, a, longer, -1, zi * longer[..., 0][..., np.newaxis])
    backwards, _ = lfilter(b, a, forwards[..., ::-1], -1, zi * forwards[..., -1][..., np.newaxis])
    found = backwards[..., ::-1]
    if count > 0:
        found = found[..., count : longer.shape[-1] - count]
    return np.moveaxis(found, -1, axis)


def sosfilt(sos: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """A filter in sections of second order."""
    found = np.moveaxis(np.asarray(x) * 1.0, axis, -1)
    ends = []
    for k in range(len(sos)):
        if zi is None:
            found = lfilter(sos[k, :3], sos[k, 3:], found)
        else:
            found, end = lfilter(sos[k, :3], sos[k, 3:], found, -1, zi[k])
            ends.append(end)
    if zi is None:
        return np.moveaxis(found, -1, axis)
    return np.moveaxis(found, -1, axis), np.stack(ends)


def sosfilt_zi(sos: Any) -> Any:
    """The states of sections that have long seen ones."""
    scale = 1.0
    found = []
    for k in range(len(sos)):
        found.append(scale * lfilter_zi(sos[k, :3], sos[k, 3:]))
        scale = scale * np.sum(sos[k, :3]) / np.sum(sos[k, 3:])
    return np.stack(found)


def sosfiltfilt(sos: Any, x: Any, axis: Any = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """A filter in sections, forwards and backwards."""
    lines = np.moveaxis(np.asarray(x) * 1.0, axis, -1)
    count = padlen
    if padlen is None:
        ends = np.count_nonzero(sos[:, 2] == 0), np.count_nonzero(sos[:, 5] == 0)
        count = 3 * (2 * len(sos) + 1 - min(*ends))
    zi = sosfilt_zi(sos)
    longer = extended(lines, padtype, count)
    shape = (1,) * (lines.ndim - 1)
    start = zi.reshape((len(sos), *shape, 2))
    forwards, _ = sosfilt(sos, longer, -1, start * longer[..., 0][..., np.newaxis])
    backwards, _ = sosfilt(sos, forwards[..., ::-1], -1, start * forwards[..., -1][..., np.newaxis])
    found = backwards[..., ::-1]
    if count > 0:
        found = found[..., count : longer.shape[-1] - count]
    return np.moveaxis(found, -1, axis)


def savgol_filter(
    x: Any,
    window_length: Any,
    polyorder: Any,
    deriv: Any = 0,
    delta: Any = 1.0,
    axis: Any = -1,
    mode: Any = "interp",
    cval: Any = 0.0,
) -> Any:
    """Polynomials of least squares in windows (Savitzky and Golay)."""
    from scipy.ndimage import convolve1d  # type: ignore[import-untyped,unused-ignore]
    from scipy.signal import savgol_coeffs  # type: ignore[import-untyped,unused-ignore]

    values = np.asarray(x) * 1.0
    weights = savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        return convolve1d(values, weights, axis=axis, mode=mode, cval=cval)
    lines = np.moveaxis(values, axis, -1)
    n, half = lines.shape[-1], window_length // 2
    if window_length > n:
        raise ValueError("If mode is 'interp', window_length must be less than the size of x.")
    found = convolve1d(lines, weights, axis=-1, mode="constant")
    fitted = np.linalg.pinv(np.vander(np.arange(window_length) * 1.0, polyorder + 1))
    place = np.arange(window_length) * 1.0
    powers = [derived(place, polyorder - k, deriv) for k in range(polyorder + 1)]
    smooth = np.stack(powers, axis=1) @ fitted / delta**deriv
    found[..., :half] = lines[..., :window_length] @ smooth[:half].T
    found[..., n - half :] = lines[..., n - window_length :] @ smooth[window_length - half :].T
    return np.moveaxis(found, -1, axis)


def derived(x: Any, power: Any, times: Any) -> Any:
    """Derivatives of powers."""
    scale = 1.0
    for k in range(times):
        scale = scale * (power - k)
    return scale * x ** max(power - times, 0)


def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """Medians of neighbours, among which are zeros outside."""
    values = np.asarray(volume)
    sizes: Any = 3 if kernel_size is None else kernel_size
    extents = [sizes] * values.ndim if np.ndim(sizes) == 0 else list(sizes)
    wide = np.pad(values, [(k // 2, k // 2) for k in extents])
    windows = np.lib.stride_tricks.sliding_window_view(wide, tuple(extents))
    count = 1
    for k in extents:
        count = count * k
    return np.sort(windows.reshape((*values.shape, count)), axis=-1)[..., count // 2]


def argrelextrema(
    data: Any, comparator: Any, axis: Any = 0, order: Any = 1, mode: Any = "clip"
) -> Any:
    """Places that compare so with all their neighbours."""
    values = np.asarray(data)
    n = values.shape[axis]
    places = np.arange(n)
    found = np.ones(values.shape, dtype=bool)
    for shift in range(1, order + 1):
        above, below = places + shift, places - shift
        if mode == "wrap":
            above, below = above % n, below % n
        else:
            above, below = np.clip(above, 0, n - 1), np.clip(below, 0, n - 1)
        found &= comparator(values, np.take(values, above, axis=axis))
        found &= comparator(values, np.take(values, below, axis=axis))
    return np.nonzero(found)


def argrelmax(data: Any, axis: Any = 0, order: Any = 1, mode: Any = "clip") -> Any:
    """Places of relative maxima."""
    return argrelextrema(data, np.greater, axis, order, mode)


def argrelmin(data: Any, axis: Any = 0, order: Any = 1, mode: Any = "clip") -> Any:
    """Places of relative minima."""
    return argrelextrema(data, np.less, axis, order, mode)
