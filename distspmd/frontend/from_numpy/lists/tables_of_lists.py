"""As many lists as are known, which the run fills: ``neighbours = [[] for _ in range(n)]``.

All their elements lie in one list, each with the number of the list that it belongs to. A list of
the table is read as the elements that have its number, in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.choosing import chosen
from distspmd.frontend.from_numpy.arrays.subscripts import index_in
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.list_forms import Row
from distspmd.frontend.from_numpy.lists.run_lists import RunList, RunTable, must_be_known


@dataclass(frozen=True)
class RowMethod:
    """A method that changes one list of a table."""

    table: RunTable
    index: Any
    name: str


CHANGING = frozenset(["append", "extend"])


def made_of(run: Context, site: object, values: Sequence[Any]) -> Any:
    """A table of lists that are empty yet; None for other values."""
    if not values or any(_has_elements(v) for v in values):
        return None
    return RunTable(len(values), lists.made_of(run, site, list, []))


def _has_elements(value: object) -> bool:
    if isinstance(value, RunList):
        return value.kind is not list or value.first_count != 0
    return type(value) is not list or len(value) > 0


def read(run: Context, table: RunTable, items: object) -> RunList:
    """``table[items]``, as it is now."""
    tracer = run.tracer
    if isinstance(items, slice | tuple):
        tracer.refuse("a part of a list of lists that the run fills; take one by its index")
    must_be_known(tracer, table.pool)
    place = index_in(tracer, tracer.as_whole(items), table.rows)
    numbers, *columns = lists.columns_of(tracer, table.pool)
    mask = tracer.stored(tracer.tensor(combine(tracer, np.equal, [numbers, place])))
    found = [
        chosen(tracer, Tensor(column.shape, column.dtype, column.element, None, mask))
        for column in columns
    ]
    assert isinstance(table.pool.form, Row)
    made = lists.made_of_columns(run, list, table.pool.form.parts[1], found)
    made.is_copy = True
    return made


def rows_of(run: Context, table: RunTable) -> Iterator[RunList]:
    """All lists of a table, as they are now."""
    for n in range(table.rows):
        yield read(run, table, n)


def call(run: Context, method: RowMethod, arguments: Sequence[Any]) -> None:
    """``table[index].append(value)``, or ``extend``."""
    tracer = run.tracer
    place = index_in(tracer, tracer.as_whole(method.index), method.table.rows)
    (given,) = arguments
    if method.name == "append":
        list_changes.append(run, method.table.pool, (place, given))
        return
    if not isinstance(given, list | tuple):
        tracer.refuse("values of the run are added to one of several lists; append them in a loop")
    for value in list(given):
        list_changes.append(run, method.table.pool, (place, value))
