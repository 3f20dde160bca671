"""Whole numbers that a program computes with symbols: lengths, indices, and what is known of them.

Sizes are at least one; variables of loops lie between bounds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias

import sympy

Whole: TypeAlias = "int | sympy.Expr"
Bounds: TypeAlias = "Mapping[str, tuple[Whole | None, Whole | None]]"
"""Least and greatest value of symbols; those that are missing are sizes."""


class int_floor(sympy.Function):  # type: ignore[misc]  # noqa: N801  (DaCe's name of it)
    """``a // b``."""

    nargs = 2

    @classmethod
    def eval(cls, a: Any, b: Any) -> Any:
        """Divide what can be divided."""
        if not b.is_Integer or b == 0:
            return None
        inside: list[Any] = []
        outside: list[Any] = []
        for term in sympy.Add.make_args(sympy.expand(a)):
            coefficient, _ = term.as_coeff_Mul()
            even = coefficient.is_Integer and coefficient % b == 0
            (outside if even else inside).append(term)
        if not inside:
            return sympy.Add(*(t / b for t in outside))
        rest = sympy.Add(*inside)
        if rest.is_Integer:
            return sympy.Add(*(t / b for t in outside), sympy.Integer(int(rest) // int(b)))
        if outside:
            return sympy.Add(*(t / b for t in outside), cls(rest, b, evaluate=False))
        return None

    def _eval_is_integer(self) -> bool:
        return True


class CheckedIndex(sympy.Function):  # type: ignore[misc]
    """An index among so many elements, of a line: it is told where it is out of range."""

    nargs = 3

    def _eval_is_integer(self) -> bool:
        return True


def symbol(name: str) -> sympy.Symbol:
    """A symbol of a whole number."""
    return sympy.Symbol(name, integer=True)


def simplified(value: Whole) -> Whole:
    """A number where it is one, else an expanded expression."""
    if isinstance(value, int):
        return value
    value = sympy.expand(value)
    return int(value) if value.is_Integer else value


def add(a: Whole, b: Whole) -> Whole:
    """``a + b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return simplified(sympy.sympify(a) + sympy.sympify(b))


def subtract(a: Whole, b: Whole) -> Whole:
    """``a - b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return simplified(sympy.sympify(a) - sympy.sympify(b))


def multiply(a: Whole, b: Whole) -> Whole:
    """``a * b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return simplified(sympy.sympify(a) * sympy.sympify(b))


def floor_divide(a: Whole, b: Whole) -> Whole:
    """``a // b``, as in Python."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return simplified(int_floor(sympy.sympify(a), sympy.sympify(b)))


def remainder(a: Whole, b: Whole) -> Whole:
    """``a % b``, as in Python."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    found = sympy.Mod(sympy.expand(a), sympy.sympify(b))
    return int(found) if found.is_Integer else found


def ceil_divide(a: Whole, b: Whole) -> Whole:
    """``-(-a // b)``."""
    return multiply(-1, floor_divide(multiply(-1, a), b))


def same(a: Whole, b: Whole) -> bool:
    """Whether two are equal for all values of their symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return bool(subtract(a, b) == 0)


def bound(value: Whole, bounds: Bounds, *, least: bool) -> Whole | None:
    """The least, or the greatest, that a value can be, by sizes alone; None where unknown."""
    value = _without_quotients(simplified(value), bounds, least=least)
    for name in reversed(list(bounds)):
        if isinstance(value, int):
            return value
        found = next((s for s in value.free_symbols if s.name == name), None)
        if found is None:
            continue
        coefficient = value.coeff(found, 1)
        rest = sympy.expand(value - coefficient * found)
        if found in rest.free_symbols or coefficient.free_symbols & {found}:
            return None
        sign = _sign(coefficient)
        if sign is None:
            return None
        end = bounds[name][0 if (sign > 0) == least else 1]
        if end is None:
            return None
        value = simplified(coefficient * end + rest)
    return value


def _without_quotients(value: Whole, bounds: Bounds, *, least: bool) -> Whole:
    """A value that bounds another one, without the quotients and remainders by numbers in it."""
    if isinstance(value, int):
        return value
    for part in value.atoms(int_floor, sympy.Mod):
        factor, by = value.coeff(part, 1), part.args[1]
        if not (factor.is_Integer and by.is_Integer and by > 0):
            continue
        lower = (factor > 0) == least
        end: Whole | None = 0 if lower else int(by) - 1
        if isinstance(part, int_floor):
            inside = bound(part.args[0], bounds, least=lower)
            end = int(inside) // int(by) if isinstance(inside, int) else None
        if end is not None:
            value = simplified(value.subs(part, end))
        if isinstance(value, int):
            return value
    return value


def is_decided_by_data(length: Whole, bounds: Bounds) -> bool:
    """Whether a length has symbols of which nothing is known before the run."""
    if isinstance(length, int):
        return False
    return any(bounds.get(s.name) == (None, None) for s in length.free_symbols)


def is_ranged_by_data(value: Whole, bounds: Bounds) -> bool:
    """Whether data decide a value, or the ends of a loop whose variable is in it."""
    if isinstance(value, int):
        return False
    waiting = {s.name for s in value.free_symbols}
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        ends = bounds.get(name, (0, 0))
        if ends == (None, None):
            return True
        found = (e for e in ends if isinstance(e, sympy.Basic))
        waiting |= {s.name for e in found for s in e.free_symbols} - seen
    return False


def is_at_least(value: Whole, least: int, bounds: Bounds) -> bool:
    """Whether a value is never less than a number; False where that is not known."""
    value = simplified(value)
    if isinstance(value, int):
        return value >= least
    if isinstance(value, sympy.Max):
        return any(is_at_least(part, least, bounds) for part in value.args)
    if isinstance(value, sympy.Min):
        return all(is_at_least(part, least, bounds) for part in value.args)
    lowest = bound(value, bounds, least=True)
    if lowest is None:
        return False
    if isinstance(lowest, int):
        return lowest >= least
    shifted = {
        s: sympy.Symbol(s.name, integer=True, nonnegative=True) + 1 for s in lowest.free_symbols
    }
    found = sympy.expand(lowest.xreplace(shifted) - least)
    return bool(found.is_nonnegative)


def direction(value: Whole, by: sympy.Symbol, bounds: Bounds) -> int | None:
    """1 where a value never falls as a symbol grows, -1 where it never grows, 0 without the symbol.

    None where that is not known.
    """
    if isinstance(value, int) or by not in value.free_symbols:
        return 0
    if value == by:
        return 1
    if isinstance(value, sympy.Add | sympy.Max | sympy.Min):
        return _agreed(direction(part, by, bounds) for part in value.args)
    if isinstance(value, sympy.Mul):
        return _agreed(_of_factor(value, part, by, bounds) for part in value.args)
    if isinstance(value, int_floor) and value.args[1].is_Integer:
        found = direction(value.args[0], by, bounds)
        return found if found is None or value.args[1].is_positive else -found
    if isinstance(value, sympy.Pow):
        base, exponent = value.args
        if base.is_Integer and base.is_positive:
            return direction(exponent, by, bounds)
        if exponent.is_Integer and exponent.is_positive and is_at_least(base, 0, bounds):
            return direction(base, by, bounds)
    return None


def _of_factor(
    product: sympy.Expr, factor: sympy.Expr, by: sympy.Symbol, bounds: Bounds
) -> int | None:
    """How a product changes by one of its factors."""
    found = direction(factor, by, bounds)
    if not found:
        return found
    others = sympy.Mul(*(part for part in product.args if part is not factor))
    if others.is_positive or is_at_least(others, 0, bounds):
        return found
    return -found if others.is_negative or is_at_least(-others, 0, bounds) else None


def _agreed(directions: Iterable[int | None]) -> int | None:
    """The direction of what several parts make together."""
    every = set(directions) - {0}
    return every.pop() if len(every) == 1 else None if every else 0


def is_linear(value: Whole, by: sympy.Symbol) -> bool:
    """Whether a value is a multiple of a symbol, not zero, and what is without the symbol."""
    value = sympy.expand(value)
    factor = value.coeff(by, 1)
    rest = sympy.expand(value - factor * by)
    return factor != 0 and by not in factor.free_symbols | rest.free_symbols


def _sign(coefficient: sympy.Expr) -> int | None:
    sizes = {s: sympy.Symbol(s.name, integer=True, positive=True) for s in coefficient.free_symbols}
    value = coefficient.xreplace(sizes)
    if value.is_positive:
        return 1
    return -1 if value.is_negative else None


_VARIABLES: ContextVar[Bounds | None] = ContextVar("variables", default=None)


@contextlib.contextmanager
def among(variables: Bounds) -> Iterator[None]:
    """Within it, texts know the values of a program's variables; other symbols are sizes."""
    before = _VARIABLES.set(variables)
    try:
        yield
    finally:
        _VARIABLES.reset(before)


def text(value: Any, bounds: Bounds | None = None) -> str:
    """A value in the syntax that DaCe reads.

    DaCe's quotients round towards zero, and its remainders have the sign of the dividend: here they
    are written so that no dividend is negative, as far as that is not known anyway.
    """
    if isinstance(value, int):
        return str(value)
    known = _VARIABLES.get() if bounds is None else bounds
    return _Text(known).of(sympy.sympify(value))


class _Text:
    def __init__(self, bounds: Bounds | None) -> None:
        self.bounds = bounds

    def of(self, value: sympy.Basic) -> str:
        if isinstance(value, sympy.Mod):
            return self._remainder(*value.args)
        if isinstance(value, int_floor):
            return self._quotient(*value.args)
        if isinstance(value, CheckedIndex):
            return f"distspmd_checked_index({', '.join(map(self.of, value.args))})"
        if isinstance(value, sympy.Add):
            return "(" + " + ".join(map(self.of, value.args)) + ")"
        if isinstance(value, sympy.Mul):
            return "(" + " * ".join(map(self.of, value.args)) + ")"
        if isinstance(value, sympy.Pow):
            return f"({self.of(value.args[0])} ** {self.of(value.args[1])})"
        if isinstance(value, sympy.Min | sympy.Max):
            name = type(value).__name__
            found = self.of(value.args[0])
            for other in value.args[1:]:
                found = f"{name}({found}, {self.of(other)})"
            return found
        return str(value)

    def _remainder(self, a: sympy.Expr, b: sympy.Expr) -> str:
        if self._is_positive(b) and self._is_whole(a):
            return f"(({self.of(a)}) % ({self.of(b)}))"
        return f"({self.of(a)} + (-1) * {self.of(b)} * {self._quotient(a, b)})"

    def _quotient(self, a: sympy.Expr, b: sympy.Expr) -> str:
        if b.is_Integer and b < 0:
            a, b = sympy.expand(-a), -b
        over, under = self.of(a), self.of(b)
        if self._is_whole(a):
            return f"int_floor({over}, {under})"
        least = None if self.bounds is None else bound(a, self.bounds, least=True)
        if isinstance(least, int) and b.is_Integer:
            more = -(least // int(b))
            return f"(int_floor({self.of(a + more * b)}, {under}) + ({-more}))"
        below = self.of(sympy.expand(-a))
        return (
            f"(int_floor(Max({over}, 0), {under}) + (-1) * "
            f"int_floor((Max({below}, 0) + {under} + (-1)), {under}))"
        )

    def _is_whole(self, value: sympy.Expr) -> bool:
        """Whether a value is known not to be negative."""
        if value.is_Integer:
            return bool(value >= 0)
        return self.bounds is not None and is_at_least(value, 0, self.bounds)

    def _is_positive(self, value: sympy.Expr) -> bool:
        return bool(value > 0) if value.is_Integer else self._is_whole(value)
