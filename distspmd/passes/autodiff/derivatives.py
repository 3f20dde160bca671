"""Derivatives of the expressions that tasklets compute, as expressions of Python.

Where a function has no derivative, at a kink, it is what torch says: halves of both sides for the
larger of two equal values, zero for the absolute value of zero.
"""

from __future__ import annotations

import ast
from collections.abc import Callable


class NoDerivative(Exception):
    """An expression whose derivative is not known; the text says which."""


def expression(text: str, **parts: ast.expr) -> ast.expr:
    """An expression of a text, in which names stand for other expressions."""
    parsed = ast.parse(text, mode="eval").body
    found: ast.expr = _Named(parts).visit(parsed)
    return found


class _Named(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.expr]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Put the part in that has the name."""
        return self.parts.get(node.id, node)


def with_names(code: ast.expr, parts: dict[str, ast.expr]) -> ast.expr:
    """A copy of an expression in which names stand for other expressions."""
    return expression(ast.unparse(code), **parts)


def names_of(code: ast.expr) -> set[str]:
    """All names in an expression, but those of functions."""
    called = {id(node.func) for node in ast.walk(code) if isinstance(node, ast.Call)}
    names = (node for node in ast.walk(code) if isinstance(node, ast.Name))
    return {node.id for node in names if id(node) not in called}


_OF_ONE: dict[str, str | None] = {
    "exp": "exp(a)",
    "exp2": "0.6931471805599453 * exp2(a)",
    "expm1": "exp(a)",
    "log": "1.0 / a",
    "log2": "1.4426950408889634 / a",
    "log10": "0.4342944819032518 / a",
    "log1p": "1.0 / (1.0 + a)",
    "sqrt": "0.5 / sqrt(a)",
    "sin": "cos(a)",
    "cos": "-sin(a)",
    "tan": "1.0 + tan(a) * tan(a)",
    "arcsin": "1.0 / sqrt(1.0 - a * a)",
    "asin": "1.0 / sqrt(1.0 - a * a)",
    "arccos": "-1.0 / sqrt(1.0 - a * a)",
    "acos": "-1.0 / sqrt(1.0 - a * a)",
    "arctan": "1.0 / (1.0 + a * a)",
    "atan": "1.0 / (1.0 + a * a)",
    "sinh": "cosh(a)",
    "cosh": "sinh(a)",
    "tanh": "1.0 - tanh(a) * tanh(a)",
    "erf": "1.1283791670955126 * exp(-a * a)",
    "reciprocal": "-1.0 / (a * a)",
    "abs": "1.0 if a > 0 else (-1.0 if a < 0 else 0.0)",
    "fabs": "1.0 if a > 0 else (-1.0 if a < 0 else 0.0)",
    "floor": None,
    "ceil": None,
    "round": None,
    "sign": None,
}
"""Derivatives of functions of one value; None where it is zero."""

_OF_TWO = {
    "max": (
        "1.0 if a > b else (0.5 if a == b else 0.0)",
        "1.0 if b > a else (0.5 if a == b else 0.0)",
    ),
    "min": (
        "1.0 if a < b else (0.5 if a == b else 0.0)",
        "1.0 if b < a else (0.5 if a == b else 0.0)",
    ),
    "pow": (
        "0.0 if b == 0 else b * a ** (b - 1)",
        "0.0 if a == 0 and b >= 0 else a ** b * log(a)",
    ),
}
"""Derivatives of functions of two values by each of them."""

_WHOLE = ("bool", "bool_", "int", "intc", "intp", "longlong", "uintc", "uintp", "ulonglong")
_CONVERSIONS = {
    **dict.fromkeys(("float", "double", "single", "half"), True),
    **{f"float{bits}": True for bits in (16, 32, 64)},
    **dict.fromkeys(_WHOLE, False),
    **{f"{sign}int{bits}": False for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Conversions to a type, and whether a derivative passes through: whole numbers are steps."""


def derivative(code: ast.expr, name: str) -> ast.expr | None:
    """The derivative of an expression by a name; None where it is zero everywhere.

    Raises:
        NoDerivative: it is not known.
    """
    if name not in names_of(code):
        return None
    rule = _RULES.get(type(code))
    if rule is None:
        raise NoDerivative(ast.unparse(code))
    return rule(code, name)


def _of_name(code: ast.Name, name: str) -> ast.expr | None:
    return ast.Constant(1.0)


