"""Subscripts as in NumPy: slices of any steps, new axes, ellipses, masks, and arrays of indices."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
import sympy
from dace import symbolic

from distspmd.expressions.ir import Expression, Load, apply, cast
from distspmd.frontend.from_numpy.arrays.arithmetic import choose, same_mask
from distspmd.frontend.from_numpy.arrays.contractions import neutral_element
from distspmd.frontend.from_numpy.arrays.elements import is_empty, is_one
from distspmd.frontend.from_numpy.arrays.images import at, moved
from distspmd.frontend.from_numpy.arrays.lengths import with_capacity
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex, joined, to_be_written
from distspmd.frontend.from_numpy.arrays.subscripts import Axis, Masked, Picked, parse_subscript
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import line_of_error, shape_text, told
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    axis,
    index_expression,
    number,
    whole_expression,
)
from distspmd.frontend.tensor_ir.statements import (
    Container,
    Index,
    Length,
    Library,
    Parameter,
    Store,
)
from distspmd.frontend.tensor_ir.whole_numbers import Whole, add, multiply, same, text
from distspmd.nodes.scatter import Scatter


def read(tracer: Tracer, base: Tensor, items: object) -> Tensor:
    """``base[items]``."""
    if isinstance(base, RealOrComplex):
        return joined([base], read(tracer, base.in_complex, items))
    if (rows := _along_rows(tracer, base, items)) is not None:
        return rows
    base, items = _with_row(tracer, tracer.chosen(base), items)
    found = parse_subscript(tracer, base.shape, items)
    if any(isinstance(x, Masked) for x in found):
        return _read_masked(tracer, base, found)
    if any(isinstance(x, Picked) for x in found):
        return _gather(tracer, base, found)
    return _basic(base, found)


def _along_rows(tracer: Tracer, base: Tensor, items: object) -> Tensor | None:
    """``base[:, columns]`` of the rows that a mask chooses: these stay where they are.

    None where it is no such index.
    """
    mask = base.mask
    if mask is None or mask.ndim >= base.ndim or not isinstance(items, tuple) or len(items) < 2:
        return None
    first, *rest = items
    is_all = isinstance(first, slice) and first == slice(None)
    if not is_all or any(_may_be_mask(item) for item in rest):
        return None
    picks = [place for place, item in enumerate(rest) if not isinstance(item, slice)]
    if picks and picks[-1] - picks[0] >= len(
        picks
    ):  # slices between them: their dimension is first
        return None
    whole = Tensor(base.shape, base.dtype, base.element)
    found = read(tracer, whole, (*[slice(None)] * mask.ndim, *rest))
    return Tensor(found.shape, found.dtype, found.element, None, mask)


def _may_be_mask(item: object) -> bool:
    if isinstance(item, int | np.integer | slice) and not isinstance(item, bool):
        return False
    if isinstance(item, list | np.ndarray):
        return np.asarray(item).dtype.kind != "i"
    return not (isinstance(item, Tensor) and item.dtype.kind in "iu" and item.mask is None)


def _with_row(tracer: Tracer, base: Any, items: object) -> tuple[Any, Any]:
    """``base[truth]`` as ``base[np.newaxis][[truth]]``: one truth value is a mask of one row."""
    first, *rest = items if isinstance(items, tuple) and items else (items,)
    is_truth = isinstance(first, bool | np.bool_) or (
        isinstance(first, Tensor) and not first.ndim and first.dtype.kind == "b"
    )
    if not is_truth:
        return base, items
    row = _basic(base, parse_subscript(tracer, base.shape, None))
    truth = tracer.tensor(first)
    mask = Tensor((1,), np.dtype(bool), lambda _: truth.element(()))
    return row, (mask, *rest)


def part_at(tracer: Tracer, array: Tensor, place: Index) -> Tensor:
    """What iteration gives of an array: a row, or a number, which later writes do not reach.

    Of a table that the program relies on it is an element of the table: nobody writes that.
    """
    found = read(tracer, array, place)
    if isinstance(found, View) and not found.ndim:
        if found.container not in tracer.known.tables:
            return Tensor((), found.dtype, found.element, found.weak)
        tracer.known.relied_on.add(found.container)
    return found


def write(tracer: Tracer, base: Any, items: Any, value: Any) -> None:
    """``base[items] = value``."""
    base, value = to_be_written(tracer, base, value)
    if not isinstance(base, View):
        tracer.refuse(f"{told(base)} cannot be assigned to")
    base, items = _with_row(tracer, base, items)
    found = parse_subscript(tracer, base.shape, items)
    if any(isinstance(x, Masked) for x in found):
        _write_masked(tracer, base, found, value)
    elif any(isinstance(x, Picked) for x in found):
        _scatter(tracer, base, found, _array_of(tracer, value), None)
    else:
        target = _basic(base, found)
        assert isinstance(target, View)
        tracer.assign(target, _array_of(tracer, value))


def _array_of(tracer: Tracer, value: object) -> Tensor:
    """A value that is assigned, in which elements that a mask chooses are an array."""
    return tracer.chosen(tracer.tensor(value))


def accumulate(tracer: Tracer, base: object, items: object, value: object, operation: str) -> None:
    """``np.add.at(base, items, value)`` and its like: an index that comes twice counts twice."""
    if not isinstance(base, View):
        tracer.refuse(f"{told(base)} cannot be assigned to")
    found = parse_subscript(tracer, base.shape, items)
    if any(isinstance(x, Masked) for x in found):
        found = _as_picked(tracer, found)
    if any(isinstance(x, Picked) for x in found):
        _scatter(tracer, base, found, _array_of(tracer, value), operation)
        return
    target = _basic(base, found)
    assert isinstance(target, View)
    tensor = tracer.stored(tracer.broadcast(_array_of(tracer, value), target.shape))
    tracer.write(target, tensor, operation)


# -- slices ---------------------------------------------------------------------------------------


def _basic(base: Tensor, found: Sequence[Any]) -> Tensor:
    shape: list[Length] = []
    places: list[Whole] = []
    for item in found:
        if item is None:
            shape.append(1)
        elif item.length is None:
            places.append(item.first)
        else:
            places.append(add(item.first, multiply(item.step, axis(len(shape)))))
            shape.append(item.length)
    return moved(base, shape, places)


# -- arrays of indices ----------------------------------------------------------------------------


def _advanced(
    tracer: Tracer, base: View, found: Sequence[Any]
) -> tuple[tuple[Length, ...], list[Any]]:
    """The shape of the result, and for each dimension of the base a function of the index."""
    picked = [(n, x) for n, x in enumerate(found) if isinstance(x, Picked)]
    common = tracer.broadcast_shape([x.given.shape for _, x in picked])
    numbers = [
        n
        for n, x in enumerate(found)
        if isinstance(x, Picked) or (isinstance(x, Axis) and x.length is None)
    ]
    together = numbers == list(range(numbers[0], numbers[-1] + 1))
    shape: list[Length] = []
    begin = -1
    if not together:
        begin = 0
        shape += common
    functions: list[Any] = []
    for item in found:
        if item is None:
            shape.append(1)
            continue
        if isinstance(item, Axis) and item.length is not None:
            d = len(shape)
            shape.append(item.length)
            functions.append(("axis", d, item))
            continue
        if together and begin < 0:
            begin = len(shape)
            shape += common
        functions.append(("one", item.first) if isinstance(item, Axis) else ("picked", item))
    places: list[Any] = []
    for function in functions:
        if function[0] == "axis":
            _, d, item = function
            places.append(add(item.first, multiply(item.step, axis(d))))
        elif function[0] == "one":
            places.append(function[1])
        else:
            places.append((function[1].spread(tracer, common), begin, len(common)))
    return tuple(shape), places


def _gathered_index(places: Sequence[Any], index: Sequence[Index]) -> tuple[Index, ...]:
    result: list[Index] = []
    for place in places:
        if isinstance(place, tuple):
            indices, begin, count = place
            result.append(indices.at(tuple(index[begin : begin + count])))
        else:
            result += at([place], index)
    return tuple(result)


def _narrowed(base: Tensor, found: Sequence[Any]) -> tuple[Tensor, list[Any]]:
    """The part of a base that numbers and slices leave, and what then becomes of its dimensions."""
    kept: list[Any] = []
    part: list[Any] = []
    d, is_part = 0, False
    for item in found:
        if item is None:
            kept.append(None)
            continue
        length = base.shape[d]
        d += 1
        if isinstance(item, Picked):
            part.append(Axis(0, 1, length))
            kept.append(item)
            continue
        is_all = item.length is not None and same(item.length, length) and item.step == 1
        is_part |= not is_all and not is_one(length)
        part.append(item if item.length is not None else Axis(item.first, 1, 1))
        kept.append(Axis(0, 1, item.length))
    return (_basic(base, part), kept) if is_part else (base, list(found))


def _is_plain(base: Tensor) -> TypeGuard[View]:
    """Whether a tensor is all of a container, so that indices are those of the container."""
    return isinstance(base, View) and base.is_whole and not base.container.is_scalar


def _gather(tracer: Tracer, base: Tensor, found: Sequence[Any]) -> Tensor:
    base, found = _narrowed(base, found)
    plain = base if _is_plain(base) else tracer.stored_anew(base, "base")
    shape, places = _advanced(tracer, plain, found)
    gathered = Tensor(
        shape, base.dtype, lambda index: plain.element(_gathered_index(places, index))
    )
    return tracer.stored_anew(gathered, "gathered")


def _scatter(
    tracer: Tracer, base: View, found: Sequence[Any], value: Tensor, operation: str | None
) -> None:
    narrow, found = _narrowed(base, found)
    assert isinstance(narrow, View), "a part of a view is one"
    if _is_plain(narrow):
        _scatter_plain(tracer, narrow, found, value, operation)
        return
    copied = tracer.stored_anew(narrow, "part")  # has room for all that it can be
    _scatter_plain(tracer, copied, found, value, operation)
    tracer.write(narrow, copied)


def _scatter_plain(
    tracer: Tracer, base: View, found: Sequence[Any], value: Tensor, operation: str | None
) -> None:
    """Write to places of a tensor whose indices are those of its container."""
    shape, places = _advanced(tracer, base, found)
    parameters, index = tracer.parameters(shape)
    if is_empty(parameters):
        return
    if isinstance(value, View) and value.ndim and not value.is_whole:
        value = tracer.stored_anew(value, "values")
    given, value = value, tracer.broadcast(value, shape)
    expression = value.element(index)
    if tracer.is_decided_by_data(*shape):
        _scatter_some(tracer, base, (shape, places), value, operation)
        return
    if any(isinstance(part, Load) and part.array is base.container for part in _loads(expression)):
        given = value = tracer.stored_anew(value, "before")
        expression = value.element(index)
    is_apart = _are_apart(places, index, parameters)
    if not is_apart and _is_owned(tracer, base, found, operation):
        _scatter_by_owners(tracer, base, places, (shape, given), operation)
        return
    place = _gathered_index(places, index)
    store = Store(base.container, place, cast(expression, base.dtype), operation)
    if operation is None and not is_apart:
        tracer.ordered_kernel([store], parameters, base.container.name)
    else:
        tracer.kernel([store], parameters, base.container.name)


def _are_apart(
    places: Sequence[Any], at: tuple[Index, ...], parameters: Sequence[Parameter]
) -> bool:
    """Whether each iteration writes an element of its own: each parameter alone moves an index."""
    names = {p.name for p in parameters}
    alone = set()
    known = [p for p in places if not (isinstance(p, tuple) and p[0].check)]
    for index in _gathered_index(known, at):
        if not isinstance(index, sympy.Basic):
            continue
        own = {s for s in index.free_symbols if s.name in names}
        if len(own) == 1 and (step := sympy.diff(index, *own)).is_Integer and step:
            alone |= {s.name for s in own}
    return alone == names


def _is_owned(tracer: Tracer, base: View, found: Sequence[Any], operation: str | None) -> bool:
    """Whether each place is written by who holds it, and not by who has the index.

    Sums at fewer places than there are indices are formed by each rank of its own indices.
    """
    is_alone = tracer.map.parallel or tracer.map.straight is not None or tracer.guarded
    if is_alone or operation not in (None, "add") or any(x is None for x in found):
        return False
    if operation is None:
        return True
    pairs = [(base.shape[d], x) for d, x in enumerate(found) if isinstance(x, Picked)]
    room, count = [n for n, _ in pairs], [n for _, x in pairs for n in x.given.shape]
    is_known = all(isinstance(n, int) for n in (*room, *count))
    return is_known and base.dtype.kind in "iufc" and math.prod(room) >= math.prod(count)


def _array_of_places(
    tracer: Tracer, picked: Picked, shape: tuple[Length, ...], base: Container
) -> View:
    """The indices of a dimension in a container, as they are given: who writes checks them."""
    given = picked.given
    if picked.check is None and not isinstance(given, View):
        known = given
        given = Tensor(shape, INT64, lambda index: index_expression(Picked(known).at(index)))
    if isinstance(given, View) and _fills(given, shape) and given.container is not base:
        return given
    return tracer.stored_anew(given, "places")


def _fills(tensor: Tensor, shape: Sequence[Length]) -> bool:
    """Whether a tensor is all of a container of a shape."""
    return (
        _is_plain(tensor)
        and tensor.ndim == len(shape)
        and all(same(a, b) for a, b in zip(tensor.shape, shape, strict=True))
    )


def _scatter_by_owners(
    tracer: Tracer,
    base: View,
    places: Sequence[Any],
    values: tuple[Sequence[Length], Tensor],
    operation: str | None,
) -> None:
    """Write to places that data choose by a node of its own, which is split as the array is.

    Args:
        tracer: adds the node.
        base: all of a container.
        places: what becomes of each dimension: all of it, or an array of indices.
        values: the shape of the places, and what they get.
        operation: what combines a value with what is there.
    """
    shape, value = values
    picked = [d for d, place in enumerate(places) if isinstance(place, tuple)]
    arrays, begins, counts = zip(*(places[d] for d in picked), strict=True)
    begin, end = begins[0], begins[0] + counts[0]
    common = tuple(shape[begin:end])
    indices = [_array_of_places(tracer, own, common, base.container) for own in arrays]
    room = [base.shape[d] for d in picked]
    line = line_of_error(tracer, "IndexError") if any(own.check for own in arrays) else 0
    rest = [place for place in places if not isinstance(place, tuple)]
    is_one = [isinstance(place, int) for place in rest]  # a number in the index
    if value.ndim:
        whole = tracer.broadcast(value, shape)

        def element(index: tuple[Index, ...]) -> Expression:
            own, others = index[: end - begin], index[end - begin :]
            kept = [i for i, one in zip(others, is_one, strict=True) if not one]
            return cast(whole.element((*kept[:begin], *own, *kept[begin:])), base.dtype)

        lengths = iter((*shape[:begin], *shape[end:]))
        extents = [1 if one else next(lengths) for one in is_one]
        laid_out = Tensor((*common, *extents), base.dtype, element)
    else:
        laid_out = Tensor((), base.dtype, lambda _: cast(value.element(()), base.dtype))
    is_laid_out = value.dtype == base.dtype and begin == 0 and _fills(value, shape)
    is_kept = is_laid_out and not any(is_one)
    stored = value if is_kept else tracer.stored_anew(laid_out, "values")
    assert isinstance(stored, View)
    name, combine = base.container.name, operation or ""
    inputs = {"_base": base.container, "_value": stored.container}
    inputs |= {f"_in{n}": array.container for n, array in enumerate(indices)}

    def in_dace() -> list[Any]:
        return [symbolic.pystr_to_symbolic(text(n)) for n in room]

    tracer.add(
        Library(
            lambda: Scatter(name, picked, combine, in_dace(), line, one_value=not value.ndim),
            inputs,
            {"_out": base.container},
            operations=("checked_index",),
        )
    )


def _scatter_some(
    tracer: Tracer,
    base: View,
    chosen_: tuple[tuple[Length, ...], list[Any]],
    value: Tensor,
    operation: str | None,
) -> None:
    """Write to as many places as data decide: of all that could be, the others change nothing."""
    shape, places = chosen_
    room = [tracer.capacity(n) for n in shape]
    whole: Tensor = with_capacity(value, room, tracer.known.bounds)
    parameters, index = tracer.parameters(room)
    place = _gathered_index(places, index)
    counted = [(d, n) for d, (n, most) in enumerate(zip(shape, room, strict=True)) if n is not most]

    def is_inside(index: tuple[Index, ...]) -> Expression:
        tests = [apply("less", index_expression(index[d]), whole_expression(n)) for d, n in counted]
        return functools.reduce(lambda a, b: apply("logical_and", a, b), tests)

    there = tracer.stored_anew(Tensor(tuple(room), np.dtype(bool), is_inside)).element(index)
    whole = tracer.stored_anew(whole, "values")
    new = cast(whole.element(index), base.dtype)
    if operation is None:
        old = Load(base.container, place, base.dtype)
        store = Store(base.container, place, apply("where", there, new, old))
        tracer.ordered_kernel([store], parameters, base.container.name)
        return
    names = {"add": "sum", "maximum": "max", "minimum": "min"}
    neutral = 1 if operation == "multiply" else neutral_element(names[operation], base.dtype)
    nothing = number(neutral, base.dtype)
    store = Store(base.container, place, apply("where", there, new, nothing), operation)
    tracer.kernel([store], parameters, base.container.name)


def _loads(expression: Expression) -> list[Expression]:
    from distspmd.expressions.ir import parts

    return parts(expression)


# -- masks ----------------------------------------------------------------------------------------


def _split_mask(tracer: Tracer, base: Tensor, found: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The part that the other indices choose, and the mask in its shape."""
    masks = [x for x in found if isinstance(x, Masked)]
    if len(masks) > 1 or any(isinstance(x, Picked) for x in found):
        tracer.refuse("one mask in an index at most, and no arrays of indices beside it")
    mask = masks[0].mask
    others: list[Any] = []
    d, begin = 0, 0
    out = 0
    for item in found:
        if isinstance(item, Masked):
            begin = out
            for n in base.shape[d : d + mask.ndim]:
                others.append(Axis(0, 1, n))
                out += 1
            d += mask.ndim
            continue
        others.append(item)
        if item is None:
            out += 1
            continue
        out += item.length is not None
        d += 1
    part = _basic(base, others)
    count = mask.ndim

    def element(index: tuple[Index, ...]) -> Expression:
        return mask.element(tuple(index[begin : begin + count]))

    return part, Tensor(part.shape, mask.dtype, element)


