"""Operands of a contraction: which letters index their windows, and how they move in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import sympy
from dace import dtypes

from distspmd.nodes.subscripts import Dimension, plain_letter


class Pick(NamedTuple):
    """A letter that does not run: it is what an operand, by its number, holds there."""

    letter: str
    operand: int


@dataclass(frozen=True)
class Operand:
    """A window of a container: for each dimension its index, begin, extent, and storage stride."""

    connector: str
    dtype: dtypes.typeclass
    dimensions: tuple[Dimension, ...]
    begins: tuple[sympy.Expr, ...]
    extents: tuple[sympy.Expr, ...]
    strides: tuple[sympy.Expr, ...]

    @cached_property
    def letters(self) -> str:
        """Its letters, outermost first."""
        return "".join(dict.fromkeys(x for dim in self.dimensions for x, _ in dim))

    @cached_property
    def steps(self) -> dict[str, sympy.Expr]:
        """How far it moves in memory with each letter: 0 along those that broadcast it."""
        found = dict.fromkeys(self.letters, sympy.Integer(0))
        for dim, extent, stride in zip(self.dimensions, self.extents, self.strides, strict=False):
            for letter, factor in dim if extent != 1 else ():
                found[letter] += stride * factor
        return found

    def indices(self, names: dict[str, str]) -> list[str]:
        """Index in each dimension of the window; one of one element is broadcast."""
        found = [
            "0" if extent == 1 else " + ".join(f"{names[x]} * {factor}" for x, factor in dim)
            for dim, extent in zip(self.dimensions, self.extents, strict=False)
        ]
        return found or ["0"]  # one element has a dimension and no letter


@dataclass(frozen=True)
class Einsum:
    """A contraction between windows: what the node computes, without DaCe's graph around it."""

    operands: tuple[Operand, ...]
    result: Operand
    letters: str
    reduced: str

    @cached_property
    def _plain(self) -> dict[str, tuple[sympy.Expr, sympy.Expr]]:
        """Begin and extent of each letter, from a dimension that it indexes by itself.

        An extent of 1 gives way to any other, as NumPy broadcasts it.
        """
        found: dict[str, tuple[sympy.Expr, sympy.Expr]] = {}
        for operand in (self.result, *self.operands):
            for dim, begin, extent in zip(
                operand.dimensions, operand.begins, operand.extents, strict=False
            ):
                letter = plain_letter(dim)
                if letter and (letter not in found or found[letter][1] == 1):
                    found[letter] = begin, extent
        return found

    @cached_property
    def extents(self) -> dict[str, sympy.Expr]:
        """Extent of each letter."""
        return {x: extent for x, (_, extent) in self._plain.items()}

    @cached_property
    def begins(self) -> dict[str, sympy.Expr]:
        """First value of each letter, counted in the whole container."""
        return {x: begin for x, (begin, _) in self._plain.items()}

    @property
    def writes_once(self) -> bool:
        """Whether no two values of the result's letters write one element."""
        return all(map(plain_letter, self.result.dimensions))

    @cached_property
    def neighbours(self) -> str:
        """The result's last letter, if it moves by one element wherever it stands; else empty."""
        last = "".join(x for x in self.letters if x not in self.reduced)[-1:]
        having = [operand for operand in self.operands if last in operand.steps]
        if not last or not having or not self.reduced:
            return ""
        moves = (operand.steps.get(last, 0) == 1 for operand in (*having, self.result))
        return last if all(moves) else ""

    def coalesced(self) -> Einsum:
        """The same with one letter for neighbours that move as one in every window.

        The dimensions of its windows are letters, with their steps for strides. Nothing changes
        where several values of the result's letters write one element.
        """
        if not self.writes_once:
            return self
        groups: list[str] = []
        for x in [x for x in self.letters if x not in self.reduced] + list(self.reduced):
            if groups and self._move_as_one(groups[-1][-1], x):
                groups[-1] += x
            else:
                groups.append(x)
        operands = [self._grouped(operand, groups) for operand in (*self.operands, self.result)]
        letters = "".join(group[-1] for group in groups)
        reduced = "".join(x for x in letters if x in self.reduced)
        return Einsum(tuple(operands[:-1]), operands[-1], letters, reduced)

    def _move_as_one(self, above: str, below: str) -> bool:
        return (above in self.reduced) == (below in self.reduced) and all(
            operand.steps.get(above, 0) == operand.steps.get(below, 0) * self.extents[below]
            for operand in (*self.operands, self.result)
        )

    def _grouped(self, operand: Operand, groups: Sequence[str]) -> Operand:
        """A window with a dimension for each group that it has."""
        own = [group for group in groups if set(group) & set(operand.letters)]
        return replace(
            operand,
            dimensions=tuple(((group[-1], 1),) for group in own),
            begins=tuple(sympy.Integer(0) for _ in own),
            extents=tuple(sympy.Mul(*(self.extents[x] for x in group)) for group in own),
            strides=tuple(operand.steps.get(group[-1], sympy.Integer(0)) for group in own),
        )
