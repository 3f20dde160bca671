"""``bisect``: on what is known by Python itself, on other lists and arrays as the program's own."""

from __future__ import annotations

import bisect
import inspect
from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import bisection
from distspmd.frontend.from_numpy.lists.run_lists import RunList, decided_by_run
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.mutation import before_change


def _as_function(name: str) -> Any:
    own = getattr(bisection, name)

    def call(run: Context, *given: Any, **named: Any) -> Any:
        try:
            bound = inspect.signature(own).bind(*given, **named)
        except TypeError as problem:
            run.tracer.refuse(f"bisect.{name}: {problem}")
        bound.apply_defaults()
        values = bound.arguments
        a = values["a"]
        if not isinstance(a, list | tuple | RunList | Tensor):
            run.tracer.refuse(f"bisect.{name} in {told(a)}")
        is_known = isinstance(a, list | tuple) and values["key"] is None
        is_known = is_known and not has_data(list(values.values()))
        if name.startswith("insort") and isinstance(a, list):
            if not is_known:
                decided_by_run(run, a)
            before_change(run, a)
            if not is_known:
                run.tracer.refuse(f"bisect.{name} in a list that the program does not make itself")
        return getattr(bisect, name)(*given, **named) if is_known else run.run_function(own, values)

    return call


for _name in ("bisect_left", "bisect_right", "insort_left", "insort_right"):
    function(getattr(bisect, _name))(_as_function(_name))
