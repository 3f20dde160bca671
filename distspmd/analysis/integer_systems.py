"""Whether a system of linear equations and inequalities has a solution in whole numbers.

It is Pugh's Omega test. Equations are solved by Euclid's algorithm, which loses no solution. An
inequality is eliminated exactly where factors are one; else its shadows decide, and where these
differ, each of the few remaining cases is tried. The answer is exact, up to a limit of work behind
which it is "perhaps", which counts as yes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_MOST_ROWS, _MOST_CASES = 120, 400
"""Inequalities, and cases of an inexact elimination, behind which the answer is yes."""


@dataclass(frozen=True)
class Linear:
    """A sum of variables with whole factors, and a constant."""

    factors: Mapping[str, int]
    constant: int = 0

    def __post_init__(self) -> None:
        """Leave out what has no factor."""
        kept = {name: factor for name, factor in self.factors.items() if factor}
        object.__setattr__(self, "factors", kept)

    def __add__(self, other: Linear | int) -> Linear:
        """The sum of two."""
        return self.plus(other, 1)

    def __sub__(self, other: Linear | int) -> Linear:
        """The difference of two."""
        return self.plus(other, -1)

    def __mul__(self, by: int) -> Linear:
        """A multiple."""
        return Linear({name: by * f for name, f in self.factors.items()}, by * self.constant)

    def plus(self, other: Linear | int, times: int) -> Linear:
        """This one and a multiple of another."""
        if isinstance(other, int):
            return Linear(self.factors, self.constant + times * other)
        found = dict(self.factors)
        for name, factor in other.factors.items():
            found[name] = found.get(name, 0) + times * factor
        return Linear(found, self.constant + times * other.constant)

    def put(self, name: str, value: Linear) -> Linear:
        """This one, with a value in place of a variable."""
        factor = self.factors.get(name, 0)
        if not factor:
            return self
        rest = {n: f for n, f in self.factors.items() if n != name}
        return Linear(rest, self.constant).plus(value, factor)

    @classmethod
    def of(cls, name: str) -> Linear:
        """A variable."""
        return cls({name: 1})


_Row: TypeAlias = tuple[tuple[tuple[str, int], ...], int]


def has_solution(zero: Iterable[Linear], not_negative: Iterable[Linear]) -> bool:
    """Whether whole numbers make some sums zero, and others not negative.

    Args:
        zero: sums that shall be zero.
        not_negative: sums that shall be zero or more.
    """
    rows = _without_equations(list(zero), list(not_negative))
    return rows is not None and _feasible(rows)


def _without_equations(zero: list[Linear], rows: list[Linear]) -> list[Linear] | None:
    """The inequalities with the solutions of all equations put in; None where there is none."""
    made = 0
    while zero:
        equation = zero.pop()
        divisor = math.gcd(*equation.factors.values())
        if not divisor:
            if equation.constant:
                return None
            continue
        if equation.constant % divisor:
            return None
        name = min(equation.factors, key=lambda n: (abs(equation.factors[n]), n))
        factor = equation.factors[name] // divisor
        others = {n: f // divisor for n, f in equation.factors.items() if n != name}
        rest = Linear(others, equation.constant // divisor)
        if abs(factor) == 1:
            value = rest * -factor
        else:  # name = new - sum of quotients: what is left has smaller factors
            made += 1
            new = f"{name}'{made}"
            quotients = {n: -(f // factor) for n, f in others.items()}
            value = Linear({new: 1, **quotients}, -(rest.constant // factor))
            left = {new: factor, **{n: f % factor for n, f in others.items()}}
            zero.append(Linear(left, rest.constant % factor))
        zero = [each.put(name, value) for each in zero]
        rows = [each.put(name, value) for each in rows]
    return rows


def _tightened(rows: Sequence[Linear]) -> dict[tuple[tuple[str, int], ...], int] | None:
    """The tightest constant of each sum, divided by what divides it; None where one cannot hold."""
    found: dict[tuple[tuple[str, int], ...], int] = {}
    for row in rows:
        if not row.factors:
            if row.constant < 0:
                return None
            continue
        divisor = math.gcd(*row.factors.values())
        key = tuple(sorted((name, factor // divisor) for name, factor in row.factors.items()))
        constant = row.constant // divisor
        found[key] = min(constant, found.get(key, constant))
    return found


def _feasible(rows: Sequence[Linear]) -> bool:
    """Whether some whole numbers fulfil all inequalities."""
    while True:
        found = _tightened(rows)
        equal = None if found is None else _equal(found)
        if found is None or equal is None:
            return False
        if not found or len(found) > _MOST_ROWS:
            return True
        rows = [Linear(dict(key), constant) for key, constant in found.items()]
        if equal:
            left = _without_equations(equal, rows)
            if left is None:
                return False
            rows = left
            continue
        name, lower, upper, rest = _chosen(rows)
        if not lower or not upper:
            rows = rest
        elif all(f == 1 for f, _ in lower) or all(f == 1 for f, _ in upper):
            rows = [*rest, *_shadow(lower, upper, dark=False)]
        else:
            return _by_shadows(name, lower, upper, rest)


def _equal(found: Mapping[tuple[tuple[str, int], ...], int]) -> list[Linear] | None:
    """Sums that have to be zero, as they and their opposites are not negative; None if none can."""
    equal = []
    for key, constant in found.items():
        opposite = found.get(tuple((name, -factor) for name, factor in key))
        if opposite is None:
            continue
        if constant + opposite < 0:
            return None
        if constant + opposite == 0:
            equal.append(Linear(dict(key), constant))
    return equal


_Bounds: TypeAlias = list[tuple[int, Linear]]


def _chosen(rows: Sequence[Linear]) -> tuple[str, _Bounds, _Bounds, list[Linear]]:
    """The variable to eliminate next, what bounds it below and above, and all else."""
    best: tuple[tuple[bool, int, str], str] | None = None
    for name in {n for row in rows for n in row.factors}:
        own = [row.factors[name] for row in rows if name in row.factors]
        low, high = [f for f in own if f > 0], [-f for f in own if f < 0]
        exact = set(low) <= {1} or set(high) <= {1}
        cost = (not exact, len(low) * len(high) - len(own), name)
        if best is None or cost < best[0]:
            best = cost, name
    assert best is not None
    name = best[1]
    lower: _Bounds = []
    upper: _Bounds = []
    rest = []
    for row in rows:
        factor = row.factors.get(name, 0)
        others = Linear({n: f for n, f in row.factors.items() if n != name}, row.constant)
        if factor > 0:
            lower.append((factor, others))
        elif factor < 0:
            upper.append((-factor, others))
        else:
            rest.append(row)
    return name, lower, upper, rest


def _shadow(lower: _Bounds, upper: _Bounds, *, dark: bool) -> list[Linear]:
    """What holds of the others where a number is between all bounds.

    ``b x + beta >= 0`` and ``-a x + alpha >= 0``; the dark shadow is where a whole one surely is.
    """
    return [
        (alpha * b).plus(beta, a) - ((a - 1) * (b - 1) if dark else 0)
        for b, beta in lower
        for a, alpha in upper
    ]


def _by_shadows(name: str, lower: _Bounds, upper: _Bounds, rest: list[Linear]) -> bool:
    """Whether there is a solution, where no elimination is exact."""
    if not _feasible([*rest, *_shadow(lower, upper, dark=False)]):
        return False
    if _feasible([*rest, *_shadow(lower, upper, dark=True)]):
        return True
    most = max(a for a, _ in upper)
    every = [Linear({**beta.factors, name: b}, beta.constant) for b, beta in lower]
    every += [Linear({**alpha.factors, name: -a}, alpha.constant) for a, alpha in upper]
    cases = [(b, beta, n) for b, beta in lower for n in range((most * b - most - b) // most + 1)]
    if len(cases) > _MOST_CASES:
        return True
    return any(
        has_solution([Linear({**beta.factors, name: b}, beta.constant - n)], [*rest, *every])
        for b, beta, n in cases
    )
