"""``bisect`` on what is known, by Python itself."""

from __future__ import annotations

import bisect
from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.mutation import before_change


def _as_function(name: str) -> Any:
    def call(run: Context, a: Any, *given: Any, **named: Any) -> Any:
        if not isinstance(a, list | tuple) or has_data((a, given, named)) or "key" in named:
            run.tracer.refuse(
                f"bisect.{name} of what is not known is not covered: use np.searchsorted"
            )
        if name.startswith("insort") and isinstance(a, list):
            before_change(run, a)
        return getattr(bisect, name)(a, *given, **named)

    return call


for _name in ("bisect_left", "bisect_right", "insort_left", "insort_right"):
    function(getattr(bisect, _name))(_as_function(_name))
