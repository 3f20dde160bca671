"""Views: other shapes and orders of the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.elements import is_one
from distspmd.frontend.from_numpy.arrays.images import moved
from distspmd.frontend.from_numpy.arrays.lengths import can_end
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import shape_text
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, axis, view_of
from distspmd.frontend.tensor_ir.statements import Length, Parameter, Store
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    floor_divide,
    int_floor,
    multiply,
    remainder,
    same,
    subtract,
    symbol,
)


def normal_axis(tracer: Tracer, value: object, ndim: int) -> int:
    """An axis, counted from the first.

    Raises:
        Refusal: there is none such.
    """
    found = tracer.as_whole(value, "an axis")
    if not isinstance(found, int):
        tracer.refuse("an axis has to be known before the run")
    if not -ndim <= found < ndim:
        tracer.refuse(f"axis {found} is out of bounds for array of dimension {ndim}")
    return found % ndim


def transpose(tracer: Tracer, base: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The dimensions in another order; reversed where none is given."""
    order = (
        list(range(base.ndim))[::-1]
        if axes is None
        else [normal_axis(tracer, a, base.ndim) for a in axes]
    )
    if sorted(order) != list(range(base.ndim)):
        tracer.refuse("axes don't match array")
    places: list[Whole] = [0] * base.ndim
    for d, own in enumerate(order):
        places[own] = axis(d)
    return moved(base, [base.shape[o] for o in order], places)


def flip(tracer: Tracer, base: Tensor, axes: Sequence[int]) -> Tensor:
    """The elements in the opposite order along axes."""
    places: list[Whole] = [
        subtract(subtract(base.shape[d], 1), axis(d)) if d in axes else axis(d)
        for d in range(base.ndim)
    ]
    return moved(base, base.shape, places)


def expand_dims(tracer: Tracer, base: Tensor, axes: Sequence[int]) -> Tensor:
    """New dimensions of one element at places of the result."""
    rank = base.ndim + len(axes)
    new = {normal_axis(tracer, a, rank) for a in axes}
    kept = [d for d in range(rank) if d not in new]
    shape: list[Length] = [1] * rank
    for own, d in enumerate(kept):
        shape[d] = base.shape[own]
    return moved(base, shape, [axis(d) for d in kept])


