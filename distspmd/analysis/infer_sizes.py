"""Symbolic sizes: the values of the symbols of a call, from the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sympy

from distspmd.errors import ArgumentError

Shape = tuple[sympy.Expr, ...]


@dataclass(frozen=True)
class Equation:
    """An extent of an argument that is given: ``2*M`` is 8, in dimension 1 of ``x``."""

    expression: sympy.Expr
    value: int
    data: str
    dimension: int

    @property
    def unknown(self) -> dict[str, sympy.Symbol]:
        """Its symbols by name."""
        return {symbol.name: symbol for symbol in self.expression.free_symbols}

    def given(self, sizes: Mapping[str, int]) -> Equation:
        """The equation with numbers for the symbols that are known."""
        known = {s: sizes[name] for name, s in self.unknown.items() if name in sizes}
        return replace(self, expression=sympy.sympify(self.expression.subs(known)))

    def __str__(self) -> str:
        return f"dimension {self.dimension} of {self.data!r} has {self.value}"


def infer(
    program: str,
    symbols: Sequence[str],
    shapes: Mapping[str, Shape],
    found: Mapping[str, tuple[int, ...]],
    given: Mapping[str, int],
) -> dict[str, int]:
    """The number of each symbol, so that all shapes are those that were found.

    Args:
        program: its name, for messages.
        symbols: all that need a number.
        shapes: of the arguments, with symbols.
        found: shapes of the arguments of a call; some may be missing.
        given: numbers that the caller gives.

    Raises:
        ArgumentError: shapes contradict each other, or leave a symbol open.
    """
    equations = list(_equations(program, shapes, found))
    sizes = dict(given)
    because: dict[str, str] = dict.fromkeys(given, "it is given")
    open_equations = equations
    while open_equations:
        left = []
        for equation in (each.given(sizes) for each in open_equations):
            if len(equation.unknown) == 1:
                name, value = solve(program, equation)
                sizes[name], because[name] = value, str(equation)
            elif equation.unknown:
                left.append(equation)
        if len(left) == len(open_equations):
            break
        open_equations = left
    for original in equations:
        _check(program, original, sizes, because)
    missing = [name for name in symbols if name not in sizes]
    if missing:
        _refuse_open(program, missing, shapes, found)
    return {name: sizes[name] for name in symbols}


def _equations(
    program: str, shapes: Mapping[str, Shape], found: Mapping[str, tuple[int, ...]]
) -> Iterator[Equation]:
    for data, extents in found.items():
        shape = shapes[data]
        if len(extents) != len(shape):
            raise ArgumentError(
                f"{program}: the argument {data!r} must have the shape {_text(shape)}, but it has "
                f"{list(extents)}, {len(extents)} dimensions for {len(shape)}."
            )
        for dimension, (expression, value) in enumerate(zip(shape, extents, strict=True)):
            yield Equation(sympy.sympify(expression), value, data, dimension)


def solve(program: str, equation: Equation) -> tuple[str, int]:
    """The one symbol of an equation, and its number.

    Raises:
        ArgumentError: no whole number solves it, or several do.
    """
    ((name, symbol),) = equation.unknown.items()
    plain = sympy.Symbol(name)  # DaCe's are integers: without that, sympy solves more
    solutions = sympy.solve(equation.expression.subs(symbol, plain) - equation.value, plain)
    whole = [int(s) for s in solutions if s.is_Integer and s >= 0]
    if len(whole) != 1:
        raise ArgumentError(
            f"{program}: {equation}, which no {name} makes of {equation.expression}."
            if not whole
            else f"{program}: {equation}, which {name}={whole[0]} and {whole[1]} both make of "
            f"{equation.expression}; pass {name}=<number>."
        )
    return name, whole[0]


def _check(
    program: str, equation: Equation, sizes: Mapping[str, int], because: Mapping[str, str]
) -> None:
    """Whether an extent is the one that the sizes make."""
    now = equation.given(sizes).expression
    if now.free_symbols or now == equation.value:
        return
    if not equation.unknown:
        raise ArgumentError(f"{program}: {equation}, and must have {now}.")
    names = [name for name in equation.unknown if name in because]
    reasons = "; ".join(f"{name} is {sizes[name]}, as {because[name]}" for name in names)
    raise ArgumentError(
        f"{program}: the shapes contradict each other: {equation}, but {equation.expression} is "
        f"{now}: {reasons}."
    )


def _refuse_open(
    program: str,
    missing: Sequence[str],
    shapes: Mapping[str, Shape],
    found: Mapping[str, tuple[int, ...]],
) -> None:
    absent = [(name, data) for name in missing for data in shapes if data not in found]
    for name, data in absent:
        if name in {s.name for extent in shapes[data] for s in sympy.sympify(extent).free_symbols}:
            raise ArgumentError(
                f"{program}: the size {name} is open, because the argument {data!r} of the shape "
                f"{_text(shapes[data])} is missing on rank 0. Pass it, or pass {name}=<number>."
            )
    raise ArgumentError(
        f"{program}: no shape of an argument determines the size {missing[0]}; pass "
        f"{missing[0]}=<number>."
    )


def _text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"
