"""Arrays that NumPy has in the memory of other arrays, and that have containers of their own here.

``z.real`` is such an image of ``z``. Where a variable gets it, its elements are stored, and what is
written to the one in place is followed by a write to the other, as of arrays that are one of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import sympy

from distspmd.expressions.ir import Expression
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import (
    Tensor,
    View,
    axis,
    make_view,
    whole_expression,
)
from distspmd.frontend.tensor_ir.statements import Container, Index, Length, Statement
from distspmd.frontend.tensor_ir.whole_numbers import Whole

Get = Callable[[Tensor], Tensor]
Put = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Follows:
    """How an image follows its array, and the array its image.

    Attributes:
        get: the image, of the array.
        put: the array, of the image and of the array before; None where it is not written through.
    """

    get: Get
    put: Put | None


@dataclass(eq=False)
class Image(Tensor):
    """Elements that are computed from those of an array, which NumPy has in its memory."""

    base: View = field(kw_only=True)
    follows: Follows = field(kw_only=True)


def image_of(base: Tensor, get: Get, put: Put | None) -> Tensor:
    """What ``get`` makes of an array: an image, if the array's elements lie in a container."""
    found = get(base)
    if not isinstance(base, View) or not base.ndim or base.weak is not None:
        return found
    return Image(**vars(found), base=base, follows=Follows(get, put))


def part_of_image(image: Image, part: Callable[[Tensor], Tensor]) -> Tensor:
    """A part of an image, which is the image of that part of the array if elements are alone."""
    get, put = image.follows.get, image.follows.put
    if put is not None:
        return image_of(part(image.base), get, put)
    return image_of(image.base, lambda base: part(get(base)), None)


def moved(
    base: Tensor, shape: Sequence[Length], places: Sequence[Whole], *, is_merged: bool = False
) -> Tensor:
    """The tensor whose elements are those of another one at places, over ``axis(0)``, ..."""
    if base.mask is not None:
        raise Refusal(
            "elements that a boolean mask chooses are arranged in another way: their number is not "
            "known before the run. Use np.where(mask, ..., ...) on the whole"
        )
    if isinstance(base, View):
        inner = base.at(places)
        return make_view(
            base.container,
            shape,
            inner,
            is_merged=is_merged or base.is_merged,
            weak=base.weak if not shape else None,
        )

    if isinstance(base, Image):
        return part_of_image(base, lambda tensor: moved(tensor, shape, places))

    def element(index: tuple[Index, ...]) -> Expression:
        return base.element(at(places, index))

    return Tensor(tuple(shape), base.dtype, element)


def at(places: Sequence[Whole], index: Sequence[Index]) -> tuple[Index, ...]:
    """Places for an index."""
    by = {axis(d): i for d, i in enumerate(index)}
    found: list[Index] = []
    for place in places:
        if isinstance(place, int):
            found.append(place)
            continue
        own = {s: by[s] for s in place.free_symbols if s in by}
        if all(isinstance(i, int | sympy.Basic) for i in own.values()):
            value = place.xreplace({s: sympy.sympify(i) for s, i in own.items()})
            found.append(int(value) if value.is_Integer else value)
        elif place in own:
            found.append(own[place])
        else:
            found.append(whole_expression(place, dict(own)))
    return tuple(found)


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
    return any(alias.touches(container) for alias in tracer.links.aliases)
