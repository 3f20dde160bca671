"""Operators of sets whose content the run decides: of their elements as arrays."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arrays import checks
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.kinds import joined_weak
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.list_forms import Leaf
from distspmd.frontend.from_numpy.lists.run_lists import RunList, count_of, numbers_of

_ARRAYS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.BitOr: np.union1d,
    ast.BitAnd: np.intersect1d,
    ast.Sub: np.setdiff1d,
    ast.BitXor: np.setxor1d,
}
IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.BitOr: operator.ior,
    ast.BitAnd: operator.iand,
    ast.BitXor: operator.ixor,
    ast.Sub: operator.isub,
}
"""What changes a set or a dictionary that is known."""


def is_of_sets(op: ast.operator, *values: object) -> bool:
    """Whether an operator is one of sets, at least one of which the run decides."""
    every = all(isinstance(v, set) or (isinstance(v, RunList) and v.kind is set) for v in values)
    return every and type(op) in _ARRAYS and any(isinstance(v, RunList) for v in values)


def combined(run: Context, op: ast.operator, left: object, right: object) -> RunList:
    """``left op right``."""
    found, form = _elements(run, op, left, right)
    return lists.made_of_columns(run, set, form, [found])


def change(run: Context, own: RunList, op: ast.operator, other: object) -> None:
    """``own op= other``."""
    found, form = _elements(run, op, own, other)
    adds = isinstance(op, ast.BitOr | ast.BitXor)
    more = _numbers(run, other, own).shape[0] if adds else 0
    list_changes.replace_elements(run, own, form, [found], more)


def _elements(run: Context, op: ast.operator, left: object, right: object) -> tuple[Any, Leaf]:
    one, other = _numbers(run, left, right), _numbers(run, right, left)
    found = run.call(_ARRAYS[type(op)], [one, other], {})
    return found, Leaf(found.dtype, joined_weak(*map(_one, (one, other))))


def _one(values: Tensor) -> Tensor:
    """A number that stands for the elements of a set."""
    return Tensor((), values.dtype, values.element, values.weak)


def _numbers(run: Context, values: Any, like: object) -> Tensor:
    """The elements of a set as an array, with the type of Python that they have."""
    tracer = run.tracer
    if isinstance(values, RunList):
        what = "an operator of sets of tuples that the run decides; write a loop"
        column = numbers_of(run, values, what)
        weak = getattr(values.form, "weak", None)
        return Tensor(column.shape, column.dtype, column.element, weak)
    known = sorted(values)
    kinds = {type(v) for v in known}
    if not kinds <= {bool, int, float}:
        tracer.refuse("an operator of a set of numbers of the run, and one of something else")
    dtype = None if known else _numbers(run, like, like).dtype
    table = tracer.table(np.array(known, dtype=dtype))
    weak = next(iter(kinds)) if len(kinds) == 1 else None
    return Tensor(table.shape, table.dtype, table.element, weak)


def in_order(run: Context, own: RunList) -> View:
    """The whole numbers of a set in the order in which Python iterates over them.

    Its table has room for the numbers below a power of two, which the number of elements gives at
    least; these lie in it in their order. The program ends where there are others.
    """
    tracer = run.tracer
    column = numbers_of(run, own, lists.NO_ORDER)
    if column.dtype.kind not in "iu":
        tracer.refuse(lists.NO_ORDER)
    with tracer.named("room"):
        room = tracer.stored_anew(_least_table(tracer.whole(count_of(tracer, own))))
    low = combine(tracer, np.less, [column, 0])
    high = combine(tracer, np.greater_equal, [column, room])
    outside = run.call(np.any, [combine(tracer, np.logical_or, [low, high])], {})
    what = f"{lists.NO_ORDER}: it has negative or large numbers; write sorted(...)"
    checks.end_if(run, outside, "RuntimeError", what)
    return tracer.stored_anew(run.call(np.sort, [column], {}), "elements")


_LARGEST_TABLE = 24
"""The binary logarithm of the largest table that is reckoned with."""


def _least_table(count: Tensor) -> Tensor:
    """How large the table of a set of so many elements is at least: it is at most 3/5 full."""

    def element(index: Any) -> Any:
        five = apply("multiply", count.element(index), number(5, INT64))
        found: Any = number(8, INT64)
        for size in (2**power for power in range(3, _LARGEST_TABLE)):
            is_full = apply("greater_equal", five, number(3 * (size - 1), INT64))
            found = apply("where", is_full, number(2 * size, INT64), found)
        return found

    return Tensor((), INT64, element)
