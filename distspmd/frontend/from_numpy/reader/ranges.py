"""What loops run over: ranges of symbols, and what is counted or taken side by side."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dace
import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.elements import known_whole
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex, joined
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    whole_expression,
)
from distspmd.frontend.from_numpy.arrays.written_values import line_of
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import iteration
from distspmd.frontend.from_numpy.lists.lists import values_of
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.parallel_map import ParallelMap
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.generators import Generator, collect
from distspmd.frontend.from_numpy.reader.python_errors import fail
from distspmd.frontend.from_numpy.reader.texts import Text, not_known
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    ceil_divide,
    is_at_least,
    multiply,
    same,
    simplified,
    subtract,
    symbol,
)


def least_of(lengths: Sequence[Whole]) -> Whole:
    """The least of some lengths."""
    first, *others = lengths
    for other in others:
        if not same(first, other):
            first = simplified(sympy.Min(sympy.sympify(first), sympy.sympify(other)))
    return first


@dataclass(frozen=True)
class SymbolicRange:
    """``range(first, end, step)`` where not all are numbers."""

    first: Whole
    end: Whole
    step: Whole

    @property
    def length(self) -> Whole:
        """Number of values, if it is not negative."""
        if isinstance(self.step, int) and self.step < 0:
            return ceil_divide(subtract(self.first, self.end), -self.step)
        return ceil_divide(subtract(self.end, self.first), self.step)


@dataclass(frozen=True)
class Enumerated:
    """``enumerate(values, start)``."""

    values: Any
    start: Whole


@dataclass(frozen=True)
class Zipped:
    """``zip(...)``."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Places:
    """All combinations of the values of some axes, the last of which changes fastest.

    With an array, each comes with the element that is there when its turn comes.
    """

    axes: tuple[Any, ...]
    array: Any = None

    @property
    def is_of_ranges(self) -> bool:
        """Whether each axis is a range, whose values nothing changes."""
        return bool(self.axes) and all(isinstance(a, range | SymbolicRange) for a in self.axes)


_LISTED = 32
"""Whole numbers of a table, at most, over which a loop is written out."""


def by_index(run: Context, over: object) -> tuple[Whole, Callable[[Whole], Any]] | None:
    """How many values are iterated over, and the value at an index; None where these are listed.

    A short table of whole numbers, ``np.array([0, 1, -1])``, is a list of them: an index or a shift
    by one of them is known then.
    """
    tables, lengths = _tables_and_lengths(run.tracer, over)
    if tables and all(isinstance(n, int) for n in lengths):
        return None
    return _by_index(run, over)


def _tables_and_lengths(tracer: Tracer, over: object) -> tuple[bool, list[Any]]:
    """Whether there are short tables in what is iterated over, and the lengths of all parts."""
    if isinstance(over, Enumerated):
        return _tables_and_lengths(tracer, over.values)
    if isinstance(over, Zipped):
        found = [_tables_and_lengths(tracer, v) for v in over.values]
        return any(t for t, _ in found), [n for _, lengths in found for n in lengths]
    if isinstance(over, range | list | tuple):
        return False, [len(over)]
    if not isinstance(over, Tensor) or not over.ndim:
        return False, [None]
    table = (
        tracer.known.tables.get(over.container)
        if isinstance(over, View) and over.is_whole
        else None
    )
    is_short = table is not None and len(table) <= _LISTED and table.dtype.kind in "iu"
    return is_short and over.ndim == 1 and line_of(table) is None, [over.shape[0]]


def _by_index(run: Context, over: object) -> tuple[Whole, Callable[[Whole], Any]] | None:
    """The same, also of short tables."""
    tracer = run.tracer
    if isinstance(over, RunList):
        return values_of(run, over)
    if isinstance(over, Tensor):
        return _elements(tracer, over)
    if isinstance(over, Text):
        not_known()
    if isinstance(over, range):
        over = SymbolicRange(over.start, over.stop, over.step)
    if isinstance(over, SymbolicRange):
        return over.length, lambda index: add(over.first, multiply(index, over.step))
    if isinstance(over, Enumerated):
        inner = _by_index(run, over.values)
        if inner is not None:
            return inner[0], lambda index: (add(index, over.start), inner[1](index))
    if isinstance(over, Zipped):
        parts = [_by_index(run, v) for v in over.values]
        known = [part for part in parts if part is not None]
        if known and len(known) == len(parts):
            return least_of([n for n, _ in known]), lambda index: tuple(v(index) for _, v in known)
    return None


def in_table(tracer: Tracer, values: list[Any]) -> Callable[[Whole], Any] | None:
    """The value at an index that the run decides, of numbers or tuples of them; None of others."""
    form = _form(values[0])
    if form is None or any(_form(value) != form for value in values):
        return None
    columns = [*zip(*map(_flat, values), strict=True)]
    if not columns or any(abs(n) >= 2**63 for c in columns for n in c if type(n) is int):
        return None
    tables = [(tracer.table(np.array(column)), type(column[0])) for column in columns]

    def value_of(index: Whole) -> Any:
        found = (replace(indexing.part_at(tracer, t, index), weak=kind) for t, kind in tables)
        return _filled(form, found)

    return value_of


def _form(value: object) -> Any:
    """The types of numbers, in tuples as the value has them; None where there is something else."""
    if type(value) is not tuple:
        return type(value) if type(value) in (int, float) else None
    parts = tuple(map(_form, value))
    return None if None in parts else parts


def _flat(value: object) -> list[Any]:
    return [each for part in value for each in _flat(part)] if type(value) is tuple else [value]


