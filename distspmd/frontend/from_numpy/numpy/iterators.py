"""``itertools`` and the rest of ``heapq``: iterators over what a program has.

Where the number of values is known, Python's own function orders their places. Over others they are
functions of the program.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.otherwise import is_of_program
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import generators
from distspmd.frontend.from_numpy.reader.generators import Generator
from distspmd.frontend.from_numpy.reader.ranges import Zipped, static_values


def _of_run(run: Context, values: object) -> bool:
    """Whether the number of values is the run's to decide."""
    if isinstance(values, RunList):
        return not isinstance(values.count, int)
    return isinstance(values, Tensor) and not isinstance(values.shape[0], int)


def _iterator(run: Context, values: Sequence[Any]) -> Any:
    return generators.of_values(run, iter(values))


def _by_places(called: Callable[..., Any]) -> Any:
    """A function that gives its values in other orders, or some of them."""

    def call(run: Context, values: object, *rest: object, **named: object) -> Any:
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
def _pairwise(run: Context, iterable: object) -> Any:
    if isinstance(iterable, Tensor):
        whole = run.tracer.stored(as_arrays(run.tracer, iterable))
        ends = (slice(None, -1), slice(1, None))
        return Zipped(tuple(run.part_of(whole, end) for end in ends))
    every = list(static_values(run, iterable))
    return _iterator(run, list(itertools.pairwise(every)))


@function(itertools.chain)
def _chain(run: Context, *iterables: object) -> Any:
    return _iterator(run, [each for values in iterables for each in static_values(run, values)])


@function(itertools.chain.from_iterable)
def _chain_all(run: Context, iterable: object) -> Any:
    return _chain(run, *static_values(run, iterable))


@function(itertools.islice)
def _islice(run: Context, iterable: Any, *ends: Any) -> Any:
    if isinstance(iterable, Tensor | list | tuple | RunList):
        return run.part_of(iterable, slice(*ends))
    _check_whole(run, iterable)
    return _iterator(run, list(itertools.islice(static_values(run, iterable), *ends)))


def _check_whole(run: Context, values: object) -> None:
    """Leave generators, which may have no end, to Python."""
    if isinstance(values, Generator) and values.rest is None:
        generators.in_parts(run)


def _of_known(called: Callable[..., Any]) -> Any:
    """A function that Python itself calls at once, of what is known."""

    def call(run: Context, *given: object, **named: object) -> Any:
        every = [*given, *named.values()]
        is_known = not has_data(every) and not any(
            is_of_program(each) or isinstance(each, Generator) for each in every
        )
        if called is itertools.groupby or not is_known:  # a group ends where the next one begins
            run.tracer.refuse(f"itertools.{called.__name__} is not covered: write a loop")
        return _iterator(run, list(called(*given, **named)))

    return call


_OF_KNOWN: tuple[Callable[..., Any], ...] = (
    itertools.accumulate,
    itertools.dropwhile,
    itertools.groupby,
    itertools.starmap,
    itertools.takewhile,
    itertools.zip_longest,
)
for _each in _OF_KNOWN:
    function(_each)(_of_known(_each))


# -- the least and the largest -----------------------------------------------------------------


@function(heapq.nsmallest)
def _nsmallest(run: Context, n: object, iterable: object, key: object = None) -> Any:
    return run.part_of(run.call(sorted, [iterable], {"key": key}), slice(None, n))


@function(heapq.nlargest)
def _nlargest(run: Context, n: object, iterable: object, key: object = None) -> Any:
    every = run.call(sorted, [iterable], {"key": key, "reverse": True})
    return run.part_of(every, slice(None, n))
