"""Functions of two operands that are given as text: read, and never run.

The text of a layout, or of a saved program, may come from somebody else. What it may have in it is
the arithmetic of a table, so a text can neither reach anything of Python, nor compute for ever.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

PREFIX = "lambda a, b: "
"""How each name of a function begins."""

Function = Callable[[Any, Any], Any]

_LONGEST, _DEEPEST = 1000, 40
"""Characters of a text, and levels of its tree: more are no function that somebody wrote."""
_BITS = 4096
"""Of the largest integer that powers and shifts may give."""


@cache
def canonical(text: str) -> str:
    """The name of a function: its text with the operands ``a`` and ``b``, formatted by Python.

    Raises:
        ValueError: it is no lambda of two operands.
    """
    tree = _tree(text)
    names = {old.arg: new for old, new in zip(tree.args.args, "ab", strict=True)}
    for node in ast.walk(tree.body):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return PREFIX + ast.unparse(tree.body)


@cache
def function(name: str) -> Function:
    """The function of a name, as Python computes it.

    Raises:
        ValueError: it is no lambda of two operands, or has more in it than arithmetic.
    """
    text = canonical(name)
    try:
        return _read(_tree(text).body)
    except _Unknown as unknown:
        raise ValueError(
            f"{text!r} has {unknown} in it. Write a lambda of arithmetic, comparisons, "
            f"conditional expressions, {', '.join(_FUNCTIONS)}, and functions of math."
        ) from None


def _tree(text: str) -> ast.Lambda:
    """The syntax tree of a function.

    Raises:
        ValueError: it is no lambda of two operands, or far too long.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a text of {len(text)} characters is no lambda: {text[:40]!r}...")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} is no lambda: {error}") from None
    if not isinstance(tree, ast.Lambda) or len(tree.args.args) != 2:
        raise ValueError(f"{text!r} is no lambda of two operands.")
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise ValueError(f"{text!r} is nested too deeply for a lambda that somebody wrote.")
    return tree


class _Unknown(Exception):
    """A part that is not arithmetic."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(repr(ast.unparse(node)))


def _maximum(*values: Any) -> Any:
    """The largest of numbers; a NaN wins, as in NumPy and in the code of programs."""
    return next((value for value in values if value != value), max(values))


def _minimum(*values: Any) -> Any:
    return next((value for value in values if value != value), min(values))


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        _check_bits(base.bit_length() * abs(exponent))
    return base**exponent


def _shifted(value: Any, by: Any) -> Any:
    _check_bits(by)
    return value << by


def _check_bits(bits: int) -> None:
    if bits > _BITS:
        raise OverflowError("the integer is too large")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "float": float,
    "int": int,
    "max": _maximum,
    "min": _minimum,
}
_OF_MATH = frozenset(
    """acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc exp expm1 fabs floor
    fmod gamma hypot isfinite isinf isnan lgamma log log10 log1p log2 pow sin sinh sqrt tan tanh
    trunc""".split()  # noqa: SIM905
)
_NUMBERS = frozenset(("e", "inf", "nan", "pi", "tau"))
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.LShift: _shifted,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _read(node: ast.expr) -> Function:
    """The value of a part, as a function of the operands."""
    read = _READERS.get(type(node))
    if read is None:
        raise _Unknown(node)
    return read(node)


def _name(node: ast.Name) -> Function:
    if node.id not in ("a", "b"):
        raise _Unknown(node)
    return (lambda a, b: a) if node.id == "a" else (lambda a, b: b)


def _constant(node: ast.Constant) -> Function:
    value = node.value
    if not isinstance(value, bool | int | float | complex):
        raise _Unknown(node)
    return lambda a, b: value


def _attribute(node: ast.Attribute) -> Function:
    if _of_math(node) not in _NUMBERS:
        raise _Unknown(node)
    value = getattr(math, node.attr)
    return lambda a, b: value


def _call(node: ast.Call) -> Function:
    spelled = _of_math(node.func)
    called = getattr(math, spelled) if spelled in _OF_MATH else None
    if isinstance(node.func, ast.Name):
        called = _FUNCTIONS.get(node.func.id)
    if called is None or node.keywords or not node.args:
        raise _Unknown(node)
    return _applied(called, node.args)


def _operation(node: ast.UnaryOp | ast.BinOp) -> Function:
    if type(node.op) not in _OPERATORS:
        raise _Unknown(node)
    operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
    return _applied(_OPERATORS[type(node.op)], operands)


def _applied(called: Callable[..., Any], operands: Sequence[ast.expr]) -> Function:
    parts = [_read(operand) for operand in operands]
    return lambda a, b: called(*[part(a, b) for part in parts])


def _boolean(node: ast.BoolOp) -> Function:
    parts = [_read(value) for value in node.values]
    ends = isinstance(node.op, ast.Or)

    def chosen(a: Any, b: Any) -> Any:
        for part in parts[:-1]:
            value = part(a, b)
            if bool(value) == ends:
                return value
        return parts[-1](a, b)

    return chosen


def _compared(node: ast.Compare) -> Function:
    if not all(type(sign) in _OPERATORS for sign in node.ops):
        raise _Unknown(node)
    sides = [_read(side) for side in (node.left, *node.comparators)]
    signs = [_OPERATORS[type(sign)] for sign in node.ops]

    def compare(a: Any, b: Any) -> Any:
        values = [side(a, b) for side in sides]
        pairs = zip(signs, values, values[1:], strict=False)
        return all(sign(one, other) for sign, one, other in pairs)

    return compare


def _chosen(node: ast.IfExp) -> Function:
    test, first, second = map(_read, (node.test, node.body, node.orelse))
    return lambda a, b: first(a, b) if test(a, b) else second(a, b)


_READERS: dict[type[ast.AST], Callable[..., Function]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.UnaryOp: _operation,
    ast.BinOp: _operation,
    ast.BoolOp: _boolean,
    ast.Compare: _compared,
    ast.IfExp: _chosen,
}


def _of_math(node: ast.expr) -> str:
    """The name of what is taken out of ``math``; empty for everything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "math" else ""
    return ""
