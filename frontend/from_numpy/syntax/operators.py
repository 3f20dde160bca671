"""Python's operators on numbers, whole numbers of symbols, and tensors."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy import checks
from distspmd.frontend.from_numpy.arithmetic import combine
from distspmd.frontend.from_numpy.kinds import has_data, is_array, is_whole
from distspmd.frontend.from_numpy.syntax import objects
from distspmd.frontend.from_numpy.transcript import Refusal
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    floor_divide,
    multiply,
    remainder,
    same,
    subtract,
)

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter

UFUNCS: dict[type[ast.AST], np.ufunc] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
    ast.Pow: np.power,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.BitXor: np.bitwise_xor,
    ast.LShift: np.left_shift,
    ast.RShift: np.right_shift,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
PYTHON: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.MatMult: operator.matmul,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_WHOLE: dict[type[ast.AST], Callable[[Whole, Whole], Whole]] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.FloorDiv: floor_divide,
    ast.Mod: remainder,
}
RELATIONS: dict[type[ast.AST], Any] = {
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
}


def _of_text(run: Interpreter, op: ast.operator, left: str, right: Any) -> Any:
    if isinstance(op, ast.Mod):
        return checks.by_percent(left, right)
    if isinstance(op, ast.Add) and isinstance(right, str):
        return checks.Text.of([left, right])
    raise Refusal(run.tracer.message("an operation on a text with values known at run time only"))


def binary(run: Interpreter, op: ast.operator, left: Any, right: Any) -> Any:
    """``left op right``."""
    tracer = run.tracer
    if isinstance(left, str) and checks.has_data((left, right)):
        return _of_text(run, op, left, right)
    if isinstance(op, ast.MatMult):
        return run.call(np.matmul, [left, right], {})
    if is_array(left) or is_array(right):
        return combine(tracer, UFUNCS[type(op)], [left, right])
    if (
        is_whole(left)
        and is_whole(right)
        and (isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic))
    ):
        if type(op) in _WHOLE:
            return _WHOLE[type(op)](left, right)
        if isinstance(op, ast.Pow):
            return sympy.sympify(left) ** sympy.sympify(right)
        return combine(tracer, UFUNCS[type(op)], [left, right])
    if isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic):
        if isinstance(left, list | tuple) or isinstance(right, list | tuple):
            tracer.refuse("a list of a length that is not known")
        return combine(tracer, UFUNCS[type(op)], [left, right])
    try:
        return PYTHON[type(op)](left, right)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as problem:
        tracer.refuse(str(problem))


def compared(run: Interpreter, op: ast.cmpop, left: Any, right: Any) -> Any:
    """``left op right``."""
    if isinstance(op, ast.Is | ast.IsNot):
        return PYTHON[type(op)](left, right)
    if isinstance(op, ast.In | ast.NotIn):
        held = list(right) if isinstance(right, dict) else right
        if has_data((left, held)):
            run.tracer.refuse("'in' of values that are not known; use np.isin or np.any")
        return PYTHON[type(op)](left, held)
    if objects.is_own(left) or objects.is_own(right):
        return objects.operate(run, op, left, right)
    if is_array(left) or is_array(right):
        if left is None or right is None:
            return isinstance(op, ast.NotEq)
        return combine(run.tracer, UFUNCS[type(op)], [left, right])
    if isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic):
        return _compared_symbols(run, op, left, right)
    sequences = isinstance(left, tuple | list) and isinstance(right, tuple | list)
    if sequences and has_data((left, right)):
        return _same_tuples(run, op, left, right)
    try:
        return PYTHON[type(op)](left, right)
    except TypeError as problem:
        run.tracer.refuse(str(problem))


def _compared_symbols(run: Interpreter, op: ast.cmpop, left: Any, right: Any) -> Any:
    if is_whole(left) and is_whole(right):
        difference = subtract(left, right)
        if isinstance(difference, int):
            return bool(PYTHON[type(op)](difference, 0))
        return RELATIONS[type(op)](sympy.sympify(left), sympy.sympify(right))
    if any(side is None or isinstance(side, str) for side in (left, right)):
        return isinstance(op, ast.NotEq)
    return combine(run.tracer, UFUNCS[type(op)], [left, right])


def _same_tuples(
    run: Interpreter, op: ast.cmpop, left: Sequence[Any], right: Sequence[Any]
) -> bool:
    if not isinstance(op, ast.Eq | ast.NotEq):
        run.tracer.refuse("tuples of sizes are compared by their order")
    equal = len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return equal == isinstance(op, ast.Eq)
