"""``scipy.signal``: filters and spectra, read in place."""

from __future__ import annotations

from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.library import convolutions, filters, spectra

read_in_place(
    "scipy.signal",
    *(filters.lfilter, filters.lfilter_zi, filters.filtfilt, filters.savgol_filter),
    *(filters.sosfilt, filters.sosfilt_zi, filters.sosfiltfilt, filters.medfilt),
    *(filters.argrelextrema, filters.argrelmax, filters.argrelmin),
    *(spectra.freqz, spectra.sosfreqz, spectra.hilbert, spectra.csd, spectra.welch),
    *(convolutions.convolve, convolutions.correlate, convolutions.fftconvolve),
    convolutions.correlation_lags,
    *(spectra.periodogram, spectra.spectrogram, spectra.resample),
)
