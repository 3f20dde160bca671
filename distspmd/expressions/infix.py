"""Expressions as people write them: ``maximum(hidden + b, 0)``, without types; to be read alone."""

from __future__ import annotations

from collections.abc import Callable

from distspmd.expressions.ir import (
    Argument,
    Call,
    Constant,
    Expression,
    IndexValue,
    Load,
    Operation,
)
from distspmd.expressions.python import SIGNS
from distspmd.expressions.text import index_text

_STRENGTHS = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 3),
    **dict.fromkeys(("+", "-"), 8),
    **dict.fromkeys(("*", "/", "//"), 9),
    **dict(zip(("or", "and", "|", "^", "&", "**"), (1, 2, 4, 5, 6, 11), strict=True)),
}
_SIGNS = {name: (sign, _STRENGTHS[sign]) for name, sign in SIGNS.items() if sign in _STRENGTHS}
"""The sign of an operation of two, and how strongly it binds, as in Python."""

_FIRST = 12
"""How strongly names, numbers and calls bind."""


def infix(expression: Expression, named: Callable[[str], str] = str) -> str:
    """An expression with signs between operands; ``named`` says what an argument is called."""
    return _bound(expression, named)[0]


def _bound(expression: Expression, named: Callable[[str], str]) -> tuple[str, int]:
    """The text, and how strongly its weakest sign binds."""
    match expression:
        case Argument(name=name):
            return named(name), _FIRST
        case Constant(value=value):
            text = f"{value:g}" if isinstance(value, float) else str(value)
            return text, _FIRST if text[0] != "-" else 8
        case IndexValue(terms=terms, constant=constant):
            text = index_text(terms, constant).replace("+ -", "- ")
            return text, 8 if " " in text else _FIRST
        case Load(array=array, index=index):
            return f"{array}[{', '.join(map(str, index))}]", _FIRST
        case Operation(name="cast", arguments=(inner,)):
            return _bound(inner, named)
        case Operation(name="negative", arguments=(inner,)):
            return f"-{_within(inner, 10, named)}", 8
        case Operation(name=name, arguments=(left, right)) if name in _SIGNS:
            sign, strength = _SIGNS[name]
            repeats = strength > 3 and name != "power"  # a - b - c is (a - b) - c
            sides = (
                _within(left, strength + (not repeats), named),
                _within(right, strength + repeats, named),
            )
            return f" {sign} ".join(sides), strength
        case Operation(name=name) | Call(function=name):
            given = ", ".join(infix(argument, named) for argument in expression.arguments)
            return f"{name}({given})", _FIRST


def _within(expression: Expression, strength: int, named: Callable[[str], str]) -> str:
    """The text of an operand, in parentheses if the sign beside it binds more strongly."""
    text, weakest = _bound(expression, named)
    return text if weakest >= strength else f"({text})"
