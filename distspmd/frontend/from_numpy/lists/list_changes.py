"""How lists whose content the run decides change: each change is a statement of the program."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arrays import checks, indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    Tensor,
    View,
    index_expression,
    whole_expression,
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
    contains,
    element_at,
    element_taken,
    made_of,
    made_of_columns,
    must_have_order,
    named_place,
    part_of,
    place_in,
    place_with_room,
)
from distspmd.frontend.from_numpy.lists.run_lists import (
    DecidedByRun,
    Grows,
    RunList,
    columns_in,
    count_of,
    decided_by_run,
    form_of,
    must_be_known,
    note,
    note_form,
    numbers_of,
    parts_of,
    site_of,
)
from distspmd.frontend.tensor_ir.statements import Block, Branch, Index, loads_of
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    is_at_least,
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
        told = "a list gets another length while a loop iterates over it"
        raise Grows(tracer.message(told), own)
    if grows and isinstance(own.count, int):
        note_growth(tracer, own, 0)
        raise DecidedByRun(own.site)  # the next reading knows it


def write(run: Context, own: RunList, items: object, value: object) -> None:
    """``own[items] = value``."""
    must_have_order(run, own)
    _before_change(run, own, grows=False)
    value = absence.put(run, value)
    if isinstance(items, slice):
        run.tracer.refuse("a part of a list whose content the run decides is assigned; use a loop")
    note(run.tracer, own, value)
    aliases.give(run, own, value)
    _put(run, own, place_in(run, own, items), value)


def augment(run: Context, own: RunList, items: object, op: ast.operator, value: object) -> None:
    """``own[items] op= value``."""
    must_have_order(run, own)
    _before_change(run, own, grows=False)
    place = place_in(run, own, items)
    old = element_at(run, own, place)
    if isinstance(own.form, Leaf) and own.form.shape:
        run.tracer.assign(old, run.tracer.tensor(run.binary(op, old, value)))
        return
    new = run.settled_parts(run.binary(op, old, value))
    note(run.tracer, own, new)
    _put(run, own, place, new)


def delete(run: Context, own: RunList, items: object) -> None:
    """``del own[items]``."""
    if isinstance(items, slice):
        run.tracer.refuse("a part of a list whose content the run decides is deleted")
    pop(run, own, items)


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
def pop(run: Context, own: RunList, place: object = -1) -> Any:
    """``own.pop(place)``."""
    tracer = run.tracer
    if own.kind is set:
        tracer.refuse("an element of a set is popped, which has no order; use a list")
    _before_change(run, own)
    note_growth(tracer, own, 0)
    must_be_known(tracer, own)
    count = count_of(tracer, own)
    where = tracer.as_whole(place)
    index = checked_place(tracer, own, where, count)
    found = element_taken(run, own, index)
    if where != -1:
        _shift(tracer, own, index, 1)
    _set_count(tracer, own, subtract(count, 1))
    return found


def _shift(tracer: Tracer, own: RunList, place: Whole, by: int) -> None:
    """Move the elements from a place on: by 1 to the front, over one; by -1 to the back."""
    last = subtract(own.room, 1)
    for column in own.columns:

        def element(index: tuple[Index, ...], column: View = column) -> Any:
            first, *rest = index
            moved: Any = sympy.sympify(first) + by if not isinstance(first, int) else first + by
            moved = sympy.Max(0, sympy.Min(moved, last))
            there = apply("greater_equal", index_expression(first), whole_expression(place))
            one, other = column.element((moved, *rest)), column.element((first, *rest))
            return apply("where", there, one, other)

        tracer.assign(column, Tensor(column.shape, column.dtype, element))


@aliases.putting
def insert(run: Context, own: RunList, place: object, value: object) -> None:
    """``own.insert(place, value)``."""
    tracer = run.tracer
    must_have_order(run, own)
    _before_change(run, own)
    value = absence.put(run, value)
    note(tracer, own, value)
    note_growth(tracer, own)
    aliases.give(run, own, value)
    value = run.settled_parts(value)
    count = count_of(tracer, own)
    _check_room(run, own, count)
    where = tracer.as_whole(place)
    known = is_at_least(where, 0, tracer.known.bounds)
    if not known and not isinstance(where, int):
        tracer.refuse("an element is inserted at a place of the run, which may be negative")
    at_end = sympy.Min(where, count) if known else sympy.Max(0, add(count, where))
    index = named_place(tracer, own, at_end)
    _shift(tracer, own, index, -1)
    _put(run, own, index, value)
    _set_count(tracer, own, add(count, 1))


@aliases.putting
def extend(run: Context, own: RunList, values: object) -> None:
    """``own.extend(values)``."""
    tracer = run.tracer
    must_have_order(run, own)
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


def add_to_set(run: Context, own: RunList, value: object) -> None:
    """``own.add(value)`` of a set."""
    tracer = run.tracer
    if own.kind is not set:
        tracer.refuse("AttributeError: 'list' object has no attribute 'add'")
    _before_change(run, own)
    value = absence.put(run, value)
    note(tracer, own, value)
    value = run.settled_parts(value)
    if not _has_form(tracer, own, value):
        note_growth(tracer, own)
        return
    there = contains(run, own, value)
    condition = tracer.condition(tracer.tensor(there))
    then = Block()
    with tracer.within(then):
        append(run, own, value)
    tracer.add(Branch(f"(not {condition})", then, Block()))


def _remove(run: Context, own: RunList, value: object) -> None:
    """``own.remove(value)``."""
    place = _index(run, own, value)
    pop(run, own, place)


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
    must_have_order(run, own)
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


def replace_elements(
    run: Context, own: RunList, form: Leaf, columns: Sequence[Tensor], more: Whole
) -> None:
    """Give a list or set other elements, by at most so many more than before."""
    tracer = run.tracer
    _before_change(run, own)
    note_form(tracer, own, form)
    note_growth(tracer, own, more)
    take_over(run, own, [tracer.stored_anew(c, "elements") for c in columns])


def as_set(run: Context, values: Any) -> RunList:
    """A set of values that are known at run time only."""
    tracer = run.tracer
    site = site_of(tracer, tracer.node)
    if not isinstance(values, RunList):
        return made_of(run, site, set, values)
    column = numbers_of(run, values, "a set of tuples of the run; use an array of truth values")
    form = Leaf(column.dtype, getattr(values.form, "weak", None))
    return made_of_columns(run, set, form, [run.call(np.unique, [column], {})], site)


def _update(run: Context, own: RunList, *more: Any) -> None:
    """``own.update(*more)`` of a set."""
    for values in more:
        for value in list(values):
            add_to_set(run, own, value)


METHODS: dict[str, Callable[..., Any]] = {
    "append": append,
    "pop": pop,
    "popleft": lambda run, own: pop(run, own, 0),
    "appendleft": lambda run, own, value: insert(run, own, 0, value),
    "insert": insert,
    "extend": extend,
    "add": add_to_set,
    "update": _update,
    "remove": _remove,
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
    handler = METHODS.get(method.name)
    if method.name in ("pop", "popleft", "appendleft", "insert", "remove"):
        for_python(run, "pop")
    if handler is None or (method.owner.kind is set and method.name not in _OF_SETS):
        run.tracer.refuse(
            f"the method {method.name!r} of a {method.owner.kind.__name__} whose content the run "
            "decides is not covered"
        )
    return handler(run, method.owner, *arguments, **keywords)


_OF_SETS = frozenset(["add", "update", "clear", "copy", "pop"])
