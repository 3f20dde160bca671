"""Lists whose content the run decides: where they are made, and how they are read."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.subscripts import catch_outside, index_in
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import (
    CannotRoll,
    Refusal,
    is_taken,
    line_of_error,
)
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import check_kind, for_python
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.lists import aliases
from distspmd.frontend.from_numpy.lists.list_forms import (
    UNKNOWN,
    Leaf,
    RowOfRun,
    Rows,
    element_of,
    joined_form,
    leaves,
    stored_count,
    value_of_leaf,
)
from distspmd.frontend.from_numpy.lists.run_lists import (
    Facts,
    RunList,
    UnknownElement,
    as_tensor,
    columns_in,
    count_of,
    must_be_known,
    note,
    parts_of,
    site_of,
    view_of_column,
)
from distspmd.frontend.tensor_ir.statements import Block, Length, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import (
    CheckedIndex,
    Whole,
    add,
    remainder,
    same,
    subtract,
    symbol,
)
from distspmd.runtime.calls.form import rebuilt


@dataclass(frozen=True)
class ListMethod:
    """A method of a list whose content the run decides."""

    owner: RunList
    name: str


# -- birth ----------------------------------------------------------------------------------------

_MAKING = (ast.List, ast.ListComp, ast.BinOp, ast.Call, ast.Set, ast.SetComp, ast.Subscript)
_MAKING_DICTS = (ast.Dict, ast.DictComp, ast.Call)
KINDS = (list, deque, set, dict, defaultdict, Counter)


def born(run: Context, node: ast.expr, found: Any) -> Any:
    """What an expression makes: a list is remembered, or becomes one whose content the run decides.

    Args:
        run: the reading.
        node: the expression.
        found: its value.
    """
    tracer = run.tracer
    making = _MAKING_DICTS if isinstance(found, dict) else _MAKING
    if not isinstance(node, making) or id(found) in tracer.lists.born:
        return found
    site = site_of(tracer, node)
    if site in tracer.lists.known_lists and not _is_seen(tracer, found):
        if found and all(isinstance(v, list | RunList) and _is_empty(v) for v in found):
            for_python(run, "table")
        return made_of(run, site, type(found), list(found))
    tracer.lists.born[id(found)] = found, site
    return found


def _is_empty(value: list[Any] | RunList) -> bool:
    return value.first_count == 0 if isinstance(value, RunList) else not value


def _is_seen(tracer: Tracer, found: object) -> bool:
    """Whether a variable stands for a list already."""
    every = [v for frame in tracer.frames for v in frame.variables.values()]
    return any(v is found for v in every)


@aliases.putting
def made_of(run: Context, site: object, kind: type, values: Sequence[Any]) -> RunList:
    """A list of elements that are known one by one."""
    tracer = run.tracer
    own = empty(run, site, kind, len(values))
    for value in values:
        note(tracer, own, value)
        if isinstance(value, View) and value.ndim:
            aliases.note_shared(run, own, value)
    if any(one is other for n, one in enumerate(values) for other in values[:n] if _is_list(one)):
        tracer.refuse(
            "a list that is several elements of a list whose content the run decides: a change of "
            "one would change all. Make each its own: [[0] * n for _ in range(m)]"
        )
    columns = zip(*(parts_of(own.form, v) for v in values), strict=True) if values else ()
    for column, parts in zip(own.columns, columns, strict=False):
        _fill(tracer, column, parts)
    return own


def _is_list(value: object) -> bool:
    return isinstance(value, list | RunList)


def _fill(tracer: Tracer, column: View, values: Sequence[Any]) -> None:
    """Write the first elements of a column."""
    is_plain = not any(has_data(v) or isinstance(v, np.ndarray) for v in values)
    known = np.array(values, dtype=column.dtype) if is_plain else None
    if known is not None and known.ndim == column.ndim and known.size:
        is_one = bool((known == known.flat[0]).all())
        table = _constant(column, len(values), known.flat[0]) if is_one else tracer.table(known)
        tracer.write(part_of(tracer, column, 0, len(values)), table)
    else:
        for place, value in enumerate(values):
            part = indexing.read(tracer, column, place)
            tracer.assign(part, tracer.tensor(value))  # type: ignore[arg-type]


def _constant(column: View, length: Length, value: object) -> Tensor:
    found = number(value, column.dtype)
    return Tensor((length, *column.shape[1:]), column.dtype, lambda _: found)


def part_of(tracer: Tracer, column: View, first: Whole, end: Whole) -> View:
    """The elements of a column between two places."""
    found = indexing.read(tracer, column, slice(first, end))
    assert isinstance(found, View)
    return found


def empty(run: Context, site: Any, kind: type, count: Length, form: Any = None) -> RunList:
    """A list with room, of elements that are not written yet."""
    check_kind(run, kind)
    tracer = run.tracer
    if tracer.map.straight is not None:
        tracer.map.straight.leave()
    if tracer.map.parallel:
        tracer.refuse(
            "a list whose content the run decides in a map, whose iterations have no order"
        )
    facts = tracer.lists.known_lists.get(site, Facts())
    form = facts.form or form or UNKNOWN
    most = tracer.capacity(count)
    room = tracer.lists.room if facts.room is None else facts.room
    room = add(most, room) if facts.room is None else _larger(room, most)
    room = _larger(room, 1)
    name = tracer.target or kind.__name__
    columns = []
    for leaf in leaves(form):
        zero = number(0, leaf.dtype)
        shape = (room, *leaf.shape)
        stored = tracer.stored_anew(Tensor(shape, leaf.dtype, lambda _, z=zero: z), name)  # type: ignore[misc]
        columns.append(stored)
    is_fixed = not facts.grows and isinstance(count, int)
    length: Any = count
    if not is_fixed:
        length = stored_count(tracer, count, f"{name}_length")
    own = RunList(
        kind,
        form,
        columns,
        length,
        room,
        facts.room is not None,
        site,
        len(tracer.lists.handles),
        len(tracer.loops),
        most,
    )
    tracer.lists.handles.append(own)
    tracer.lists.needs[own.number] = 0
    return own


def _larger(one: Length, other: Length) -> Length:
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    if same(one, other) or (isinstance(other, int) and other <= 1):
        return one
    if isinstance(one, int) and one <= 1:
        return other
    return sympy.Max(sympy.sympify(one), sympy.sympify(other))


@aliases.putting
def made_of_columns(
    run: Context, kind: type, form: Any, columns: Sequence[Tensor], site: Any = None
) -> RunList:
    """A list of the elements that columns hold."""
    tracer = run.tracer
    site = site or site_of(tracer, tracer.node)
    count = columns[0].shape[0]
    stored = [tracer.stored_anew(column, "elements") for column in columns]
    own = empty(run, site, kind, count, form)
    own.shares = any(isinstance(column, View) and column.ndim > 1 for column in columns)
    known = tracer.lists.noted.get(site, Facts())
    if form is not UNKNOWN:
        form = joined_form(tracer, known.form, form)
        tracer.lists.noted[site] = replace(known, form=form)
    if joined_form(tracer, own.form, form) == own.form:  # else the next reading knows
        for column, values in zip(own.columns, columns_in(own.form, form, stored), strict=True):
            tracer.assign(part_of(tracer, column, 0, count), values)
    return own


def settled(run: Context, value: object) -> Any:
    """What is assigned to a part of a list, as it is before any other part is assigned."""
    if isinstance(value, RunList) and value.owner is not None:
        copies = [run.tracer.stored_anew(column, "element") for column in value.columns]
        return replace(value, columns=copies, is_copy=True)
    if isinstance(value, tuple | RowOfRun):
        return rebuilt(value, [settled(run, part) for part in value])
    return value


# -- reading --------------------------------------------------------------------------------------


def length_of(run: Context, own: RunList) -> Any:
    """``len(own)``: a number, or one that is read now."""
    if isinstance(own.count, int):
        return own.count
    found = run.tracer.stored_anew(own.count, "length")
    found.weak = int
    return found


def is_not_empty(run: Context, own: RunList) -> Any:
    """Whether there are elements."""
    if isinstance(own.count, int):
        return own.count > 0
    return combine(run.tracer, np.greater, [own.count, 0])


def place_in(run: Context, own: RunList, index: object) -> Whole:
    """The place of an element, which is checked in the run."""
    tracer = run.tracer
    whole = tracer.as_whole(index)
    if isinstance(own.count, int):
        return index_in(tracer, whole, own.count)
    count = count_of(tracer, own)
    if tracer.guarded:
        known = not isinstance(whole, int) or whole < 0
        inside = remainder(whole, sympy.Max(1, count)) if known else whole
        return named_place(
            tracer, own, sympy.Max(0, sympy.Min(inside, sympy.sympify(own.room) - 1))
        )
    return checked_place(tracer, own, whole, count)


def checked_place(tracer: Tracer, own: RunList, index: Whole, count: Length) -> Whole:
    """A place that the run checks against a number of elements."""
    if is_taken(tracer, "IndexError"):
        catch_outside(tracer, sympy.sympify(index), count, "list index out of range")
        return named_place(tracer, own, remainder(index, sympy.Max(1, count)))
    return _ending_place(tracer, own, index, count, line_of_error(tracer, "IndexError"))


def place_with_room(tracer: Tracer, own: RunList, count: Whole) -> Whole:
    """The place behind all elements, for which there is room."""
    return _ending_place(tracer, own, count, own.room, tracer.line[1] if tracer.line else 0)


def _ending_place(tracer: Tracer, own: RunList, index: Whole, count: Length, line: int) -> Whole:
    found = CheckedIndex(*map(sympy.sympify, (index, count, line)))
    return named_place(tracer, own, found)


def named_place(tracer: Tracer, own: RunList, value: object) -> Whole:
    """A symbol for a place in a list."""
    name = tracer.unique("place")
    tracer.known.bounds[name] = (0, subtract(own.room, 1))
    tracer.add(SetSymbol(name, value, INT64))
    return symbol(name)


def element_at(run: Context, own: RunList, place: Whole) -> Any:
    """The element at a place that is known to be there."""
    values = _values_at(run, own, own.columns, place)
    return element_of(own.form, values, rows_in(own))


def _values_at(run: Context, own: RunList, columns: Sequence[View], place: Whole) -> list[Any]:
    """The values of the element at a place of columns."""
    found = [indexing.read(run.tracer, column, place) for column in columns]
    return [value_of_leaf(run.tracer, *pair) for pair in zip(leaves(own.form), found, strict=True)]


def element_taken(run: Context, own: RunList, place: Whole) -> Any:
    """The element at a place, which stays as it is now."""
    values: list[Any] = []
    for column, leaf in zip(own.columns, leaves(own.form), strict=True):
        part = run.tracer.stored_anew(indexing.read(run.tracer, column, place), "popped")
        values.append(value_of_leaf(run.tracer, leaf, part))
    return element_of(own.form, values, rows_in(own))


def rows_in(own: RunList) -> Callable[[Rows, list[Any]], RunList]:
    """What makes lists that are elements of a list, of which changes are changes of that list."""

    def listed(form: Rows, columns: list[Any]) -> RunList:
        return replace(
            own,
            kind=list,
            form=form.element,
            columns=columns,
            count=form.length,
            room=form.length,
            first_count=form.length,
            iterated=0,
            owner=own,
            given=[],
        )

    return listed


def read(run: Context, own: RunList, items: object) -> Any:
    """``own[items]``."""
    must_be_known(run.tracer, own)
    if isinstance(items, slice):
        return _slice(run, own, items)
    if isinstance(items, tuple):
        run.tracer.refuse("TypeError: list indices must be integers or slices, not tuple")
    return element_at(run, own, place_in(run, own, items))


def _slice(run: Context, own: RunList, items: slice) -> RunList:
    parts = [indexing.read(run.tracer, column, items) for column in columns_of(run.tracer, own)]
    return made_of_columns(run, list, own.form, parts)


def columns_of(tracer: Tracer, own: RunList) -> list[View]:
    """The columns as long as the list is now."""
    count = count_of(tracer, own)
    return [view_of_column(column, count) for column in own.columns]


def values_of(run: Context, own: RunList) -> tuple[Length, Callable[[Whole], Any]]:
    """How many elements are iterated over, and the element at an index."""
    must_be_known(run.tracer, own)
    columns = columns_of(run.tracer, own)

    def value(index: Whole) -> Any:
        return element_of(own.form, _values_at(run, own, columns, index), rows_in(own))

    return columns[0].shape[0], value


def contains(run: Context, own: RunList, value: object) -> Any:
    """``value in own``."""
    found = equal_to(run, own, value)
    if found is None:
        return False
    there = run.call(np.any, [found], {})
    return Tensor((), np.dtype(bool), there.element, bool)


def equal_to(run: Context, own: RunList, value: object) -> Any:
    """Which elements are equal to a value; None where none can be."""
    tracer = run.tracer
    parts = parts_of(own.form, value) if _fits(own.form, value) else None
    if parts is None:
        return None
    found: Any = None
    for column, leaf, part in zip(columns_of(tracer, own), leaves(own.form), parts, strict=True):
        if leaf.is_type:
            continue  # 0 and 0.0 are equal
        if leaf.shape:
            tracer.refuse("'in' of a list of lists or arrays; use np.any(...) of a comparison")
        same_one = combine(tracer, np.equal, [column, part])
        found = same_one if found is None else combine(tracer, np.logical_and, [found, same_one])
    return found


def _fits(form: Any, value: Any) -> bool:
    """Whether a value may be equal to an element."""
    if isinstance(form, Leaf):
        is_fit = not isinstance(value, tuple | list | RunList) and value is not None
        return is_fit and isinstance(value, str) == bool(form.texts)
    if isinstance(form, Rows):
        return isinstance(value, list) and len(value) == form.length
    return type(value) in (form.kind, RowOfRun) and len(value) == len(form.parts)


def copied(run: Context, own: RunList) -> RunList:
    """A list of the elements of another one."""
    return made_of_columns(run, list, own.form, columns_of(run.tracer, own))


def of_array(run: Context, kind: type, values: Tensor, weak: type | None = None) -> RunList:
    """A list of the numbers, or the rows, of an array; of numbers of Python with their type."""
    form = Leaf(values.dtype, weak, tuple(values.shape[1:]))
    return made_of_columns(run, kind, form, [values])


def total(run: Context, own: RunList) -> Any:
    """``sum(own)``."""
    if not isinstance(own.form, Leaf) or own.form.texts:
        kind = "str" if isinstance(own.form, Leaf) else "tuple"
        run.tracer.refuse(f"TypeError: unsupported operand type(s) for +: 'int' and '{kind}'")
    column, *_ = columns_of(run.tracer, own)
    if own.form.shape:
        return run.call(np.sum, [column, 0], {})
    found = run.call(np.sum, [column], {})
    weak = own.form.weak if own.form.weak is not bool else int
    return Tensor((), found.dtype, found.element, weak, is_mixed=own.form.is_mixed)


def as_array(run: Context, value: object) -> Any:
    """A value in which lists whose content the run decides are arrays."""
    if isinstance(value, RunList):
        return as_tensor(run.tracer, value)
    if isinstance(value, list | tuple) and any(isinstance(v, RunList) for v in value):
        return rebuilt(value, [as_array(run, v) for v in value])
    return value


def look_into(run: Context, node: ast.stmt) -> None:
    """Read the blocks of a statement for what lists get in them; nothing of it is kept."""
    if not isinstance(node, ast.If | ast.While | ast.For):
        return
    for block in (node.body, node.orelse):
        saved = Saved(run)
        with suppress(Refusal, CannotRoll, UnknownElement), run.tracer.within(Block()):
            run.block(block)
        noted = dict(run.tracer.lists.noted)
        saved.restore(run)
        run.tracer.lists.noted = noted
