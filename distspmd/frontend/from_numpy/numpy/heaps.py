"""``heapq``: on lists that are known by Python itself, on others as functions of the program."""

from __future__ import annotations

import heapq
from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import heaps
from distspmd.frontend.from_numpy.lists.run_lists import RunList, decided_by_run
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.mutation import before_change


def _as_heap(name: str) -> Any:
    def call(run: Context, heap: object, *item: object) -> Any:
        if not isinstance(heap, list | RunList):
            run.tracer.refuse(f"heapq.{name}: the heap has to be a list, not {told(heap)}")
        if isinstance(heap, list):
            if has_data((heap, list(item))):
                decided_by_run(run, heap)
            before_change(run, heap)
            try:
                return getattr(heapq, name)(heap, *item)
            except (IndexError, TypeError) as problem:
                if run.tracer.inner:  # an earlier iteration may have added to it
                    decided_by_run(run, heap)
                run.tracer.refuse(f"heapq.{name}: {type(problem).__name__}: {problem}")
        return run.run_function(getattr(heaps, name), _named(name, heap, item))

    return call


def _named(name: str, heap: object, item: tuple[Any, ...]) -> dict[str, Any]:
    return {"heap": heap, **({"item": item[0]} if item else {})}


for _name in ("heappush", "heappop", "heapify", "heapreplace", "heappushpop"):
    function(getattr(heapq, _name))(_as_heap(_name))
