"""What gives something else at each call, and would be asked once: clocks, and generators."""

from __future__ import annotations

import datetime
import random
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.runtime.calls.form import TODAY

_CLOCKS = ("now", "today", "utcnow")
_DATES = (datetime.datetime, datetime.date)


def check_repeatable(run: Context, owner: Any, function: Any, name: str) -> None:
    """Refuse methods that give something else each time, but would be asked once."""
    if isinstance(owner, np.random.Generator | np.random.RandomState):
        run.tracer.refuse(
            "a generator of random numbers that was made outside of the program; make it inside, "
            "with a seed: rng = np.random.default_rng(seed)"
        )
    if owner is datetime.date and function.__name__ == "today":
        run.tracer.day[TODAY] = datetime.date.today()  # the program is made anew on another day
    elif any(owner is kind for kind in _DATES) and function.__name__ in _CLOCKS:
        run.tracer.refuse(
            f"{name}: the clock would be asked once, when the program is read; pass "
            "the time as an argument"
        )
    if isinstance(owner, random.Random):
        run.tracer.refuse(
            f"{function.__name__} of a generator that was made outside of the program, which would "
            "draw once, when the program is read; make it inside: rng = random.Random(seed)"
        )
