"""Programs that call functions of NumPy in all their forms, by the module that covers them."""

from from_numpy.functions import fourier, order, quantiles, scans
from from_numpy.functions.registry import PROGRAMS

__all__ = ["PROGRAMS", "fourier", "order", "quantiles", "scans"]
