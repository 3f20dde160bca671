"""Filters, spectra and convolutions by ``scipy.signal``."""

import numpy as np
from scipy import signal

from from_numpy.functions.registry import program


def _signals(rng):
    return rng.normal(size=41), rng.normal(size=(3, 41))


@program(_signals)
def responses(x, t):
    sections = signal.butter(4, 0.2, output="sos")
    return (
        signal.freqz(x[:5], [1, 0.5], x),
        signal.freqz(x[:5], 1, worN=16, whole=True),
        signal.freqz(x[:3], x[3:6], worN=8, fs=100.0),
        signal.sosfreqz(sections, worN=16)[1] * x[0],
        (signal.get_window("hann", 41) * x, signal.firwin(11, 0.3) @ x[:11]),
    )


@program(_signals)
def filtered_signals(x, t):
    b, a = signal.butter(3, 0.2)
    state = signal.lfilter_zi(b, a)
    return (
        (signal.lfilter(b, a, x), signal.lfilter(b, a, t, axis=0), signal.lfilter([1, -1], 1, x)),
        signal.lfilter(b, a, x, zi=state * x[0]),
        signal.lfilter(x[:3], [2.0, 0.3], t),
        signal.lfilter([1], [1, -0.5], (x * 5).astype(int)),
        signal.lfilter(b=[1, 2], a=[1], x=x + 1j),
    )


@program(_signals)
def filtered_to_and_fro(x, t):
    b, a = signal.butter(3, 0.2)
    return (
        (signal.filtfilt(b, a, x), signal.filtfilt(b, a, t, axis=1)),
        signal.filtfilt(b, a, x, padtype="even", padlen=5),
        signal.filtfilt(b, a, x, padtype=None),
        signal.lfilter_zi(np.abs(x[:4]), np.array([1.0, 0.2, 0.1])),
    )


@program(_signals)
def filtered_in_sections(x, t):
    sections = signal.butter(4, 0.3, output="sos")
    started = signal.sosfilt(sections, x, zi=signal.sosfilt_zi(sections) * x[0])
    return started, signal.sosfilt(sections, t, axis=0), signal.sosfiltfilt(sections, t)


@program(_signals)
def smoothed_by_windows(x, t):
    return (
        (signal.savgol_filter(x, 7, 2), signal.savgol_filter(t, 5, 3, deriv=1, delta=0.1)),
        (signal.savgol_filter(x, 7, 2, mode="nearest"), signal.savgol_filter(t.T, 7, 2, axis=0)),
        (signal.medfilt(x, 5), signal.medfilt(t, 3), signal.medfilt(t, (1, 5))),
        (signal.hilbert(x), signal.hilbert(t, axis=0), signal.hilbert(x[:-1])),
    )


@program(_signals)
def extrema_of_signals(x, t):
    found = signal.argrelextrema(x, np.less, order=3)[0]
    return found, signal.argrelmax(x)[0], signal.argrelextrema(x, np.greater)


@program(_signals)
def powers_of_frequencies(x, t):
    return (
        (signal.welch(x), signal.welch(t, fs=10.0, nperseg=16)),
        signal.welch(x, nperseg=16, noverlap=4, nfft=32, detrend="linear", scaling="spectrum"),
        (signal.welch(x, window=np.ones(8)), signal.welch(x, nperseg=15, detrend=False)),
        (signal.csd(x, t[0], nperseg=16), signal.periodogram(x)),
        signal.periodogram(t, fs=4.0, window="hann", nfft=64),
        signal.spectrogram(t, fs=2.0, nperseg=8, noverlap=2),
    )


@program(_signals)
def resampled(x, t):
    kinds = [signal.resample(x, n) for n in (20, 41, 64)]
    even = [signal.resample(x[:40], n) for n in (20, 39, 60)]
    return kinds, even, signal.resample(t, 33, axis=1)


@program(_signals)
def convolutions_of_any_shape(x, t):
    whole = np.arange(5)
    return (
        (signal.correlate(x, x[:5]), signal.correlate(t, t[:2, :4], mode="same")),
        (signal.convolve(t, t[:2, :3]), signal.fftconvolve(t, t[:, :5], mode="same")),
        (signal.correlate(x[:5], x, mode="valid"), signal.correlate(x[:4], x, mode="same")),
        signal.correlate(x, x[:4] + 1j * x[4:8], mode="same"),
        signal.convolve((t * 9).astype(int), np.ones((2, 2), int)),
        signal.fftconvolve(whole, np.arange(3) + (x[0] > 9)),
        signal.correlation_lags(41, 5, "same"),
    )


@program(_signals)
def shapes_together(x, t):
    found = np.broadcast(t, x[:, None, None])
    return found.shape, found.size, found.ndim, np.broadcast(x, t).shape
