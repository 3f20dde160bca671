"""How lists whose content the run decides change: each change is a statement of the program."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import checks, indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    Tensor,
    View,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.kinds import absence
from distspmd.frontend.from_numpy.lists import aliases
from distspmd.frontend.from_numpy.lists.list_forms import UNKNOWN, Leaf, joined_form
from distspmd.frontend.from_numpy.lists.list_rooms import note_growth
from distspmd.frontend.from_numpy.lists.lists import (
    ListMethod,
    checked_place,
    columns_of,
    element_at,
    element_taken,
    made_of,
    made_of_columns,
    part_of,
    place_in,
    place_with_room,
)
from distspmd.frontend.from_numpy.lists.run_lists import (
    DecidedByRun,
    RunList,
    columns_in,
    count_of,
    decided_by_run,
    form_of,
    must_be_known,
    note,
    note_form,
    parts_of,
)
from distspmd.frontend.tensor_ir.statements import loads_of
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    subtract,
    symbol,
)


def _before_change(run: Context, own: RunList, *, grows: bool = True) -> None:
    tracer = run.tracer
    if tracer.map.straight is not None:
        tracer.map.straight.leave()
    if tracer.guarded:
        tracer.refuse("a list is changed in a part of an expression that may not run; write if")
    if tracer.map.parallel:
        tracer.refuse("a list is changed in a map, whose iterations have no order")
    if own.is_copy:
        tracer.refuse(
            "a list of a list of lists has another name and is changed; change it by its index"
        )
    if own.also:
        tracer.refuse(
            f"a list changes that {own.also!r} may stand for, too, as the run decides: in Python "
            "both change. Make a copy, list(...), where the second name is given"
        )
    if grows and own.owner is not None:
        tracer.refuse(
            "a list that is an element of a list whose content the run decides gets another "
            "length; use an array with as many columns as a list can have, and one of lengths"
        )
    aliases.before_change(run, own, moves=grows)
    if grows and own.iterated:
        for_python(run, "grows")
    if grows and isinstance(own.count, int):
        note_growth(tracer, own, 0)
        raise DecidedByRun(own.site)  # the next reading knows it


def write(run: Context, own: RunList, items: object, value: object) -> None:
    """``own[items] = value``."""
    _before_change(run, own, grows=False)
    value = absence.put(run, value)
    if isinstance(items, slice):
        run.tracer.refuse("a part of a list whose content the run decides is assigned; use a loop")
    note(run.tracer, own, value)
    aliases.give(run, own, value)
    _put(run, own, place_in(run, own, items), value)


def augment(run: Context, own: RunList, items: object, op: ast.operator, value: object) -> None:
    """``own[items] op= value``."""
    _before_change(run, own, grows=False)
    place = place_in(run, own, items)
    old = element_at(run, own, place)
    if isinstance(own.form, Leaf) and own.form.shape:
        run.tracer.assign(old, run.tracer.tensor(run.binary(op, old, value)))
        return
    new = run.settled_parts(run.binary(op, old, value))
    note(run.tracer, own, new)
    _put(run, own, place, new)


@aliases.putting
def _put(run: Context, own: RunList, place: Whole, value: object) -> None:
    """Write an element at a place."""
    tracer = run.tracer
    if not _has_form(tracer, own, value):
        return  # the next reading knows the form
    parts = [tracer.tensor(part) for part in parts_of(own.form, value)]
    if len(parts) > 1:  # the first may change what the others read
        parts = [tracer.stored_anew(p) if _reads(own, p) else p for p in parts]
    for column, part in zip(own.columns, parts, strict=True):
        tracer.assign(indexing.read(tracer, column, place), part)  # type: ignore[arg-type]


def _reads(own: RunList, part: Tensor) -> bool:
    """Whether a value is computed of elements of a list."""
    index = tuple(symbol(f"__probe{d}") for d in range(part.ndim))
    containers = {column.container for column in own.columns}
    return any(load.array in containers for load in loads_of(part.element(index)))


def _has_form(tracer: Tracer, own: RunList, value: object) -> bool:
    """Whether a value can be an element as elements are kept in this reading."""
    known = None if own.form is UNKNOWN else own.form
    return joined_form(tracer, known, form_of(tracer, value)) == own.form


def append(run: Context, own: RunList, value: object) -> None:
    """``own.append(value)``."""
    tracer = run.tracer
    _before_change(run, own)
    value = absence.put(run, value)
    note(tracer, own, value)
    note_growth(tracer, own)
    aliases.give(run, own, value)
    value = run.settled_parts(value)
    count = count_of(tracer, own)
    _check_room(run, own, count)
    _put(run, own, place_with_room(tracer, own, count), value)
    _set_count(tracer, own, add(count, 1))


def _set_count(tracer: Tracer, own: RunList, count: Whole) -> None:
    assert isinstance(own.count, View)
    tracer.assign(own.count, tracer.whole(count))


def _check_room(run: Context, own: RunList, count: Whole, extra: Whole = 1) -> None:
    if own.is_bounded:
        return
    too_many = sympy.Gt(sympy.sympify(add(count, extra)), sympy.sympify(own.room))
    what = (
        f"a list gets more than the {own.room} elements that it has room for, since the program "
        "does not say how many there are at most; write into an array of the length that it needs"
    )
    checks.end_if(run, too_many, "RuntimeError", what)


@aliases.putting
def pop(run: Context, own: RunList) -> Any:
    """``own.pop()``, of a heap."""
    tracer = run.tracer
    _before_change(run, own)
    note_growth(tracer, own, 0)
    must_be_known(tracer, own)
    count = count_of(tracer, own)
    found = element_taken(run, own, checked_place(tracer, own, -1, count))
    _set_count(tracer, own, subtract(count, 1))
    return found


@aliases.putting
def extend(run: Context, own: RunList, values: object) -> None:
    """``own.extend(values)``."""
    tracer = run.tracer
    if isinstance(values, list | tuple | deque | range) and len(values) <= 64:
        for value in list(values):
            append(run, own, value)
        return
    _before_change(run, own)
    if isinstance(values, RunList):
        form, parts = values.form, columns_of(tracer, values)
    else:
        tensor = tracer.tensor(values)
        row = tensor.shape[1:]
        form, parts = Leaf(tensor.dtype, None, tuple(row)), [tensor]  # type: ignore[list-item]
    stored = [tracer.stored_anew(part, "more") for part in parts]
    if form is not UNKNOWN:
        note_form(tracer, own, form)
    length = stored[0].shape[0]
    note_growth(tracer, own, length)
    if joined_form(tracer, own.form, form) != own.form:
        return  # the next reading knows the form
    stored = columns_in(own.form, form, stored)  # type: ignore[assignment]
    count = count_of(tracer, own)
    _check_room(run, own, count, length)
    for column, more in zip(own.columns, stored, strict=True):
        tracer.assign(part_of(tracer, column, count, add(count, length)), more)
    _set_count(tracer, own, add(count, length))


def _index(run: Context, own: RunList, value: object) -> Any:
    """``own.index(value)``."""
    tracer = run.tracer
    if not isinstance(own.form, Leaf) or own.form.shape:
        tracer.refuse("the place of a tuple in a list; use np.argmax of a comparison")
    there = tracer.stored(tracer.tensor(_places_of(tracer, own, value)))
    return first_place(run, there)


def _places_of(tracer: Tracer, own: RunList, value: object) -> Any:
    """Which elements of a list of numbers, or of texts, are equal to a value."""
    part, *_ = parts_of(own.form, value)
    return combine(tracer, np.equal, [columns_of(tracer, own)[0], part])


def first_place(run: Context, there: object) -> Any:
    """The first place where a value is; an error of the run where there is none."""
    found = run.call(np.any, [there], {})
    missing = run.call(np.logical_not, [found], {})
    checks.end_if(run, missing, "ValueError", "the value is not in the list")
    place = run.call(np.argmax, [there], {})
    return Tensor((), place.dtype, place.element, int)


def _count(run: Context, own: RunList, value: object) -> Any:
    tracer = run.tracer
    if not isinstance(own.form, Leaf) or own.form.shape:
        tracer.refuse("the number of tuples in a list; use np.sum of a comparison")
    return number_of(run, _places_of(tracer, own, value))


def number_of(run: Context, there: object) -> Any:
    """How many truth values hold, as a number of Python."""
    found = run.call(np.count_nonzero, [there], {})
    return run.call(int, [found], {})


def _clear(run: Context, own: RunList) -> None:
    _before_change(run, own)
    note_growth(run.tracer, own, 0)
    _set_count(run.tracer, own, 0)


def _copy(run: Context, own: RunList) -> RunList:
    return made_of_columns(run, own.kind, own.form, columns_of(run.tracer, own))


@aliases.putting
def reorder(run: Context, own: RunList, order: Callable[[View], Any]) -> None:
    """Give the elements another order, in place."""
    tracer = run.tracer
    _before_change(run, own, grows=False)
    aliases.before_change(run, own, moves=True)
    for column in columns_of(tracer, own):
        made = tracer.stored_anew(order(column), "ordered")
        tracer.assign(column, made)


def _reverse(run: Context, own: RunList) -> None:
    back = slice(None, None, -1)
    reorder(run, own, lambda column: indexing.read(run.tracer, column, back))


def joined(run: Context, one: Any, other: Any) -> RunList:
    """``one + other``."""
    left, right = one, other
    if not isinstance(left, RunList):
        left = made_of(run, ("joined",), list, list(left))
        left.form = other.form if not one else left.form
    found = _copy(run, left)
    extend(run, found, right)
    return found


@aliases.putting
def take_over(run: Context, own: RunList, columns: Sequence[Tensor]) -> None:
    """Give a list the elements that columns hold."""
    tracer = run.tracer
    count = columns[0].shape[0]
    _check_room(run, own, 0, count)
    for column, values in zip(own.columns, columns, strict=True):
        tracer.assign(part_of(tracer, column, 0, count), values)
    _set_count(tracer, own, count)


METHODS: dict[str, Callable[..., Any]] = {
    "append": append,
    "extend": extend,
    "index": _index,
    "count": _count,
    "clear": _clear,
    "copy": _copy,
    "reverse": _reverse,
}


def adds_elements(run: Context, function: Any) -> bool:
    """Whether a function puts an argument into a list or set, of which the run decides then."""
    own = getattr(function, "__self__", None)
    if type(own) in (list, set) and function.__name__ in ("append", "add"):
        decided_by_run(run, own)
    return isinstance(function, ListMethod)


def call(run: Context, method: ListMethod, arguments: Sequence[Any], keywords: Any) -> Any:
    """What a method of a list gives.

    Raises:
        Refusal: it is not covered.
    """
    if method.name in ("pop", "insert", "remove"):
        if run.tracer.frames[-1].called_at is None:
            for_python(run, "pop")
        return pop(run, method.owner, *arguments)  # by a function of the library, of a heap
    handler = METHODS.get(method.name)
    if handler is None:
        run.tracer.refuse(
            f"the method {method.name!r} of a {method.owner.kind.__name__} whose content the run "
            "decides is not covered"
        )
    return handler(run, method.owner, *arguments, **keywords)
