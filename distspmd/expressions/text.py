"""The text form of expressions, which parses to what it was printed from.

It has Python's syntax: ``x@float32`` is an argument, ``a[i, 2*j + 1]@float32`` a load,
``[b + 1]@int64`` an index, ``0.5@float32`` a constant, ``exp(..)`` an operation, with ``@`` and its
type where the table says another one, and ``call(f, ..)@float32`` a call. Parts that are used
twice are assigned to names first: ``t0 = exp(x@float32); multiply(t0, t0)``.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from distspmd.expressions.ir import (
    Argument,
    Call,
    Constant,
    Expression,
    IndexValue,
    Load,
    Operation,
    Scalar,
    parts,
)
from distspmd.expressions.operations import OPERATIONS, DType

Assignments: TypeAlias = tuple[tuple[str, Expression], ...]
"""Names, and the expressions that are assigned to them."""


def print_expression(expression: Expression) -> str:
    """An expression as text."""
    form = _Text([expression])
    return "; ".join([*form.lines, form.of(expression)])


def assignments_text(assignments: Assignments) -> str:
    """Assignments as text, one in a line."""
    form = _Text([value for _, value in assignments])
    return "\n".join([*form.lines, *(f"{name} = {form.of(value)}" for name, value in assignments)])


def parse_expression(written: str) -> Expression:
    """The expression of a text.

    Raises:
        ValueError: it is no text form of an expression; the message has the part that is none.
    """
    lines = _parsed(written)
    last = lines[-1] if lines else None
    if not isinstance(last, ast.Expr):
        raise ValueError(f"{written!r} is no expression: it ends with none.")
    return _Parser(lines[:-1]).of(last.value)


def parse_assignments(written: str | Sequence[ast.stmt]) -> Assignments:
    """The assignments of a text, or of its syntax tree; parts with names are put in.

    Raises:
        ValueError: it is no text form of assignments.
    """
    lines = _parsed(written) if isinstance(written, str) else written
    parser = _Parser(lines)
    return tuple((n, e) for n, e in parser.known.items() if n not in parser.used)


def _parsed(written: str) -> list[ast.stmt]:
    try:
        return ast.parse(written.strip()).body
    except SyntaxError as problem:
        raise ValueError(f"{written!r} is no expression: {problem}") from None


def index_text(terms: Iterable[tuple[Any, int]], constant: int) -> str:
    """A sum of variables with their factors, and a constant."""
    found = [f"{variable}" if factor == 1 else f"{factor}*{variable}" for variable, factor in terms]
    if constant or not found:
        found.append(str(constant))
    return " + ".join(found)


class _Text:
    """Prints expressions that share parts."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        uses: Counter[Expression] = Counter(expressions)
        order = list(dict.fromkeys(part for e in expressions for part in parts(e)))
        for part in order:
            uses.update(part.arguments)
        self.known: dict[Expression, str] = {}
        self.lines: list[str] = []
        for part in order:
            if isinstance(part, Operation | Call) and uses[part] > 1:
                line = self.of(part)
                self.known[part] = f"t{len(self.lines)}"
                self.lines.append(f"{self.known[part]} = {line}")

    def of(self, node: Expression) -> str:
        if node in self.known:
            return self.known[node]
        inner = ", ".join(map(self.of, node.arguments))
        typed = f"@{node.dtype.name}"
        if isinstance(node, Argument):
            return f"{node.name}{typed}"
        if isinstance(node, Load):
            index = ", ".join(str(i) for i in node.index)
            return f"{node.array}[{index or '()'}]{typed}"
        if isinstance(node, IndexValue):
            return f"[{index_text(node.terms, node.constant)}]{typed}"
        if isinstance(node, Constant):
            return f"{_number(node.value)}{typed}"
        if isinstance(node, Call):
            return f"call({', '.join([node.function, *filter(None, [inner])])}){typed}"
        return f"{node.name}({inner}){'' if _is_usual(node) else typed}"


def _is_usual(node: Operation) -> bool:
    """Whether a node has the type that the table says."""
    try:
        return OPERATIONS[node.name].result([a.dtype for a in node.arguments]) == node.dtype
    except TypeError:
        return False


