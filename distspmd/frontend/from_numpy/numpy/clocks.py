"""Functions of the module ``time`` that say what a clock says."""

from __future__ import annotations

import functools

from distspmd.frontend.from_numpy.arrays import checks
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS
from distspmd.frontend.from_numpy.reader.clocks import Seconds
from distspmd.runtime.calls.clock import CLOCKS


def _read(run: Context, *, name: str) -> Seconds:
    number = run.readings_of_clocks
    run.readings_of_clocks += 1
    checks.add_reading(run, number, name)
    return Seconds({number: 1.0})


for _name, _clock in CLOCKS.items():
    FUNCTIONS[_clock] = functools.partial(_read, name=_name)
