"""``itertools`` and the rest of ``heapq``: iterators over what a program has.

Where the number of values is known, Python's own function orders their places. Over others they are
functions of the program.
"""

from __future__ import annotations

import ast
import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import iteration
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import generators
from distspmd.frontend.from_numpy.reader.generators import Generator
from distspmd.frontend.from_numpy.reader.operators import compared
from distspmd.frontend.from_numpy.reader.ranges import Zipped, static_values


def _of_run(run: Context, values: Any) -> bool:
    """Whether the number of values is the run's to decide."""
    if isinstance(values, RunList):
        return not isinstance(values.count, int)
    return isinstance(values, Tensor) and not isinstance(values.shape[0], int)


def _iterator(run: Context, values: Sequence[Any]) -> Any:
    return generators.of_values(run, iter(values))


def _by_places(called: Callable[..., Any]) -> Any:
    """A function that gives its values in other orders, or some of them."""

    def call(run: Context, values: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(values, Tensor) and values.ndim:
            values = run.tracer.stored(as_arrays(run.tracer, values))
        every = list(static_values(run, values))
        places = called(range(len(every)), *rest, **named)
        return _iterator(run, [tuple(every[p] for p in place) for place in places])

    return call


for _called in (
    itertools.combinations,
    itertools.permutations,
    itertools.combinations_with_replacement,
):
    function(_called)(_by_places(_called))


@function(itertools.pairwise)
def _pairwise(run: Context, iterable: Any) -> Any:
    if isinstance(iterable, Tensor):
        whole = run.tracer.stored(as_arrays(run.tracer, iterable))
        ends = (slice(None, -1), slice(1, None))
        return Zipped(tuple(run.part_of(whole, end) for end in ends))
    every = list(static_values(run, iterable))
    return _iterator(run, list(itertools.pairwise(every)))


@function(itertools.accumulate)
def _accumulate(run: Context, iterable: Any, func: Any = None, *, initial: Any = None) -> Any:
    if _of_run(run, iterable):
        given = {"values": iterable, "called": func, "initial": initial}
        return run.run_function(iteration.accumulated, given)
    found: list[Any] = [] if initial is None else [initial]
    for value in static_values(run, iterable):
        if found:
            both = [found[-1], value]
            value = run.call(np.add, both, {}) if func is None else run.call(func, both, {})
            value = run.tracer.settled(value) if isinstance(value, Tensor) else value
        found.append(value)
    return _iterator(run, found)


@function(itertools.zip_longest)
def _zip_longest(run: Context, *iterables: Any, fillvalue: Any = None) -> Any:
    every = [list(static_values(run, values)) for values in iterables]
    return _iterator(run, list(itertools.zip_longest(*every, fillvalue=fillvalue)))


@function(itertools.chain)
def _chain(run: Context, *iterables: Any) -> Any:
    return _iterator(run, [each for values in iterables for each in static_values(run, values)])


@function(itertools.chain.from_iterable)
def _chain_all(run: Context, iterable: Any) -> Any:
    return _chain(run, *static_values(run, iterable))


@function(itertools.starmap)
def _starmap(run: Context, called: Any, iterable: Any) -> Any:
    every = [tuple(static_values(run, given)) for given in static_values(run, iterable)]
    return _iterator(run, [run.call(called, given, {}) for given in every])


@function(itertools.islice)
def _islice(run: Context, iterable: Any, *ends: Any) -> Any:
    if isinstance(iterable, Tensor | list | tuple | RunList):
        return run.part_of(iterable, slice(*ends))
    _check_whole(run, iterable)
    return _iterator(run, list(itertools.islice(static_values(run, iterable), *ends)))


def _check_whole(run: Context, values: Any) -> None:
    """Leave generators, which may have no end, to Python."""
    if isinstance(values, Generator) and values.rest is None:
        generators.in_parts(run)


@function(itertools.groupby)
def _groupby(run: Context, iterable: Any, key: Any = None) -> Any:
    groups: list[tuple[Any, list[Any]]] = []
    for value in static_values(run, iterable):
        own = value if key is None else run.call(key, [value], {})
        is_same = bool(groups) and run.truth(compared(run, ast.Eq(), groups[-1][0], own))
        if is_same is None:
            run.tracer.refuse("groups of which the run decides where they end; write a loop")
        if is_same:
            groups[-1][1].append(value)
        else:
            groups.append((own, [value]))
    return _iterator(run, [(own, _iterator(run, values)) for own, values in groups])


def _while(*, takes: bool) -> Any:
    def call(run: Context, predicate: Any, iterable: Any) -> Any:
        _check_whole(run, iterable)
        every = list(static_values(run, iterable))
        first = len(every)
        for place, value in enumerate(every):
            known = run.truth(run.call(predicate, [value], {}))
            if known is None:
                run.tracer.refuse("how many values that are, the run decides; write a loop")
            if not known:
                first = place
                break
        return _iterator(run, every[:first] if takes else every[first:])

    return call


function(itertools.takewhile)(_while(takes=True))
function(itertools.dropwhile)(_while(takes=False))


# -- the least and the largest -----------------------------------------------------------------


@function(heapq.nsmallest)
def _nsmallest(run: Context, n: Any, iterable: Any, key: Any = None) -> Any:
    return run.part_of(run.call(sorted, [iterable], {"key": key}), slice(None, n))


@function(heapq.nlargest)
def _nlargest(run: Context, n: Any, iterable: Any, key: Any = None) -> Any:
    every = run.call(sorted, [iterable], {"key": key, "reverse": True})
    return run.part_of(every, slice(None, n))
