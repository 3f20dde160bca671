"""Programs that call functions of NumPy in all their forms, by the module that covers them."""

from from_numpy.functions import (
    applied,
    counting,
    exponents,
    fourier,
    gathers,
    of_matrices,
    of_optimisation,
    of_polynomials,
    of_samples,
    of_scipy,
    of_signals,
    order,
    quantiles,
    rarer_arguments,
    scans,
    sequences,
    taken_parts,
)
from from_numpy.functions.registry import PROGRAMS

__all__ = [
    "PROGRAMS",
    "applied",
    "counting",
    "exponents",
    "fourier",
    "gathers",
    "of_matrices",
    "of_optimisation",
    "of_polynomials",
    "of_samples",
    "of_scipy",
    "of_signals",
    "order",
    "quantiles",
    "rarer_arguments",
    "scans",
    "sequences",
    "taken_parts",
]
