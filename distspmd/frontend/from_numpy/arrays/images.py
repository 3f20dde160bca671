"""Arrays that NumPy has in the memory of other arrays, and that have containers of their own here.

``z.real`` is such an image of ``z``. Where a variable gets it, its elements are stored, and what is
written to the one in place is followed by a write to the other, as of arrays that are one of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distspmd.frontend.from_numpy.arrays.values import Tensor, View

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


def stored_image(tracer: Any, value: Tensor, name: str | None = None) -> View:
    """A tensor in a container; of an image whose array others see, writes will follow."""
    from distspmd.frontend.from_numpy.arrays.links import Alias, is_seen

    first = len(tracer.block.statements)
    found: View = tracer.stored_anew(value, name)
    if isinstance(value, Image) and is_seen(tracer, value.base.container):
        tracer.followed.update(tracer.block.statements[first:])
        called = name or found.container.name
        tracer.aliases.append(Alias(called, found, value.base, None, follows=value.follows))
    return found
