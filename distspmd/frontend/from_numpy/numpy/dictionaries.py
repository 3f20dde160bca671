"""``dict``, ``defaultdict`` and ``Counter``, whose keys are known."""

from __future__ import annotations

import builtins
import functools
from collections import Counter, OrderedDict, defaultdict
from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.ranges import static_values


@function(builtins.dict)
def _dict(run: Context, values: object = (), **named: object) -> Any:
    return _made(run, values, named)


@function(OrderedDict)
def _ordered(run: Context, values: object = (), **named: object) -> Any:
    return OrderedDict(_made(run, values, named))


@function(defaultdict)
def _defaultdict(run: Context, factory: object = None, values: object = (), **named: object) -> Any:
    if factory is not None and not isinstance(factory, type):
        factory = functools.partial(run.call, factory, [], {})
    return defaultdict(factory, _made(run, values, named))


@function(Counter)
def _counter(run: Context, values: object = (), **named: object) -> Any:
    if isinstance(values, dict | str):
        return Counter(values, **named)
    if isinstance(values, RunList) or has_data(values):
        for_python(run, "dict")
    return Counter(list(static_values(run, values)), **named)


def _made(run: Context, values: object, named: dict[str, Any]) -> Any:
    """A dictionary of another one, or of pairs, and of named values."""
    if isinstance(values, RunList):
        for_python(run, "dict")
    if not isinstance(values, dict):
        values = [tuple(static_values(run, p)) for p in static_values(run, values)]
        if any(len(pair) == 2 and has_data(pair[0]) for pair in values):
            for_python(run, "dict")
    return {name: run.settled_parts(value) for name, value in dict(values, **named).items()}