def _number(value: Scalar) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return f"({value!r})" if not isinstance(value, bool) and str(value)[0] == "-" else repr(value)


class _Parser:
    """Reads the syntax tree of a text; ``known`` has what names stand for."""

    def __init__(self, lines: Sequence[ast.stmt]) -> None:
        self.known: dict[str, Expression] = {}
        self.used: set[str] = set()
        for line in lines:
            target = line.targets[0] if isinstance(line, ast.Assign) else None
            if not isinstance(line, ast.Assign) or not isinstance(target, ast.Name):
                raise _wrong(line)
            self.known[target.id] = self.of(line.value)

    def of(self, node: ast.expr) -> Expression:
        if isinstance(node, ast.Name) and node.id in self.known:
            self.used.add(node.id)
            return self.known[node.id]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return self._typed(node.left, _dtype(node.right))
        if isinstance(node, ast.Call):
            arguments, row = self._arguments(node), OPERATIONS.get(_name(node.func))
            if row is not None and row.arity == len(arguments):
                types = [argument.dtype for argument in arguments]
                return Operation(row.name, arguments, row.result(types))
        raise _wrong(node)

    def _arguments(self, node: ast.Call) -> tuple[Expression, ...]:
        return tuple(map(self.of, node.args))

    def _typed(self, node: ast.expr, dtype: DType) -> Expression:
        if isinstance(node, ast.Name | ast.Attribute):
            return Argument(ast.unparse(node), dtype)
        if isinstance(node, ast.Subscript):
            inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return Load(ast.unparse(node.value), tuple(map(_index, inside)), dtype)
        if isinstance(node, ast.List) and len(node.elts) == 1:
            return IndexValue(*_terms(node.elts[0]), dtype)
        if isinstance(node, ast.Call) and _name(node.func) == "call":
            function = ast.unparse(node.args[0])
            return Call(function, tuple(map(self.of, node.args[1:])), dtype)
        if isinstance(node, ast.Call) and _name(node.func) in OPERATIONS:
            return Operation(_name(node.func), self._arguments(node), dtype)
        return Constant(_value(node), dtype)


def _wrong(node: ast.AST) -> ValueError:
    return ValueError(f"{ast.unparse(node)!r} is no text form of an expression.")


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _dtype(node: ast.expr) -> DType:
    try:
        return np.dtype(_name(node))
    except TypeError:
        raise ValueError(f"{ast.unparse(node)!r} is no type of elements.") from None


def _value(node: ast.expr) -> Scalar:
    if isinstance(node, ast.Call) and _name(node.func) == "complex":
        real, imaginary = map(_value, node.args)
        return complex(real, imaginary)
    if isinstance(node, ast.Call) and _name(node.func) == "float":
        return float(ast.literal_eval(node.args[0]))
    try:
        found = ast.literal_eval(node)
    except ValueError:
        raise _wrong(node) from None
    if isinstance(found, bool | int | float | complex):
        return found
    raise _wrong(node)


def _index(node: ast.expr) -> str:
    """The text of an index of a load, as it is printed."""
    return index_text(*_terms(node))


def _terms(node: ast.expr) -> tuple[tuple[tuple[str, int], ...], int]:
    """Variables with their factors, and the constant, of a sum."""
    found: dict[str, int] = {}
    constant = _add_terms(node, 1, found)
    return tuple(found.items()), constant


def _add_terms(node: ast.expr, factor: int, found: dict[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return factor * node.value
    if isinstance(node, ast.Name):
        found[node.id] = found.get(node.id, 0) + factor
        return 0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _add_terms(node.operand, -factor, found)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = 1 if isinstance(node.op, ast.Add) else -1
        return _add_terms(node.left, factor, found) + _add_terms(node.right, sign * factor, found)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for number, other in ((node.left, node.right), (node.right, node.left)):
            value = _whole(number)
            if value is not None:
                return _add_terms(other, factor * value, found)
    raise ValueError(f"{ast.unparse(node)!r} is no sum of variables with factors.")


def _whole(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None
