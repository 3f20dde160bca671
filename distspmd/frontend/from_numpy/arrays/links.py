"""Links of containers that are one array, or images of it, and who sees them."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from distspmd.frontend.from_numpy.arrays.images import Follows
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.tensor_ir.statements import Container, Statement


@dataclass(eq=False)
class Alias:
    """A container that has the elements of an array where a symbol is 1.

    Attributes:
        name: how the program calls what lies in the container.
        copy: all of the container.
        source: the array.
        holds: the symbol; None where it is not known, so that neither may be written.
        sets: the statements that set the symbol.
        needs: what else its symbol is made of.
        is_followed: whether a write to one has been followed by a copy to the other.
        follows: how each is computed from the other, where the copy is an image of the array.
    """

    name: str
    copy: View
    source: View
    holds: sympy.Symbol | None
    sets: list[Statement] = field(default_factory=list)
    needs: list[Alias] = field(default_factory=list)
    is_followed: bool = False
    follows: Follows | None = None

    def touches(self, container: Container) -> bool:
        """Whether one of the two lies in a container."""
        return container in (self.copy.container, self.source.container)

    @property
    def why_not(self) -> str:
        """Why a write to one is not followed by one to the other."""
        if self.follows is None:
            return (
                "an array is written in place that may be the one that "
                f"{self.name!r} stands for, as the run decides"
            )
        return f"{self.name!r} has the memory of an array in NumPy, and one of both is written here"

    def ends(self, written: Container) -> tuple[View, Tensor | None]:
        """What follows a write to one of the two, and its elements; None where it cannot."""
        is_source = self.source.container is written
        one, other = (self.copy, self.source) if is_source else (self.source, self.copy)
        if self.follows is None:
            return one, other
        if is_source:
            return one, self.follows.get(other)
        return one, self.follows.put(other, one) if self.follows.put else None


def is_linked(tracer: Tracer, container: Container) -> bool:
    """Whether writes to a container may be writes to another one."""
    return any(alias.touches(container) for alias in tracer.aliases)
