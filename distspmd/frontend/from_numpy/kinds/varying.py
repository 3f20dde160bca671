"""Arrays that each iteration of a loop makes longer or shorter: ``order = order[places]``.

The loop carries a container that has room for the first one, and the length as a symbol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.expressions.ir import cast
from distspmd.frontend.from_numpy.arrays.choosing import chosen
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, axis, make_view
from distspmd.frontend.tensor_ir.statements import SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import same, symbol


class ReadLoopAgain(Exception):
    """A loop is read again, with another kind of a variable that it carries."""

    def __init__(self, name: str, kind: Any) -> None:
        super().__init__(name)
        self.name, self.kind = name, kind


@dataclass(frozen=True)
class Varying:
    """The kind of an array of which each iteration decides how long it is.

    Attributes:
        dimensions: along which it has other lengths.
        dtype: of its elements.
    """

    dimensions: frozenset[int]
    dtype: Any


def varying_place(tracer: Tracer, name: str, before: Tensor, kind: Varying) -> View:
    """A container for an array of which each iteration decides how long it is."""
    if before.mask is not None:
        before = chosen(tracer, before)
    typed = Tensor(before.shape, kind.dtype, lambda i: cast(before.element(i), kind.dtype))
    stored = tracer.stored_anew(typed, name)
    shape = list(stored.shape)
    for d in kind.dimensions:
        length = tracer.unique(f"{name}_length")
        tracer.known.bounds[length] = (None, None)
        tracer.known.capacities[symbol(length)] = stored.container.shape[d]
        tracer.add(SetSymbol(length, sympy.sympify(shape[d]), INT64))
        shape[d] = symbol(length)
    return make_view(stored.container, shape, [axis(d) for d in range(stored.ndim)])


def next_varying(tracer: Tracer, name: str, place: View, now: Tensor, kind: Varying) -> Tensor:
    """The next value of an array of which each iteration decides how long it is.

    Raises:
        ReadLoopAgain: it varies along another dimension, or has another type.
        CannotRoll: it may become longer than it was before the loop.
    """
    dtype = np.result_type(now.dtype, kind.dtype)
    pairs = list(enumerate(zip(now.shape, place.shape, strict=True)))
    differ = frozenset(d for d, (a, b) in pairs if not same(a, b)) | kind.dimensions
    if differ != kind.dimensions or dtype != kind.dtype:
        raise ReadLoopAgain(name, Varying(differ, dtype))
    for d in kind.dimensions:
        most, room = tracer.capacity(now.shape[d]), place.container.shape[d]
        fits = most <= room if isinstance(most, int) and isinstance(room, int) else same(most, room)
        if not fits:
            raise CannotRoll(f"{name!r} becomes longer in the loop")
    return now


def moves_of(place: View, now: Tensor, kind: Varying) -> list[tuple[Any, Any]]:
    """What a loop moves at the end of an iteration: the elements, and the lengths."""
    target = make_view(place.container, now.shape, [axis(d) for d in range(place.ndim)])
    lengths = [(place.shape[d], now.shape[d]) for d in sorted(kind.dimensions)]
    return [(target, now), *lengths]


def refuse_shape(tracer: Tracer, name: str, place: View, now: Tensor) -> NoReturn:
    """Say that an array has another shape after an iteration.

    Raises:
        ReadLoopAgain: data decide its lengths, which the loop can carry.
        CannotRoll: it cannot carry them.
    """
    if now.ndim == place.ndim and not tracer.map.own:
        pairs = enumerate(zip(now.shape, place.shape, strict=True))
        differ = frozenset(d for d, (a, b) in pairs if not same(a, b))
        if tracer.is_decided_by_data(*(now.shape[d] for d in differ)):
            raise ReadLoopAgain(name, Varying(differ, np.result_type(now.dtype, place.dtype)))
    raise CannotRoll(f"{name!r} changes its shape in the loop")
