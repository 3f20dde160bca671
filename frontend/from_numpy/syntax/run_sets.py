"""Operators of sets whose content the run decides: of their elements as arrays."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from distspmd.frontend.from_numpy.kinds import joined_weak
from distspmd.frontend.from_numpy.list_forms import Leaf
from distspmd.frontend.from_numpy.run_lists import RunList
from distspmd.frontend.from_numpy.syntax import list_changes, lists
from distspmd.frontend.from_numpy.values import Tensor

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter

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


def is_of_sets(op: ast.operator, *values: Any) -> bool:
    """Whether an operator is one of sets, at least one of which the run decides."""
    every = all(isinstance(v, set) or (isinstance(v, RunList) and v.kind is set) for v in values)
    return every and type(op) in _ARRAYS and any(isinstance(v, RunList) for v in values)


def combined(run: Interpreter, op: ast.operator, left: Any, right: Any) -> RunList:
    """``left op right``."""
    found, form = _elements(run, op, left, right)
    return lists.made_of_columns(run, set, form, [found])


def change(run: Interpreter, own: RunList, op: ast.operator, other: Any) -> None:
    """``own op= other``."""
    found, form = _elements(run, op, own, other)
    adds = isinstance(op, ast.BitOr | ast.BitXor)
    more = _numbers(run, other, own).shape[0] if adds else 0
    list_changes.replace_elements(run, own, form, [found], more)


def _elements(run: Interpreter, op: ast.operator, left: Any, right: Any) -> tuple[Any, Leaf]:
    one, other = _numbers(run, left, right), _numbers(run, right, left)
    found = run.call(_ARRAYS[type(op)], [one, other], {})
    return found, Leaf(found.dtype, joined_weak(*map(_one, (one, other))))


def _one(values: Tensor) -> Tensor:
    """A number that stands for the elements of a set."""
    return Tensor((), values.dtype, values.element, values.weak)


def _numbers(run: Interpreter, values: Any, like: Any) -> Tensor:
    """The elements of a set as an array, with the type of Python that they have."""
    tracer = run.tracer
    if isinstance(values, RunList):
        if not isinstance(values.form, Leaf) or values.form.shape:
            tracer.refuse("an operator of sets of tuples that the run decides; write a loop")
        (column,) = lists.columns_of(tracer, values)
        return Tensor(column.shape, column.dtype, column.element, values.form.weak)
    known = sorted(values)
    kinds = {type(v) for v in known}
    if not kinds <= {bool, int, float}:
        tracer.refuse("an operator of a set of numbers of the run, and one of something else")
    dtype = None if known else _numbers(run, like, like).dtype
    table = tracer.table(np.array(known, dtype=dtype))
    weak = next(iter(kinds)) if len(kinds) == 1 else None
    return Tensor(table.shape, table.dtype, table.element, weak)