def _of_sign(code: ast.UnaryOp, name: str) -> ast.expr | None:
    inner = derivative(code.operand, name)
    if inner is None or isinstance(code.op, ast.Not):
        return None
    return ast.UnaryOp(code.op, inner)


def _of_choice(code: ast.IfExp, name: str) -> ast.expr | None:
    body, other = derivative(code.body, name), derivative(code.orelse, name)
    if body is None and other is None:
        return None
    zero = ast.Constant(0.0)
    return ast.IfExp(code.test, body or zero, other or zero)


def _of_truth(code: ast.expr, name: str) -> ast.expr | None:
    return None


def _of_operation(code: ast.BinOp, name: str) -> ast.expr | None:
    left, right = derivative(code.left, name), derivative(code.right, name)
    if isinstance(code.op, (ast.Add, ast.Sub)):
        return _sum(left, right, code.op)
    if isinstance(code.op, ast.Mult):
        return _sum(times(left, code.right), times(right, code.left), ast.Add())
    if isinstance(code.op, ast.Div):
        by_left = None if left is None else ast.BinOp(left, ast.Div(), code.right)
        slope = expression("a / (b * b)", a=code.left, b=code.right)
        return _sum(by_left, times(right, slope), ast.Sub())
    if isinstance(code.op, ast.Pow):
        return _of_power(code, left, right)
    raise NoDerivative(ast.unparse(code))


def _of_power(code: ast.BinOp, left: ast.expr | None, right: ast.expr | None) -> ast.expr | None:
    base, exponent = code.left, code.right
    value = _number(exponent)
    if value == 0:
        return None
    if value == 2:
        return times(left, expression("2 * a", a=base))
    if value is not None:
        return times(left, expression(f"{value} * a ** ({value - 1})", a=base))
    by_base, by_exponent = (expression(text, a=base, b=exponent) for text in _OF_TWO["pow"])
    return _sum(times(left, by_base), times(right, by_exponent), ast.Add())


def _number(code: ast.expr) -> float | None:
    """The number that an expression is, also one with a sign or a type."""
    if isinstance(code, ast.Call) and len(code.args) == 1:
        inner, called = _number(code.args[0]), _called(code)
        if inner is None or called not in _CONVERSIONS:
            return None
        return inner if _CONVERSIONS[called] else int(inner)
    try:
        value = ast.literal_eval(code)
    except ValueError:
        return None
    return value if isinstance(value, (int, float)) else None


def _called(code: ast.Call) -> str:
    return ast.unparse(code.func).rpartition(".")[2]


def _of_call(code: ast.Call, name: str) -> ast.expr | None:
    called = _called(code)
    inner = [derivative(value, name) for value in code.args]
    if len(code.args) == 1 and called in _CONVERSIONS:
        return inner[0] if _CONVERSIONS[called] else None
    if len(code.args) == 1 and called in _OF_ONE:
        slope = _OF_ONE[called]
        return None if slope is None else times(inner[0], expression(slope, a=code.args[0]))
    if len(code.args) == 2 and called in _OF_TWO:
        a, b = code.args
        found = None
        for part, slope in zip(inner, _OF_TWO[called], strict=True):
            found = _sum(found, times(part, expression(slope, a=a, b=b)), ast.Add())
        return found
    raise NoDerivative(ast.unparse(code))


_RULES: dict[type[ast.AST], Callable[..., ast.expr | None]] = {
    ast.Name: _of_name,
    ast.UnaryOp: _of_sign,
    ast.BinOp: _of_operation,
    ast.IfExp: _of_choice,
    ast.Compare: _of_truth,
    ast.BoolOp: _of_truth,
    ast.Call: _of_call,
}


def times(left: ast.expr | None, right: ast.expr) -> ast.expr | None:
    """The product of two expressions, without factors of one; None stands for zero."""
    if left is None or _is_one(right):
        return left
    return right if _is_one(left) else ast.BinOp(left, ast.Mult(), right)


def _is_one(code: ast.expr) -> bool:
    return isinstance(code, ast.Constant) and code.value == 1


def _sum(left: ast.expr | None, right: ast.expr | None, sign: ast.operator) -> ast.expr | None:
    if right is None:
        return left
    if left is None:
        return ast.UnaryOp(ast.USub(), right) if isinstance(sign, ast.Sub) else right
    return ast.BinOp(left, sign, right)
