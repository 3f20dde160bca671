"""Statements in loops that combine a value with what is in an element: ``s += x[i]``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from dace import Memlet, SDFGState, dtypes
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion

from distspmd.analysis.accesses import Edge
from distspmd.expressions.ir import Argument, Constant, Expression, Operation, apply, names
from distspmd.layouts.reductions import find_reduction
from distspmd.nodes.computation import Computation

_KINDS = {
    "add": ("Sum", "lambda x, y: x + y"),
    "multiply": ("Product", "lambda x, y: x * y"),
    "maximum": ("Max", "lambda x, y: max(x, y)"),
    "minimum": ("Min", "lambda x, y: min(x, y)"),
}
"""What DaCe calls the reduction by an operation, and its function."""
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
"""The names of the reductions in the runtime, which know their neutral elements."""
_SYNTAX: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply"}


@dataclass(frozen=True, eq=False)
class Reduction:
    """One such statement.

    Attributes:
        state: where it is.
        tasklet: computes the combination.
        before: the edge of what is there.
        after: the edge of the combination.
        operation: that combines.
        value: with which it is combined: an expression, or Python's syntax.
    """

    state: SDFGState
    tasklet: nodes.Tasklet
    before: Edge
    after: Edge
    operation: str
    value: Expression | ast.expr

    @property
    def kind(self) -> str:
        """What DaCe calls it."""
        return _KINDS[self.operation][0]

    def write_conflict(self) -> None:
        """Let the write combine the value with what is there, in place of the tasklet."""
        state, tasklet = self.state, self.tasklet
        assert self.before.dst_conn is not None
        assert self.after.src_conn is not None
        if isinstance(tasklet, Computation):
            found = tasklet.assignments() or ()
            others = {self.after.src_conn: self.value}
            tasklet.assign(tuple((name, others.get(name, value)) for name, value in found))  # type: ignore[misc]
        else:
            assert isinstance(self.value, ast.expr)
            text = f"{self.after.src_conn} = {ast.unparse(self.value)}"
            tasklet.code = CodeBlock(text, dtypes.Language.Python)
        state.remove_edge(self.before)
        tasklet.remove_in_connector(self.before.dst_conn)
        if not state.all_edges(self.before.src):
            state.remove_node(self.before.src)
        memlet: Memlet = self.after.data
        memlet.wcr = _KINDS[self.operation][1]


def find_reductions(loop: LoopRegion) -> list[Reduction]:
    """All such statements of a loop that stand outside of maps."""
    return [
        found
        for state in loop.states()
        for node in state.nodes()
        if isinstance(node, nodes.Tasklet) and state.entry_node(node) is None
        for found in _of(state, node)
    ]


def _of(state: SDFGState, tasklet: nodes.Tasklet) -> Iterator[Reduction]:
    """Those of a tasklet: at most one, since another would read what it writes."""
    after = state.out_edges(tasklet)
    if len(after) != 1 or not isinstance(after[0].dst, nodes.AccessNode):
        return
    (leaving,) = after
    if leaving.data.wcr is not None or leaving.data.dynamic or not leaving.src_conn:
        return
    data = leaving.data.data
    before = [e for e in state.in_edges(tasklet) if e.data.data == data]
    if len(before) != 1 or str(before[0].data.subset) != str(leaving.data.subset):
        return
    if not isinstance(before[0].src, nodes.AccessNode) or not before[0].dst_conn:
        return
    dtype = np.dtype(state.sdfg.arrays[data].dtype.type)
    found = _combined(tasklet, before[0].dst_conn, leaving.src_conn, dtype)
    if found is not None:
        yield Reduction(state, tasklet, before[0], leaving, *found)


def _combined(
    tasklet: nodes.Tasklet, old: str, new: str, dtype: np.dtype[Any]
) -> tuple[str, Expression | ast.expr] | None:
    """The operation and the other operand, where a tasklet combines what is there with that."""
    if isinstance(tasklet, Computation):
        by_name = dict(tasklet.assignments() or ())
        value = by_name.get(new)
        if len(by_name) != 1 or not isinstance(value, Operation) or value.dtype != dtype:
            return None
        return _of_operation(value, old)
    if tasklet.language is not dtypes.Language.Python or len(tasklet.code.code) != 1:
        return None
    (statement,) = tasklet.code.code
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return None
    return _of_syntax(statement.value, old)


def _of_operation(value: Expression, old: str) -> tuple[str, Expression] | None:
    """The operation and the other operand; of a choice, too, that keeps what is there or not."""
    if not isinstance(value, Operation):
        return None
    if value.name == "where":
        return _of_choice(value, old)
    if len(value.arguments) != 2:
        return None
    for own, other in (value.arguments, value.arguments[::-1]):
        if not isinstance(own, Argument) or own.name != old or old in names(other):
            continue
        if value.name in _KINDS and other.dtype == value.dtype:
            return value.name, other
        if value.name == "subtract" and own is value.arguments[0] and other.dtype == value.dtype:
            return "add", apply("negative", other, dtype=value.dtype)
    return None


GREATER = {"greater": 1, "greater_equal": 1, "less": -1, "less_equal": -1}
"""Comparisons, and whether they hold of a great first operand."""


def _of_choice(value: Operation, old: str) -> tuple[str, Expression] | None:
    """``where(c, old + v, old)`` adds ``v`` or nothing; ``where(v > old, v, old)`` is a maximum."""
    condition, *chosen = value.arguments
    kept = [isinstance(each, Argument) and each.name == old for each in chosen]
    if kept == [True, True]:
        return None
    if old in names(condition):
        return of_extreme(value, old)
    found = [None if k else _of_operation(each, old) for k, each in zip(kept, chosen, strict=True)]
    if any(f is None and not k for f, k in zip(found, kept, strict=True)):
        return None
    kinds = {each[0] for each in found if each is not None}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    nothing = neutral(kind, value.dtype)
    values = [nothing if each is None else each[1] for each in found]
    return kind, apply("where", condition, *values, dtype=value.dtype)


def without_nan(kind: str, value: Expression) -> Expression:
    """A value, or what changes nothing where it is NaN."""
    if value.dtype.kind != "f":
        return value
    return apply("where", apply("equal", value, value), value, neutral(kind, value.dtype))


def neutral(kind: str, dtype: np.dtype[Any]) -> Constant:
    """What an operation combines with any value to that value."""
    return Constant(find_reduction(_REDUCTIONS[kind]).identity(dtype).item(), dtype)


def of_extreme(value: Operation, old: str) -> tuple[str, Expression] | None:
    """A value that replaces what is there where it is greater, or less; NaN replaces nothing."""
    if value.name != "where":
        return None
    condition, new, kept = value.arguments
    if not isinstance(condition, Operation) or condition.name not in GREATER:
        return None
    sign, (one, other) = GREATER[condition.name], condition.arguments
    if isinstance(one, Argument) and one.name == old:
        sign, one, other = -sign, other, one
    is_old = [isinstance(each, Argument) and each.name == old for each in (other, kept)]
    if is_old != [True, True] or one != new or old in names(new) or new.dtype != value.dtype:
        return None
    kind = "maximum" if sign > 0 else "minimum"
    return (kind, without_nan(kind, new)) if value.dtype.kind in "fiu" else None


def _of_syntax(value: ast.BinOp, old: str) -> tuple[str, ast.expr] | None:
    operation = _SYNTAX.get(type(value.op))
    for own, other in ((value.left, value.right), (value.right, value.left)):
        mentioned = {n.id for n in ast.walk(other) if isinstance(n, ast.Name)}
        if not isinstance(own, ast.Name) or own.id != old or old in mentioned:
            continue
        if operation in _KINDS:
            return str(operation), other
        if operation == "subtract" and own is value.left:
            return "add", ast.UnaryOp(ast.USub(), other)
    return None
