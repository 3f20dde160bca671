"""Kinds of what the loops of a nest carry: inferred over the whole nest, before it is written down.

A kind is a type, a rank or shape, a container: what the place of a variable has to be that all
iterations share. Where a pass over a nest finds that a variable of some loop needs another kind, it
takes that kind for the rest of the pass, and goes on: the outermost loop is read once more when all
kinds are found, not each loop for each of its variables. So a nest is read as often as kinds have
to grow one after the other, most often twice, however deep it is.

What a pass writes down that finds new kinds, or refuses behind them, is not believed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from distspmd.frontend.from_numpy.reader.frames import Frame

_ASSUMING = 6
"""Passes over a nest, at most, before each of its loops is read until its own kinds are found."""


class Unsettled(Exception):
    """The rest of a pass is not read: what it has found of kinds makes it not worth it."""


@dataclass(eq=False)
class Kinds:
    """Kinds of the variables of one loop, by their kinds at its entry.

    Attributes:
        found: by the name of a variable and its kind at the entry.
        inner: the kinds of the loops in it, by their places, in the order in which they are read.
        counts: how many were read at a place in this pass.
    """

    found: dict[tuple[str, Any], Any] = field(default_factory=dict)
    inner: dict[tuple[Any, int], Kinds] = field(default_factory=dict)
    counts: dict[Any, int] = field(default_factory=dict)

    def of_inner(self, place: object) -> Kinds:
        """The kinds of the loop that is read next at a place."""
        number = self.counts[place] = self.counts.get(place, 0) + 1
        return self.inner.setdefault((place, number), Kinds())


@dataclass(eq=False)
class Nest:
    """The loops that are being read, one in the other.

    Attributes:
        around: the kinds of each, the outermost one first.
        passes: how often the outermost one was read.
        is_settled: whether this pass has found no new kinds.
    """

    around: list[Kinds] = field(default_factory=list)
    passes: int = 0
    is_settled: bool = True

    @property
    def is_outermost(self) -> bool:
        """Whether the loop that is being read is in no other one."""
        return len(self.around) == 1

    @property
    def assumes(self) -> bool:
        """Whether the loop that is being read leaves it to the outermost one to be read again."""
        return not self.is_outermost and self.passes <= _ASSUMING

    def begin_pass(self) -> None:
        """Begin to read a loop, for the first time or again."""
        self.around[-1].counts.clear()
        if self.is_outermost:
            self.passes += 1
            self.is_settled = True

    @contextmanager
    def entered(self, node: ast.stmt, frames: Sequence[Frame]) -> Iterator[Kinds]:
        """Read a loop, in the loops that are being read: the kinds of it."""
        place = *((f.file, _position(f.statement)) for f in frames), type(node), _position(node)
        kinds = self.around[-1].of_inner(place) if self.around else Kinds()
        self.around.append(kinds)
        if self.is_outermost:
            self.passes = 0
        try:
            yield kinds
        finally:
            self.around.pop()
            if not self.around:
                self.is_settled = True

    def check_settled(self) -> None:
        """Let nothing that is refused be believed in a pass that has found new kinds.

        Raises:
            Unsettled: it has.
        """
        if not self.is_settled:
            raise Unsettled


def _position(node: ast.stmt | None) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
