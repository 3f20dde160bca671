"""``dict``, ``defaultdict`` and ``Counter``: Python's own, or with keys that the run decides."""

from __future__ import annotations

import builtins
import functools
from collections import Counter, OrderedDict, defaultdict
from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import lists, run_dicts
from distspmd.frontend.from_numpy.lists.run_lists import RunDict, RunList, site_of
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.ranges import static_values


@function(builtins.dict)
def _dict(run: Context, values: object = (), **named: object) -> Any:
    return _made(run, dict, values, named)


@function(OrderedDict)
def _ordered(run: Context, values: object = (), **named: object) -> Any:
    made = _made(run, dict, values, named)
    return made if isinstance(made, RunDict) else OrderedDict(made)


@function(defaultdict)
def _defaultdict(run: Context, factory: object = None, values: object = (), **named: object) -> Any:
    if factory is not None and not isinstance(factory, type):
        factory = functools.partial(run.call, factory, [], {})
    made = _made(run, defaultdict, values, named)
    if isinstance(made, RunDict):
        made.default = factory
        return made
    return defaultdict(factory, made)


@function(Counter)
def _counter(run: Context, values: object = (), **named: object) -> Any:
    if isinstance(values, RunDict):
        run.tracer.refuse("a Counter of a dictionary whose keys the run decides; write a loop")
    if isinstance(values, dict | str):
        return Counter(values, **named)
    if isinstance(values, RunList) or has_data(values):
        return run_dicts.counted(run, site_of(run.tracer, run.tracer.node), values)
    return Counter(list(static_values(run, values)), **named)


def _made(run: Context, kind: type, values: object, named: dict[str, Any]) -> Any:
    """A dictionary of another one, or of pairs, and of named values."""
    site = site_of(run.tracer, run.tracer.node)
    if isinstance(values, RunList) and not isinstance(values, RunDict):
        run.tracer.refuse("a dictionary of a list of pairs that the run decides; write a loop")
    if isinstance(values, RunDict):
        if named:
            run.tracer.refuse("names beside a dictionary whose keys the run decides")
        columns = lists.columns_of(run.tracer, values)
        return lists.made_of_columns(run, kind, values.form, columns, site)
    if not isinstance(values, dict):
        values = [tuple(static_values(run, p)) for p in static_values(run, values)]
        if run_dicts.has_run_keys(values):
            return run_dicts.of_pairs(run, site, kind, [*values, *named.items()])
    return {name: run.settled_parts(value) for name, value in dict(values, **named).items()}
