"""``bisect``: on what is known by Python itself, on other lists and arrays as the program's own."""

from __future__ import annotations

import bisect
import inspect
from typing import Any

from distspmd.frontend.from_numpy.functions.registry import function
from distspmd.frontend.from_numpy.kinds import has_data
from distspmd.frontend.from_numpy.library import bisection
from distspmd.frontend.from_numpy.run_lists import RunList
from distspmd.frontend.from_numpy.syntax.calls import of_library
from distspmd.frontend.from_numpy.values import Tensor


def _as_function(name: str) -> Any:
    own = getattr(bisection, name)

    def call(run: Any, *given: Any, **named: Any) -> Any:
        try:
            bound = inspect.signature(own).bind(*given, **named)
        except TypeError as problem:
            run.tracer.refuse(f"bisect.{name}: {problem}")
        bound.apply_defaults()
        values = bound.arguments
        of_run = isinstance(values["a"], Tensor | RunList)
        if not of_run and values["key"] is None and not has_data(list(values.values())):
            return getattr(bisect, name)(*given, **named)
        return of_library(run, own, values)

    return call


for _name in ("bisect_left", "bisect_right"):
    function(getattr(bisect, _name))(_as_function(_name))
