"""Subscripts of contractions: ``"bik,bkj->bij"``, also with sums of letters, as in a convolution.

A dimension is a letter, or a sum in parentheses: ``"nc(2h+k)(2w+l),ockl->nohw"``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Dimension: TypeAlias = tuple[tuple[str, int], ...]
"""Letters of an index, each with its factor, which is positive."""

_DIMENSION = re.compile(r"\(([^()]*)\)|([A-Za-z])")
_TERM = re.compile(r"(\d*)([A-Za-z])")


@dataclass(frozen=True)
class Subscripts:
    """The indices of the operands and of the result."""

    operands: tuple[tuple[Dimension, ...], ...]
    result: tuple[Dimension, ...]

    @classmethod
    def parse(cls, text: str) -> Subscripts:
        """Read the text form."""
        left, _, out = text.partition("->")
        return cls(tuple(map(_dimensions, left.split(","))), _dimensions(out))

    @property
    def letters(self) -> str:
        """All letters: those of the result, then those that are reduced."""
        terms = (self.result, *self.operands)
        return "".join(dict.fromkeys(x for term in terms for dim in term for x, _ in dim))

    @property
    def reduced(self) -> str:
        """Letters that the result does not have."""
        kept = {x for dim in self.result for x, _ in dim}
        return "".join(x for x in self.letters if x not in kept)


def plain_letter(dimension: Dimension) -> str | None:
    """The letter that indexes a dimension by itself, if one does."""
    return dimension[0][0] if len(dimension) == 1 and dimension[0][1] == 1 else None


def _dimensions(text: str) -> tuple[Dimension, ...]:
    found: list[Dimension] = []
    for match in _DIMENSION.finditer(text):
        if match[2]:
            found.append(((match[2], 1),))
        else:
            terms = (_TERM.fullmatch(term) for term in match[1].split("+"))
            found.append(tuple((term[2], int(term[1] or 1)) for term in terms if term))
    return tuple(found)
