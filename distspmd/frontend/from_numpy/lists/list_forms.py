"""Forms: what an element of a list is made of whose content the run decides.

An element is a number, an array, or a tuple or list of such; a list has one container for each leaf
of the form of its elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.run_types import type_of
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import same

FEW = 8
"""Numbers of several types in a list that have a container each, at most."""


@dataclass(frozen=True)
class Leaf:
    """A number, or an array, that an element of a list is or has.

    Attributes:
        dtype: of it.
        weak: the type of Python that a number has in NumPy's promotion.
        shape: of an array.
        is_mixed: whether some elements have another type in Python, as ``[0, 0.5]`` has.
        texts: of which its numbers say which one an element is; none of numbers.
        is_typed: whether there is a number for each element beside it, of the type that it has.
        is_type: whether it is such a number.
    """

    dtype: DType
    weak: type | None
    shape: tuple[Length, ...] = ()
    is_mixed: bool = False
    texts: tuple[str, ...] = ()
    is_typed: bool = False
    is_type: bool = False


@dataclass(frozen=True)
class Row:
    """A tuple, or a list of a length that is known, that an element is."""

    kind: type
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Rows:
    """A list that an element is, of elements of one form.

    Attributes:
        length: how many elements it has.
        element: the form of each.
    """

    length: int
    element: Form


class RowOfRun(list[Any]):
    """An element that is a list of a :class:`Row`; it is not changed."""


Form = Leaf | Row | Rows
UNKNOWN = Leaf(np.dtype(np.int64), int)
"""What elements are taken for before one is seen: promotion with most types gives these."""


def joined_form(tracer: Tracer, one: Form | None, other: Form) -> Form:
    """The form that elements of two forms have in one list.

    Raises:
        Refusal: there is none.
    """
    if one is None or one == other:
        return other
    if other is UNKNOWN:
        return one
    if isinstance(one, Row) and isinstance(other, Row):
        if one.kind is other.kind and len(one.parts) == len(other.parts):
            pairs = zip(one.parts, other.parts, strict=True)
            return Row(one.kind, tuple(joined_form(tracer, a, b) for a, b in pairs))
    elif isinstance(one, Rows) or isinstance(other, Rows):
        return _joined_rows(tracer, one, other)
    elif isinstance(one, Leaf) and isinstance(other, Leaf):
        alike = len(one.shape) == len(other.shape) and bool(one.texts) == bool(other.texts)
        if alike and all(same(a, b) for a, b in zip(one.shape, other.shape, strict=True)):
            return _joined_leaf(one, other)
    raise Refusal(
        tracer.message(
            "elements of different forms in a list whose content the run decides: numbers, texts, "
            "arrays of one shape, or tuples of as many of them"
        )
    )


def _joined_rows(tracer: Tracer, one: Form, other: Form) -> Form:
    """The form of lists of one length, of which one has elements of one form."""
    parts = [_listed(form) for form in (one, other)]
    if len(parts[0]) != len(parts[1]):
        tracer.refuse(
            "lists of several lengths, or lists and other elements, in a list whose content the "
            "run decides; use lists of one length, or an array"
        )
    pairs = zip(*parts, strict=True)
    return of_parts(tracer, [joined_form(tracer, a, b) for a, b in pairs])


def _listed(form: Form) -> Sequence[Form]:
    """The forms of the elements of a list; none of what is no list."""
    if isinstance(form, Rows):
        return [form.element] * form.length
    return form.parts if isinstance(form, Row) and form.kind is list else ()


def of_parts(tracer: Tracer, parts: Sequence[Form]) -> Form:
    """The form of a list of elements of some forms."""
    first = parts[0] if parts else None
    if first is not None and all(_is_alike(part, first) for part in parts):
        return Rows(len(parts), functools.reduce(lambda a, b: joined_form(tracer, a, b), parts))
    if len(parts) <= FEW:
        return Row(list, tuple(parts))
    return Rows(len(parts), functools.reduce(lambda a, b: joined_form(tracer, a, b), parts))


def _is_alike(one: Form, other: Form) -> bool:
    """Whether two forms are numbers of one type, of Python or of NumPy, or the same."""
    if one == other:
        return True
    if not isinstance(one, Leaf) or not isinstance(other, Leaf) or one.shape:
        return False
    if one.texts and other.texts:
        return True
    plain = [replace(each, weak=None, is_typed=False) for each in (one, other)]
    return plain[0] == plain[1]


def _joined_leaf(one: Leaf, other: Leaf) -> Leaf:
    if one.texts:
        return replace(one, texts=tuple(dict.fromkeys((*one.texts, *other.texts))))
    dtype = np.result_type(one.dtype, other.dtype)
    weak = one.weak if one.weak is other.weak else None
    if one.weak and other.weak and weak is None:
        weak = {"b": bool, "i": int, "f": float, "c": complex}[dtype.kind]
    is_mixed = one.is_mixed or other.is_mixed or one.dtype != other.dtype
    differs = (one.dtype, one.weak) != (other.dtype, other.weak)
    is_typed = not one.shape and (one.is_typed or other.is_typed or differs)
    return Leaf(dtype, weak, one.shape, is_mixed, is_typed=is_typed)


_TYPE = Leaf(np.dtype(np.int64), int, is_type=True)


def leaves(form: Form) -> list[Leaf]:
    """The leaves of a form, in order; behind one that is typed the numbers of its types."""
    if isinstance(form, Leaf):
        return [form, _TYPE] if form.is_typed else [form]
    if isinstance(form, Rows):
        return [replace(f, shape=(form.length, *f.shape)) for f in leaves(form.element)]
    return [leaf for part in form.parts for leaf in leaves(part)]


def value_of_leaf(tracer: Tracer, leaf: Leaf, part: Tensor) -> Any:
    """What the number at a place of a column is to the program; rows and arrays are themselves."""
    if leaf.texts:
        from distspmd.frontend.from_numpy.reader.texts import one_at

        return one_at(leaf.texts, tracer.stored_anew(part, "which"))
    if leaf.shape:
        return part
    return Tensor((), part.dtype, part.element, leaf.weak, is_mixed=leaf.is_mixed)


def element_of(
    form: Form,
    values: list[Any],
    listed: Callable[[Rows, list[Any]], Any],
    of_type: Callable[[Any, Any], Any] = lambda value, kind: replace(value, run_type=kind),
) -> Any:
    """An element of its values, which are taken from the front.

    Args:
        form: of the element.
        values: one for each leaf.
        listed: makes a list of its form and its columns.
        of_type: makes a number of it and of the number of its type.
    """
    if isinstance(form, Leaf):
        found = values.pop(0)
        return of_type(found, values.pop(0)) if form.is_typed else found
    if isinstance(form, Rows):
        own = [values.pop(0) for _ in leaves(form)]
        return listed(form, own)
    made = [element_of(part, values, listed, of_type) for part in form.parts]
    return tuple(made) if form.kind is tuple else RowOfRun(made)


def columns_as(form: Form, own: Form, columns: list[Tensor]) -> list[Tensor]:
    """Columns in another form, which are taken from the front."""
    if isinstance(form, Leaf) and isinstance(own, Leaf):
        found = [columns.pop(0) for _ in leaves(own)]
        if form.is_typed and not own.is_typed:
            kind = type_of(Tensor((), own.dtype, found[0].element, own.weak))
            found.append(Tensor(found[0].shape, INT64, lambda _: kind.element(())))
        return found
    if isinstance(form, Rows) and isinstance(own, Rows):
        return columns_as(form.element, own.element, columns)
    if isinstance(form, Row) and isinstance(own, Row) and len(form.parts) == len(own.parts):
        pairs = zip(form.parts, own.parts, strict=True)
        return [found for one, other in pairs for found in columns_as(one, other, columns)]
    return [columns.pop(0) for _ in leaves(own)]


def stored_count(tracer: Tracer, count: Length, name: str) -> View:
    """The number of elements of a list that is made here; 0 as long as the run does not come here.

    Branches and loops leave lists that they may not have made, whose elements are copied.
    """
    found = tracer.stored_anew(tracer.whole(count), name)
    if tracer.inner:
        with tracer.within(tracer.program.outermost):
            tracer.write(found, tracer.whole(0), is_new=True)
    return found
