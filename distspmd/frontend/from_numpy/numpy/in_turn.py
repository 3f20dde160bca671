"""Python's functions of what gives one value after the other: ``iter``, ``next``, ``zip``."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal, told
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.library import iteration
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import generators
from distspmd.frontend.from_numpy.reader.generators import Generator
from distspmd.frontend.from_numpy.reader.mutation import Around, is_outside, watched
from distspmd.frontend.from_numpy.reader.objects import class_of, is_own, required
from distspmd.frontend.from_numpy.reader.ranges import Enumerated, Zipped, by_index, static_values
from distspmd.frontend.tensor_ir.whole_numbers import same


@function(builtins.enumerate)
def _enumerate(run: Context, values: object, start: object = 0) -> Any:
    return Enumerated(values, run.tracer.as_whole(start))


@function(builtins.iter)
def _iter(run: Context, values: object) -> Any:
    if isinstance(values, Generator):
        return values
    return generators.of_values(run, iter(list(static_values(run, values))))


@function(itertools.count)
def _count(run: Context, start: object = 0, step: object = 1) -> Any:
    return generators.counting(run, start, step)


@function(builtins.next)
def _next(run: Context, values: object, *default: object) -> Any:
    if isinstance(values, Generator):
        return _next_of_generator(run, values, *default)
    if is_own(values):
        if default:
            given = {"values": values, "default": default[0]}
            return run.run_function(iteration.next_or, given)
        return required(run, "next", next, values)
    if not isinstance(values, Iterator):
        run.tracer.fail(TypeError(f"{told(values)} is not an iterator"))
    if is_outside(run, values):
        run.tracer.refuse("next(...) of an iterator from outside of the program; make it inside")
    return next(values, *default)


def _next_of_generator(run: Context, values: Generator, *default: object) -> Any:
    """The next value of a generator; of one without a name the first that the run finds."""
    named = any(v is values for frame in run.tracer.frames for v in frame.variables.values())
    if named or values.has_begun or values.rest is not None:
        return generators.take_next(run, values, *default)
    saved = Saved(run)
    try:
        with watched(run.tracer, Around.BRANCH):
            return generators.take_next(run, values, *default)
    except (CannotRoll, Refusal):
        saved.restore(run)
        values.has_begun, values.rest = False, None
    given = {"values": values, **({"default": default[0]} if default else {})}
    return run.run_function(iteration.first_or if default else iteration.first_of, given)


@function(builtins.zip)
def _zip(run: Context, *values: object, strict: bool = False) -> Any:
    if strict:
        values = tuple(_listed(run, each) if _gives_in_turn(each) else each for each in values)
        _check_lengths(run, values)
    elif any(map(_gives_in_turn, values)):
        generators.in_parts(run)
    return Zipped(values)


def _listed(run: Context, values: object) -> list[Any]:
    return list(static_values(run, values))


def _gives_in_turn(value: object) -> bool:
    """Whether something is a generator, or an object of the program with ``__next__``."""
    if isinstance(value, Generator):
        return value.rest is None
    return is_own(value) and hasattr(class_of(value), "__next__")


def _check_lengths(run: Context, values: Sequence[Any]) -> None:
    """Let the program end where what is taken side by side differs in length, as far as known."""
    counted = [by_index(run, each) for each in values]
    lengths = [
        len(each) if isinstance(each, list | tuple | dict | str) and n is None else n and n[0]
        for each, n in zip(values, counted, strict=True)
    ]
    for place, length in enumerate(lengths[1:], 2):
        first = lengths[0]
        if first is None or length is None or same(first, length):
            continue
        told = f"zip() argument {place} has another length than argument 1"
        if isinstance(first, int) and isinstance(length, int):
            run.tracer.fail(ValueError(told))
        end_if(run, sympy.Ne(first, length), "ValueError", told)
