"""What the clock of this process has said while programs ran, by the numbers of its readings.

A program reads a clock where the function that it is made of does. Each rank notes what its own
clock says; what rank 0 prints, or gets as a result, is of its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

CLOCKS = {"time": time.time, "perf_counter": time.perf_counter, "monotonic": time.monotonic}
"""Clocks that programs may read, by their names in the module ``time``."""
_READINGS: dict[int, float] = {}


def read_clock(number: int, name: str) -> None:
    """Note what a clock says now."""
    _READINGS[number] = CLOCKS[name]()


def seconds(factors: Mapping[int, float], more: float) -> float:
    """A sum of readings, each with a factor, and of a number."""
    return sum((f * _READINGS.get(n, 0.0) for n, f in factors.items()), more)