def _filled(form: object, numbers: Iterator[Any]) -> Any:
    return tuple(_filled(f, numbers) for f in form) if type(form) is tuple else next(numbers)


def _elements(tracer: Tracer, over: Tensor) -> tuple[Whole, Callable[[Whole], Any]]:
    """How many elements or rows an array has, and the one at an index."""
    if over.ndim == 0:
        tracer.refuse("iteration over a 0-d array")
    if isinstance(over, RealOrComplex):
        length, value_of = _elements(tracer, over.in_complex)
        return length, lambda index: joined([over], value_of(index))
    known = _progression(tracer, over)
    if known is not None:
        return over.shape[0], known
    view = tracer.stored(as_arrays(tracer, over))
    return view.shape[0], lambda index: indexing.part_at(tracer, view, index)


def _progression(tracer: Tracer, values: Tensor) -> Callable[[Whole], Any] | None:
    """The elements of an array that ``np.arange`` made, as numbers that are known; None of others.

    So they may be ends of slices and lengths of arrays. They are NumPy's numbers, not Python's.
    """
    if values.ndim != 1 or values.dtype != INT64 or values.mask is not None:
        return None
    if isinstance(values, View):
        table = tracer.known.tables.get(values.container) if values.is_whole else None
        if table is None or len(table) < 2 or len(set(np.diff(table))) != 1:
            return None
        first, step = int(table[0]), int(table[1] - table[0])
        tracer.known.relied_on.add(values.container)
    else:
        at = [known_whole(values.element((n,))) for n in (0, 1, symbol("__probe0"))]
        if not isinstance(at[0], int | sympy.Basic):
            return None
        first, step = at[0], subtract(at[1], at[0])
        if at[2] is None or not same(at[2], add(first, multiply(step, symbol("__probe0")))):
            return None

    def value_of(index: Whole) -> Any:
        found = add(first, multiply(step, index))
        if isinstance(found, int):
            return np.int64(found)
        return Tensor((), INT64, lambda _: whole_expression(found))

    return value_of


def iterator_over(run: Context, value: object) -> Any:
    """What a loop goes through over an object that gives one value after the other."""

    kind = objects.class_of(value)
    each = iteration.each_next if hasattr(kind, "__next__") else iteration.each_place
    return run.run_function(each, {"values": value})


def iterated(run: Context, over: object) -> Any:
    """What is iterated over: of an object of the user's, what its ``__iter__`` gives."""
    if not objects.is_own(over) or isinstance(over, tuple | list | dict):
        return over
    found = objects.special(run, over, "iter")
    if found is NotImplemented and not hasattr(objects.class_of(over), "__getitem__"):
        fail(run, iter, over)
    if found is NotImplemented or (objects.is_own(found) and found is not over):
        return iterator_over(run, over if found is NotImplemented else found)
    return iterator_over(run, over) if found is over else found


def static_values(interpreter: Context, over: Any) -> Iterator[Any]:
    """The values that are iterated over, if their number is known."""
    tracer, over = interpreter.tracer, iterated(interpreter, over)
    if isinstance(over, Enumerated):
        for n, value in enumerate(static_values(interpreter, over.values)):
            yield add(over.start, n), value
    elif isinstance(over, Zipped):
        yield from zip(*(static_values(interpreter, v) for v in over.values), strict=False)
    elif isinstance(over, Places):
        yield from _static_places(interpreter, over)
    elif isinstance(over, SymbolicRange | Tensor | RunList | Text):
        length, value_of = _by_index(interpreter, over) or (0, None)
        if not isinstance(length, int):
            tracer.refuse(f"a number of values that is not known: {length}")
        yield from map(value_of, range(max(0, length)))  # type: ignore[arg-type]
    elif isinstance(over, Generator | Iterator):
        yield from collect(interpreter, over)
    else:
        try:
            yield from over
        except TypeError as problem:
            tracer.fail(problem)


def _static_places(interpreter: Context, over: Places) -> Iterator[Any]:
    axes = [list(static_values(interpreter, axis)) for axis in over.axes]
    for index in itertools.product(*axes):
        if over.array is None:
            yield index
        elif isinstance(over.array, Tensor):
            yield index, indexing.read(interpreter.tracer, over.array, index)
        else:
            yield index, over.array[index]


def map_ranges(interpreter: Context, node: ast.expr) -> list[tuple[Any, Any, Any]] | None:
    """The ranges of ``dace.map[...]`` or ``distspmd.map[...]``; None for something else.

    A schedule of DaCe behind it, ``@ ScheduleType.GPU_Device``, is passed over, as Python does:
    where ranks compute says ``compile(device=...)``.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        node = node.left
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute | ast.Name):
        return None
    try:
        base = interpreter.value(node.value)
    except Refusal:
        return None
    if base is not dace.map and not isinstance(base, ParallelMap):
        return None
    tracer = interpreter.tracer
    items = interpreter.subscript(node.slice)
    found = []
    for item in items if isinstance(items, tuple) else (items,):
        if not isinstance(item, slice) or item.stop is None:
            tracer.refuse("a map needs ranges with ends: distspmd.map[0:n, 0:m]")
        first, end, step = (
            default if e is None else tracer.as_whole(e, "the end of a range")
            for e, default in ((item.start, 0), (item.stop, 0), (item.step, 1))
        )
        if not is_at_least(step, 1, tracer.known.bounds):
            tracer.refuse(f"a map with the step {step}; write the range upwards")
        found.append((first, end, step))
    return found
