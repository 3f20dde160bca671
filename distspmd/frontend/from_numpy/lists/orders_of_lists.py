"""The order of the elements of lists whose content the run decides: sorted, least and greatest.

Elements are compared as Python compares them: tuples by what differs first, and of equal ones the
first comes first, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import checks, indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import iteration
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.list_forms import leaves
from distspmd.frontend.from_numpy.lists.run_lists import RunList, must_be_known, site_of
from distspmd.frontend.tensor_ir.whole_numbers import subtract

_BACK = slice(None, None, -1)


def _keys(run: Context, own: RunList, key: object) -> RunList:
    """What elements are compared by."""
    if key is None:
        must_be_known(run.tracer, own)
        return own
    found = run.run_function(iteration.mapped, {"called": key, "values": own})
    if not isinstance(found, RunList):
        found = as_list(run, found, "keys")
    must_be_known(run.tracer, found)
    return found


def as_list(run: Context, values: Sequence[Any], what: str = "values") -> RunList:
    """A list of values that are known one by one."""
    site = (*site_of(run.tracer, run.tracer.node), what)
    return lists.made_of(run, site, list, list(values))


def _columns(run: Context, keys: RunList) -> list[Tensor]:
    """The numbers that decide, the first one first."""
    tracer = run.tracer
    found: list[Tensor] = []
    for column, leaf in zip(lists.columns_of(tracer, keys), leaves(keys.form), strict=True):
        if leaf.texts:
            found.append(_ranks_of_texts(run, column, leaf.texts))
            continue
        if leaf.is_type:
            continue
        if not leaf.shape:
            found.append(column)
            continue
        if len(leaf.shape) > 1 or not isinstance(leaf.shape[0], int):
            tracer.refuse("the order of lists of lists, or of arrays; write the key as numbers")
        found += [indexing.read(tracer, column, (slice(None), n)) for n in range(leaf.shape[0])]
    return found


def _ranks_of_texts(run: Context, column: Tensor, texts: Sequence[str]) -> Tensor:
    """What texts are compared by: their places in alphabetical order."""
    order = sorted(texts)
    ranks = run.tracer.table(np.array([order.index(text) for text in texts]))
    found: Tensor = run.call(np.take, [ranks, column, 0], {})
    return found


def _order(run: Context, keys: RunList, *, reverse: bool) -> Any:
    """The places of elements, in order."""
    tracer = run.tracer
    columns = _columns(run, keys)
    if reverse:  # equal elements keep their order
        columns = [indexing.read(tracer, column, _BACK) for column in columns]
    if len(columns) == 1:
        found = run.call(np.argsort, [columns[0]], {"kind": "stable"})
    else:
        found = run.call(np.lexsort, [tuple(reversed(columns))], {})
    if not reverse:
        return found
    last = subtract(columns[0].shape[0], 1)
    return indexing.read(tracer, combine(tracer, np.subtract, [last, found]), _BACK)


def sort(
    run: Context,
    own: RunList,
    *,
    key: object = None,
    reverse: object = False,
) -> None:
    """``own.sort(key=key, reverse=reverse)``."""
    known = run.truth(reverse)
    if known is None:
        run.tracer.refuse("whether a list is sorted in reverse is known at run time only; write if")
    places = run.tracer.stored_anew(_order(run, _keys(run, own, key), reverse=known), "order")
    list_changes.reorder(run, own, lambda column: run.call(np.take, [column, places, 0], {}))


def extreme(run: Context, own: RunList, *, least: bool, key: object = None) -> Any:
    """``min(own, key=key)`` or ``max(own, key=key)``: the first of the extreme elements."""
    name = "min" if least else "max"
    is_empty = run.call(np.logical_not, [lists.is_not_empty(run, own)], {})
    if isinstance(own.count, View):
        checks.end_if(run, is_empty, "ValueError", f"{name}() arg is an empty sequence")
    keys = _keys(run, own, key)
    columns = _columns(run, keys)
    if len(columns) == 1:
        place = run.call(np.argmin if least else np.argmax, [columns[0]], {})
    else:
        place = indexing.read(run.tracer, _order(run, keys, reverse=not least), 0)
    return lists.element_at(run, own, lists.place_in(run, own, place))


list_changes.METHODS["sort"] = sort
