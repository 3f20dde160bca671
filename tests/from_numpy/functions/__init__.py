"""Programs that call functions of NumPy in all their forms, by the module that covers them."""

from from_numpy.functions import (
    applied,
    counting,
    fourier,
    gathers,
    of_polynomials,
    order,
    quantiles,
    rarer_arguments,
    scans,
    sequences,
)
from from_numpy.functions.registry import PROGRAMS

__all__ = [
    "PROGRAMS",
    "applied",
    "counting",
    "fourier",
    "gathers",
    "of_polynomials",
    "order",
    "quantiles",
    "rarer_arguments",
    "scans",
    "sequences",
]
