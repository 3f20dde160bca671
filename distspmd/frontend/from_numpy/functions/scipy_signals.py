"""``scipy.signal``: convolutions, read in place."""

from __future__ import annotations

from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.library import convolutions

read_in_place(
    "scipy.signal",
    *(convolutions.convolve, convolutions.correlate, convolutions.fftconvolve),
    convolutions.correlation_lags,
)
