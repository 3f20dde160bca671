"""What gives something else at each call: clocks, generators of random numbers, and logs.

What a clock of ``time`` says is a number of the program: rank 0 is asked where the program asks.
Python runs the statements that call the others.
"""

from __future__ import annotations

import datetime
import functools
import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.checks import outside_of_maps
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.blocks import emit_call
from distspmd.frontend.from_numpy.host.probes import Form, Leaf
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS
from distspmd.runtime.host.library_calls import form_of

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_DATES = ("now", "today", "utcnow")
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def _read(run: Context, *, clock: Callable[[], float], kind: type) -> Tensor:
    name = f"time.{clock.__name__}"
    outside_of_maps(run, f"{name}()")
    leaf = Leaf((), INT64 if kind is int else np.dtype(float), kind)
    form = Form(kind(), form_of(kind()), (leaf,))
    tree = {"call": [{"import": name.replace(".", ":")}, [], {}]}
    (found,) = emit_call(run, name, tree, form, [], [], [""])
    return replace(found, weak=kind)


def _log(run: Context, *given: object, level: int, **_: object) -> None:
    """Write what the settings of ``logging`` do not leave out when the program is read."""
    logger = given[0] if isinstance(given[0], logging.Logger) else logging.getLogger()
    if logger.isEnabledFor(level):
        run.tracer.refuse(f"what the logger {logger.name!r} writes is not covered")


def check_repeatable(run: Context, owner: object, function: Callable[..., Any], name: str) -> None:
    """Leave methods to Python that give something else each time.

    Raises:
        Refusal: it is one.
    """
    is_date = isinstance(owner, type) and issubclass(owner, datetime.date)
    if isinstance(owner, _GENERATORS) or (is_date and function.__name__ in _DATES):
        run.tracer.refuse(f"{name}, which gives something else at each call, is not covered")


for _name in _CLOCKS:
    for _clock, _kind in ((_name, float), (f"{_name}_ns", int)):
        _found = getattr(time, _clock)
        FUNCTIONS[_found] = functools.partial(_read, clock=_found, kind=_kind)
for _name in ("debug", "info", "warning", "error", "exception", "critical"):
    _level = logging.ERROR if _name == "exception" else getattr(logging, _name.upper())
    for _found in (getattr(logging, _name), getattr(logging.Logger, _name)):
        FUNCTIONS[_found] = functools.partial(_log, level=_level)
