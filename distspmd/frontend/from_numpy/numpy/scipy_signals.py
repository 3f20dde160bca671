"""``scipy.signal``: convolutions, read in place."""

from __future__ import annotations

from distspmd.frontend.from_numpy.library import convolutions
from distspmd.frontend.from_numpy.numpy.written_out import read_in_place

read_in_place(
    "scipy.signal",
    *(convolutions.convolve, convolutions.correlate, convolutions.fftconvolve),
    convolutions.correlation_lags,
)
