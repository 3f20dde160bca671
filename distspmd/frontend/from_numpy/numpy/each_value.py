"""Python's functions that compare values, or call a function for each: sorted, min, max, map."""

from __future__ import annotations

import ast
import builtins
import functools
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.arithmetic import choose
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.run_types import choose_type
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import iteration
from distspmd.frontend.from_numpy.lists import orders_of_lists
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.numpy.python import as_list
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import generators, texts
from distspmd.frontend.from_numpy.reader.objects import is_own
from distspmd.frontend.from_numpy.reader.operators import compared
from distspmd.frontend.from_numpy.reader.ranges import SymbolicRange, static_values

_NONE = object()


@function(builtins.sorted)
def _sorted(run: Context, values: Any, *, key: Any = None, reverse: Any = False) -> Any:
    found = _of_run(run, values)
    if found is None:
        every = list(static_values(run, values))
        keys = _keys(run, every, key)
        if not has_data(keys):
            places = sorted(range(len(every)), key=keys.__getitem__, reverse=reverse)
            return [every[n] for n in places]
        if any(map(is_own, every)):
            run.tracer.refuse("sorted(...) of objects by what is known at run time only")
        found = orders_of_lists.as_list(run, every)
    orders_of_lists.sort(run, found, key=key, reverse=reverse)
    return found


def _of_run(run: Context, values: object) -> Any:
    """A new list of as many values as the run decides; None for others."""
    if isinstance(values, SymbolicRange) and not isinstance(values.length, int):
        return run.run_function(iteration.mapped, {"called": int, "values": values})
    return as_list(run, values)


def _keys(run: Context, values: Any, key: Any) -> list[Any]:
    """What values are compared by."""
    return [value if key is None else run.call(key, [value], {}) for value in values]


def _extreme(
    run: Context, values: Any, *, least: bool, key: Any = None, default: Any = _NONE
) -> Any:
    name = "min" if least else "max"
    if len(values) == 1:
        (over,) = values
        if key is None and default is _NONE and isinstance(over, Tensor):
            return run.call(getattr(np, name), [over], {})
        found = over if isinstance(over, RunList) else _of_run(run, over)
        if found is not None:
            if default is not _NONE:
                called = {"called": getattr(builtins, name), "values": found, "key": key}
                return run.run_function(iteration.extreme_or, {**called, "default": default})
            return orders_of_lists.extreme(run, found, least=least, key=key)
        values = list(static_values(run, over))
        if not values and default is not _NONE:
            return default
    keys = _keys(run, values, key)
    if not has_data(keys):
        try:
            place = (min if least else max)(range(len(values)), key=keys.__getitem__)
        except (ValueError, TypeError) as problem:
            run.tracer.refuse(f"{name}(...): {type(problem).__name__}: {problem}")
        return values[place]
    return _extreme_of_run(run, values, keys, key, least=least)


def _extreme_of_run(run: Context, values: Any, keys: Any, key: Any, *, least: bool) -> Any:
    """The least, or greatest, of values, as numbers of the run say."""
    if all(type(v) is str for v in values) and all(map(_is_number, keys)):
        return _text_of_extreme(run, values, keys, least=least)
    if key is not None or any(isinstance(v, tuple | list) for v in values):
        found = orders_of_lists.as_list(run, values)
        extreme = orders_of_lists.extreme(run, found, least=least, key=key)
        if isinstance(extreme, Tensor) and extreme.ndim:  # it is one of them, and no copy
            extreme = run.tracer.stored_anew(extreme)
            run.tracer.links.elements[extreme.container] = None
        return extreme
    return _of_numbers(run, values, least=least)


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and value.mask is None and value.dtype.kind in "biuf"
    return isinstance(value, int | float | sympy.Expr)


def _text_of_extreme(run: Context, values: Any, keys: Any, *, least: bool) -> Any:
    """The first of known texts that has the least, or greatest, number."""
    tracer = run.tracer
    best, which = tracer.tensor(keys[0]), tracer.tensor(0)
    for place, key in enumerate(keys[1:], 1):
        test = compared(run, ast.Lt() if least else ast.Gt(), key, best)
        holds = tracer.stored(tracer.tensor(test))
        best = tracer.stored(choose(tracer, holds, tracer.tensor(key), best))
        which = tracer.stored(choose(tracer, holds, tracer.tensor(place), which))
    return texts.one_at(values, which)


def _of_numbers(run: Context, values: Any, *, least: bool) -> Any:
    """The least, or greatest, of numbers some of which are known at run time only."""
    if all(isinstance(v, int | sympy.Expr) and not isinstance(v, bool) for v in values):
        return (sympy.Min if least else sympy.Max)(*map(sympy.sympify, values))
    found = values[0]
    for other in values[1:]:
        test = compared(run, ast.Lt() if least else ast.Gt(), other, found)
        one, two = run.tracer.tensor(other), run.tracer.tensor(found)
        holds = run.tracer.tensor(test)
        # Stored, since the next comparison and the next choice both read it: unstored, the
        # expression of n values would have 2^n parts.
        chosen = choose_type(holds, one, two, choose(run.tracer, holds, one, two))
        found = run.tracer.stored(chosen) if len(values) > 3 else chosen
    return found


@function(builtins.min)
def _min(run: Context, *values: object, **options: object) -> Any:
    return _extreme(run, values, least=True, **options)


@function(builtins.max)
def _max(run: Context, *values: object, **options: object) -> Any:
    return _extreme(run, values, least=False, **options)


@function(builtins.map)
def _map(run: Context, called: object, *values: object) -> Any:
    if len(values) == 1 and (found := _of_run(run, values[0])) is not None:
        return run.run_function(iteration.mapped, {"called": called, "values": found})
    rows = zip(*(static_values(run, v) for v in values), strict=False)
    return generators.of_values(run, iter([run.call(called, list(row), {}) for row in rows]))


@function(builtins.filter)
def _filter(run: Context, called: object, values: object) -> Any:
    called = bool if called is None else called
    found = _of_run(run, values)
    if found is None:
        every = list(static_values(run, values))
        tests = [run.truth(run.call(called, [value], {})) for value in every]
        if None not in tests:
            return [value for value, test in zip(every, tests, strict=True) if test]
        found = orders_of_lists.as_list(run, every)
    return run.run_function(iteration.filtered, {"called": called, "values": found})


@function(functools.reduce)
def _reduce(run: Context, called: object, values: object, initial: object = _NONE) -> Any:
    found = _of_run(run, values)
    if found is not None and initial is not _NONE:
        given = {"called": called, "values": found, "initial": initial}
        return run.run_function(iteration.reduced, given)
    every = list(static_values(run, values))
    if initial is not _NONE:
        every = [initial, *every]
    if not every:
        run.tracer.refuse("functools.reduce of no values, without an initial one")
    return functools.reduce(lambda one, other: run.call(called, [one, other], {}), every)
