"""Sound bounds of index expressions over ranges of their symbols; exact for affine forms.

DaCe's memlet propagation is wrong for mixed signs, modulo and more, so distspmd bounds subsets by
itself. In an affine form, each symbol, innermost first, is replaced by the end of its range that
its sign requires, which is exact if no range is empty. Other monotone functions are bounded by
interval arithmetic. Any other expression has no bound here, and the caller takes the whole
dimension.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import sympy


@dataclass(frozen=True, slots=True)
class Range:
    """Values of a symbol: ``lower`` to ``upper``, both included; ends may name outer symbols.

    The symbol takes each ``step``-th of them, ``upper`` too; a step of None is not known, or
    does not lead to ``upper``. ``None`` in place of a range stands for a symbol that is bound, but
    to values that nothing is known of.
    """

    lower: sympy.Expr
    upper: sympy.Expr
    step: int | None = 1


Scope = dict[str, Range | None]
"""Bound symbols in the order of their binding, outermost first. Other symbols are constants."""


def stepping(begin: sympy.Expr, end: sympy.Expr, step: sympy.Expr) -> Range:
    """Values from ``begin`` in steps to ``end``: a range of DaCe, whose step may miss its end."""
    begin, end, step = map(sympy.sympify, (begin, end, step))
    known, length = constant(step), constant(sympy.expand(end - begin))
    if known not in (1, -1) and (not known or length is None or length % known):
        known = None
    low, high = (end, begin) if step.is_negative else (begin, end)
    return Range(low, high, known and abs(known))


def bound_index(expression: sympy.Expr, scope: Scope) -> Range | None:
    """Least and greatest value of an integer expression over a scope.

    Returns:
        Ends that name no symbol of the scope; None where no bound is known.
    """
    expression = sympy.sympify(expression)
    if expression.is_Number:
        return Range(expression, expression)
    names = _named(expression, scope)
    return _bound_index(expression, tuple((n, r) for n, r in scope.items() if n in names))


def _named(expression: sympy.Expr, scope: Scope) -> set[str]:
    """Symbols of a scope on which an expression depends, through the ranges of others too."""
    found: set[str] = set()
    pending = {symbol.name for symbol in expression.free_symbols}
    while pending:
        name = pending.pop()
        if name not in scope or name in found:
            continue
        found.add(name)
        if (values := scope[name]) is not None:
            pending |= {s.name for s in values.lower.free_symbols | values.upper.free_symbols}
    return found


@functools.lru_cache(maxsize=4096)
def _bound_index(
    expression: sympy.Expr, bound: tuple[tuple[str, Range | None], ...]
) -> Range | None:
    """The bounds; programs of many layers ask for the same again and again."""
    scope = dict(bound)
    expression = sympy.expand(expression)
    lower, upper = expression, expression
    for name in reversed(scope):
        ends = _eliminate(lower, upper, name, scope)
        if ends is None:
            return _interval(expression, scope)
        lower, upper = ends
    return Range(lower, upper)


def _eliminate(
    lower: sympy.Expr, upper: sympy.Expr, name: str, scope: Scope
) -> tuple[sympy.Expr, sympy.Expr] | None:
    """Bound both ends over one symbol in which they are affine; None where they are not."""
    values = scope[name]
    result = []
    for end, least in ((lower, True), (upper, False)):
        symbol = _symbol(end, name)
        if symbol is None:
            result.append(end)
            continue
        coefficient = end.coeff(symbol, 1)
        rest = sympy.expand(end - coefficient * symbol)
        if any(factor.name in scope for factor in coefficient.free_symbols):
            return None
        sign = _sign(coefficient)
        if values is None or sign is None or symbol in rest.free_symbols:
            return None
        at = values.lower if (sign > 0) == least else values.upper
        result.append(sympy.expand(coefficient * at + rest))
    return result[0], result[1]


def _symbol(expression: sympy.Expr, name: str) -> sympy.Symbol | None:
    """The symbol of that name: DaCe's symbols compare by name, type and assumptions."""
    return next((s for s in expression.free_symbols if s.name == name), None)


def _sign(coefficient: sympy.Expr) -> int | None:
    """Sign of a coefficient; symbols in it are extents, which are positive."""
    extents = {
        s: sympy.Symbol(s.name, integer=True, positive=True) for s in coefficient.free_symbols
    }
    positive = coefficient.subs(extents) if extents else coefficient
    if positive.is_positive:
        return 1
    if positive.is_negative:
        return -1
    return None


def _interval(expression: sympy.Expr, scope: Scope) -> Range | None:
    """Interval arithmetic: sound, and exact where each symbol occurs once."""
    if not any(symbol.name in scope for symbol in expression.free_symbols):
        return Range(expression, expression)
    if expression.is_Symbol:
        values = scope[expression.name]
        if values is None:
            return None
        lower, upper = bound_index(values.lower, scope), bound_index(values.upper, scope)
        return Range(lower.lower, upper.upper) if lower and upper else None
    parts = [_interval(part, scope) for part in expression.args]
    if any(part is None for part in parts):
        return None
    return _of_parts(expression, [part for part in parts if part is not None])


def _of_parts(expression: sympy.Expr, parts: list[Range]) -> Range | None:
    name = expression.func.__name__
    lowers, uppers = [part.lower for part in parts], [part.upper for part in parts]
    if name in ("Add", "Min", "Max"):
        return Range(expression.func(*lowers), expression.func(*uppers))
    if name == "Mul":
        constants = [p.lower for p in parts if p.lower == p.upper]
        varying = [p for p in parts if p.lower != p.upper]
        if not varying:
            return Range(sympy.Mul(*constants), sympy.Mul(*constants))
        sign = _sign(sympy.Mul(*constants))
        if len(varying) == 1 and sign is not None:
            factor = sympy.Mul(*constants)
            ends = (factor * varying[0].lower, factor * varying[0].upper)
            return Range(*(ends if sign > 0 else ends[::-1]))
    if name in ("int_floor", "__int_floor", "int_ceil", "floor", "ceiling") and all(
        p.lower == p.upper and _sign(p.lower) == 1 for p in parts[1:]
    ):
        return Range(
            expression.func(lowers[0], *lowers[1:]), expression.func(uppers[0], *lowers[1:])
        )
    return None


def constant(expression: sympy.Expr) -> int | None:
    """The integer that the expression is, if it is one."""
    expression = sympy.sympify(expression)
    return int(expression) if expression.is_Integer else None