def squeeze(tracer: Tracer, base: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Without dimensions of one element."""
    gone = (
        [d for d, n in enumerate(base.shape) if is_one(n)]
        if axes is None
        else [normal_axis(tracer, a, base.ndim) for a in axes]
    )
    if any(not is_one(base.shape[d]) for d in gone):
        tracer.refuse("cannot select an axis to squeeze out which has size not equal to one")
    kept = [d for d in range(base.ndim) if d not in gone]
    places: list[Whole] = [0] * base.ndim
    for d, own in enumerate(kept):
        places[own] = axis(d)
    return moved(base, [base.shape[d] for d in kept], places)


def size_of(shape: Sequence[Length]) -> Length:
    """Number of elements."""
    found: Length = 1
    for n in shape:
        found = multiply(found, n)
    return found


def reshape(tracer: Tracer, base: Tensor, shape: Sequence[Any]) -> Tensor:
    """The same elements, in reading order, in another shape; one extent may be -1."""
    wanted = [tracer.as_whole(n, "an extent") for n in shape]
    total = size_of(base.shape)
    if any(n == -1 for n in wanted):
        rest = size_of([n for n in wanted if n != -1])
        known = isinstance(total, int) and isinstance(rest, int)
        if known and (rest == 0 or total % rest):
            tracer.refuse(f"cannot reshape array of size {total} into shape {shape_text(wanted)}")
        missing = _quotient(total, rest)
        wanted = [missing if n == -1 else n for n in wanted]
    new = size_of(wanted)
    if isinstance(total, int) and isinstance(new, int) and total != new:
        tracer.refuse(f"cannot reshape array of size {total} into shape {shape_text(wanted)}")
    if tracer.is_decided_by_data(total, new) and not same(total, new) and can_end(tracer):
        what = f"cannot reshape an array into shape {shape_text(wanted)}: its size is another one"
        assert tracer.hooks.ends_if is not None
        tracer.hooks.ends_if(sympy.Ne(sympy.sympify(total), sympy.sympify(new)), "ValueError", what)
    places: list[Whole] = [0] * base.ndim
    merged = False
    if isinstance(new, int) and new == 0:  # no element has a place
        return moved(base, wanted, places)
    groups = _groups(base.shape, wanted)
    for own, out in groups:
        merged |= _group_places(base.shape, wanted, own, out, places)
    if merged and tracer.is_decided_by_data(*base.shape):
        places = [p if isinstance(p, int) else _with_divisors(p) for p in places]
    found = moved(base, wanted, places, is_merged=merged)
    if not isinstance(found, View) or (isinstance(base, View) and _is_viewed(base, groups)):
        return found
    return Tensor(found.shape, found.dtype, found.element)  # NumPy copies the elements


def _is_viewed(base: View, groups: Sequence[tuple[list[int], list[int]]]) -> bool:
    """Whether dimensions that are merged follow each other in memory: NumPy makes a view then."""
    merged = [[d for d in own if not is_one(base.shape[d])] for own, _ in groups]
    if all(len(own) < 2 for own in merged):
        return True
    steps = _steps(base)
    return all(
        same(steps[d], multiply(steps[e], base.shape[e]))
        for own in merged
        for d, e in pairwise(own)
    )


def _steps(view: View) -> list[Whole]:
    """By how many elements of the container a view moves along each of its dimensions."""
    zero = [0] * view.ndim
    first = _offset(view, zero)
    return [
        subtract(_offset(view, [*zero[:d], 1, *zero[d + 1 :]]), first) for d in range(view.ndim)
    ]


def _offset(view: View, index: Sequence[int]) -> Whole:
    offset: Whole = 0
    for place, length in zip(view.at(index), view.container.shape, strict=True):
        assert isinstance(place, int | sympy.Basic), "the indices are numbers"
        offset = add(multiply(offset, length), place)
    return offset


def is_contiguous(view: View) -> bool:
    """Whether the elements of a view follow each other in memory in reading order."""
    return _is_viewed(view, [(list(range(view.ndim)), [0])]) and (
        is_one(size_of(view.shape)) or same(_inner_step(view), 1)
    )


def _inner_step(view: View) -> Whole:
    steps = [s for s, n in zip(_steps(view), view.shape, strict=True) if not is_one(n)]
    return steps[-1]


def _with_divisors(place: sympy.Basic) -> Whole:
    """A place whose divisors, which data decide, are one at least: there may be no elements."""
    found = place.replace(int_floor, lambda a, b: int_floor(a, sympy.Max(1, b)))
    return found.replace(sympy.Mod, lambda a, b: sympy.Mod(a, sympy.Max(1, b)))


def _quotient(total: Length, rest: Length) -> Length:
    if isinstance(total, int) and isinstance(rest, int):
        return total // rest
    found = sympy.cancel(sympy.sympify(total) / sympy.sympify(rest))
    if found.is_polynomial() and not found.atoms(sympy.Rational) - found.atoms(sympy.Integer):
        return int(found) if found.is_Integer else sympy.expand(found)
    return floor_divide(total, rest)


def _groups(old: Sequence[Length], new: Sequence[Length]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of two shapes that have as many elements together, the fewest each."""
    found: list[tuple[list[int], list[int]]] = []
    a, b = 0, 0
    own: list[int] = []
    out: list[int] = []
    left: Length = 1
    right: Length = 1
    while a < len(old) or b < len(new):
        if own and out and same(left, right):
            found.append((own, out))
            own, out, left, right = [], [], 1, 1
            continue
        if not own and a < len(old):
            own.append(a)
            left = multiply(left, old[a])
            a += 1
        elif not out and b < len(new):
            out.append(b)
            right = multiply(right, new[b])
            b += 1
        elif (_less(left, right) or b == len(new)) and a < len(old):
            own.append(a)
            left = multiply(left, old[a])
            a += 1
        elif b < len(new):
            out.append(b)
            right = multiply(right, new[b])
            b += 1
        else:
            own.append(a)
            left = multiply(left, old[a])
            a += 1
    if own or out:
        found.append((own, out))
    return found


def _less(a: Length, b: Length) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    quotient = sympy.cancel(sympy.sympify(b) / sympy.sympify(a))
    return bool(quotient.is_polynomial()) and quotient != 1


def _group_places(
    old: Sequence[Length],
    new: Sequence[Length],
    own: Sequence[int],
    out: Sequence[int],
    places: list[Whole],
) -> bool:
    """Places of a group's dimensions; whether they take division."""
    large = [d for d in own if not is_one(old[d])]
    wide = [d for d in out if not is_one(new[d])]
    if not large:
        return False
    flat: Whole = 0
    for d in wide:
        flat = add(multiply(flat, new[d]), axis(d))
    if len(large) == 1:
        places[large[0]] = flat
        return False
    if len(large) == len(wide) and all(
        same(old[a], new[b]) for a, b in zip(large, wide, strict=True)
    ):
        for a, b in zip(large, wide, strict=True):
            places[a] = axis(b)
        return False
    for place, d in enumerate(large):
        inner = size_of([old[x] for x in large[place + 1 :]])
        value = floor_divide(flat, inner)
        places[d] = value if place == 0 else remainder(value, old[d])
    return True


def copy_merged(tracer: Tracer, tensor: View) -> View:
    """A copy of a view that merges dimensions, by loops over the dimensions that it merges."""
    shape = tensor.shape
    if tracer.is_decided_by_data(*shape, *tensor.place):
        return tracer.stored_anew(tensor, tracer.target or "reshaped")
    container = tracer.container(tracer.target or "reshaped", shape, tensor.dtype)
    target = view_of(container)
    source = tensor.container
    back = _inverse(tensor)
    if back is None:
        tracer.write(target, tensor)
        return target
    parameters = [Parameter(f"__i{d}", 0, n) for d, n in enumerate(source.shape)]
    index = tuple(symbol(p.name) for p in parameters)
    by = {axis(d): i for d, i in enumerate(index)}
    place = tuple(p if isinstance(p, int) else add(0, p.xreplace(by)) for p in back)
    whole = view_of(source)
    tracer.kernel([Store(container, place, whole.element(index))], parameters, container.name)
    return target


def _inverse(tensor: View) -> list[Whole] | None:
    """Where the elements of a whole container are in a view that reshapes it; None: unknown."""
    source = tensor.container.shape
    if not same(size_of(source), size_of(tensor.shape)):
        return None
    groups = _groups(source, tensor.shape)
    expected: list[Whole] = [0] * len(source)
    back: list[Whole] = [0] * tensor.ndim
    for own, out in groups:
        _group_places(source, tensor.shape, own, out, expected)
        if _group_places(tensor.shape, source, out, own, back):
            return None
    if any(not _same_place(a, b) for a, b in zip(expected, tensor.place, strict=True)):
        return None
    return back


def _same_place(a: Whole, b: Whole) -> bool:
    return bool(sympy.sympify(a) == sympy.sympify(b)) or same(a, b)


def broadcast_to(tracer: Tracer, base: Tensor, shape: Sequence[Length]) -> Tensor:
    """A tensor in a larger shape; it is not written through."""
    found = tracer.broadcast(base, tuple(shape))
    if not isinstance(base, View) or base.mask is not None:
        return found
    lead = len(found.shape) - base.ndim
    places: list[Whole] = [
        axis(lead + d) if same(n, found.shape[lead + d]) else 0 for d, n in enumerate(base.shape)
    ]
    return moved(base, found.shape, places)