def _stays(found: Sequence[Any]) -> bool:
    """Whether one mask chooses, of all dimensions that are left or of the first ones."""
    masks = [x.mask for x in found if isinstance(x, Masked)]
    if len(masks) > 1 or any(isinstance(x, Picked) for x in found):
        return False
    others = sum(
        item is None or (isinstance(item, Axis) and item.length is not None) for item in found
    )
    return not others or isinstance(found[0], Masked)


def _as_picked(tracer: Tracer, found: Sequence[Any]) -> list[Any]:
    """Masks as the indices of their true elements."""
    from distspmd.frontend.from_numpy.arrays.choosing import true_indices

    result: list[Any] = []
    for item in found:
        if isinstance(item, Masked):
            result += [Picked(indices) for indices in true_indices(tracer, item.mask)]
        else:
            result.append(item)
    return result


def _read_masked(tracer: Tracer, base: Tensor, found: Sequence[Any]) -> Tensor:
    if not _stays(found):
        return _gather(tracer, base, _as_picked(tracer, found))
    part, mask = _split_mask(tracer, base, found)
    (own,) = (x.mask for x in found if isinstance(x, Masked))
    if part.ndim != own.ndim:
        mask = own
    return Tensor(part.shape, part.dtype, part.element, None, mask)


def _write_masked(tracer: Tracer, base: View, found: Sequence[Any], value: object) -> None:
    from distspmd.frontend.from_numpy.arrays.choosing import ranked

    if not _stays(found):
        _scatter(tracer, base, _as_picked(tracer, found), _array_of(tracer, value), None)
        return
    part, mask = _split_mask(tracer, base, found)
    assert isinstance(part, View)
    tensor = tracer.tensor(value)
    (own,) = (x.mask for x in found if isinstance(x, Masked))
    if tensor.mask is not None and any(same_mask(tracer, tensor.mask, m) for m in (mask, own)):
        tensor = Tensor(tensor.shape, tensor.dtype, tensor.element)
    else:
        tensor = _array_of(tracer, tensor)
        rest = part.ndim - own.ndim
        if tensor.ndim == rest + 1 and not is_one(tensor.shape[0]):
            tensor = ranked(tracer, own, tensor)
        elif tensor.ndim > rest and not all(is_one(n) for n in tensor.shape[: tensor.ndim - rest]):
            tracer.refuse(
                f"an array of the shape {shape_text(tensor.shape)} is assigned to the elements "
                "that a mask chooses, which are one dimension"
            )
    others = number(0, part.dtype) if _is_blank(tracer, part.container) else None
    kept = part if others is None else Tensor(part.shape, part.dtype, lambda _: others)
    tracer.assign(part, choose(tracer, mask, tensor, kept, part.dtype))


def _is_blank(tracer: Tracer, container: Container) -> bool:
    """Whether any elements may be in a container: nothing has written it since it was made."""
    block = tracer.program.blank.pop(container, None)
    return block is tracer.program.block and container not in {*block.containers()}
