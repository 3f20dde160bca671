"""What variables of a NumPy program stand for, beside Python's own objects.

A tensor is a function from indices to the expression of an element, so that nothing is computed
before it is stored, and no view is copied. A view is a tensor whose elements are those of a
container, each at a known place: it can be written through, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Constant, Expression, IndexValue, Load, apply, cast
from distspmd.expressions.operations import DType
from distspmd.frontend.tensor_ir.statements import Container, Index, Length
from distspmd.frontend.tensor_ir.whole_numbers import Whole, int_floor, same, simplified

INT64 = np.dtype(np.int64)
_CARRIED = frozenset(map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))) | {
    *map(np.dtype, ("f2", "f4", "f8", "c8", "c16"))
}


def is_carried(dtype: DType) -> bool:
    """Whether programs have elements of a type; they have none of the other order of bytes."""
    return dtype in _CARRIED


Element = Callable[[tuple[Index, ...]], Expression]


@dataclass(eq=False)
class Tensor:
    """An array, or a number that is not known before the run.

    Attributes:
        shape: its extents.
        dtype: of its elements.
        element: the expression of the element at some indices.
        weak: the type of Python (int, float, complex, bool) that a number has in NumPy's promotion.
        is_on_demand: whether reading it may end the program, so that it is read where it is used.
        mask: where elements are left out: those that a boolean index chose, in reading order.
        is_index: whether no element is negative, so that it may be an index as it is.
        is_mixed: whether it has another type in Python for some elements of a list.
        run_type: of a number of which the run decides the type, which it is.
        is_array: whether it is an array where it has no dimensions, and no number.
    """

    shape: tuple[Length, ...]
    dtype: DType
    element: Element
    weak: type | None = None
    mask: Tensor | None = None
    is_on_demand: bool = False
    is_index: bool = False
    is_mixed: bool = False
    run_type: Tensor | None = None
    is_array: bool = False

    @property
    def python_class(self) -> type:
        """The class that it has in Python: of an array, or of a number."""
        is_array = bool(self.shape) or self.is_array
        return np.ndarray if is_array else self.weak or self.dtype.type

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


MIXED = (
    "an element of a list that has numbers of several types, as [0, 0.5] has: what type it is "
    "depends on the run; write them all in one, 0.0 for 0 say"
)


@dataclass(eq=False)
class Demanded(Tensor):
    """Elements of which the first read adds a check to the program, so that nobody looks at them.

    No variable has the container that they lie in.
    """


@dataclass(eq=False)
class View(Tensor):
    """A tensor whose elements lie in a container.

    Attributes:
        container: which has the elements.
        place: the indices in the container, over ``axis(0)``, ``axis(1)``, ...
        is_merged: whether a place takes division: dimensions of the container are merged.
    """

    container: Container = field(kw_only=True)
    place: tuple[Whole, ...] = field(kw_only=True)
    is_merged: bool = False

    def at(self, index: Sequence[Index]) -> tuple[Index, ...]:
        """The indices in the container of an element."""
        by = {axis(d): i for d, i in enumerate(index)}
        if all(isinstance(i, int | sympy.Basic) for i in index):
            return tuple(
                p if isinstance(p, int) else simplified(p.xreplace(_sympified(by)))
                for p in self.place
            )
        return tuple(_moved(p, by) for p in self.place)

    @property
    def is_repeated(self) -> bool:
        """Whether an element of the container stands at several indices."""
        moving = {s for p in self.place if isinstance(p, sympy.Basic) for s in p.free_symbols}
        return any(n != 1 and axis(d) not in moving for d, n in enumerate(self.shape))

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the container, as it is."""
        return (
            len(self.shape) == len(self.container.shape)
            and all(p == axis(d) for d, p in enumerate(self.place))
            and all(same(a, b) for a, b in zip(self.shape, self.container.shape, strict=True))
        )


def _sympified(by: dict[Any, Any]) -> dict[Any, Any]:
    return {k: sympy.sympify(v) for k, v in by.items()}


def _moved(place: Whole, by: dict[Any, Any]) -> Index:
    """A place where indices are expressions of data."""
    if isinstance(place, int):
        return place
    if place in by:
        there: Index = by[place]
        return there
    free = place.free_symbols & by.keys()
    if not any(not isinstance(by[s], int | sympy.Basic) for s in free):
        return simplified(place.xreplace(_sympified({s: by[s] for s in free})))
    return whole_expression(place, by)


def axis(d: int) -> sympy.Symbol:
    """What stands for the index in dimension ``d`` in places of views."""
    return sympy.Symbol(f"__axis{d}", integer=True)


def view_of(container: Container) -> View:
    """All of a container."""
    places = tuple(axis(d) for d in range(len(container.shape)))
    return make_view(container, container.shape, places)


def make_view(
    container: Container,
    shape: Sequence[Length],
    place: Sequence[Whole],
    *,
    is_merged: bool = False,
    weak: type | None = None,
) -> View:
    """A view of a container."""

    def element(index: tuple[Index, ...]) -> Expression:
        return Load(container, found.at(index), container.dtype)

    found = View(
        tuple(shape),
        container.dtype,
        element,
        weak,
        container=container,
        place=tuple(place),
        is_merged=is_merged,
    )
    return found


def number(value: object, dtype: DType) -> Expression:
    """A number of a type, which it is converted to."""
    return Constant(np.asarray(value).astype(dtype).item(), dtype)


def whole_expression(value: Whole, by: dict[Any, Any] | None = None) -> Expression:
    """An expression of symbols as one of elements.

    Args:
        value: of symbols.
        by: what is put in for some of them.
    """
    if isinstance(value, int):
        return Constant(value, INT64)
    by = by or {}
    if value.is_Integer:
        return Constant(int(value), INT64)
    if value.is_Symbol:
        found = by.get(value, value)
        if isinstance(found, int | sympy.Integer):
            return Constant(int(found), INT64)
        if isinstance(found, sympy.Symbol):
            return IndexValue(((found.name, 1),))
        return whole_expression(found) if isinstance(found, sympy.Basic) else cast(found, INT64)
    if not by:
        plain = _affine(value)
        if plain is not None:
            return plain
    name = _OPERATIONS.get(type(value))
    arguments = [whole_expression(a, by) for a in value.args]
    if name is None:
        raise TypeError(f"{value} is no whole number that can be computed.")
    found = arguments[0]
    for other in arguments[1:]:
        found = apply(name, found, other)
    known: Expression = found
    return known


_OPERATIONS: dict[Any, str] = {
    sympy.Add: "add",
    sympy.Mul: "multiply",
    sympy.Pow: "power",
    sympy.Max: "maximum",
    sympy.Min: "minimum",
    sympy.Mod: "remainder",
    int_floor: "floor_divide",
}


def _affine(value: sympy.Expr) -> IndexValue | None:
    terms, constant = [], 0
    for term in sympy.Add.make_args(sympy.expand(value)):
        factor, rest = term.as_coeff_Mul()
        if not factor.is_Integer:
            return None
        if rest == 1:
            constant += int(factor)
        elif rest.is_Symbol:
            terms.append((rest.name, int(factor)))
        else:
            return None
    return IndexValue(tuple(terms), constant)


def index_expression(index: Index) -> Expression:
    """The value of an index."""
    return whole_expression(index) if isinstance(index, int | sympy.Basic) else index


class OfRun:
    """A value of Python whose content the run decides: a list, a set, a dictionary."""

    def as_tensor(self, tracer: Any) -> Tensor:
        """It as an array, as ``np.array`` makes it."""
        raise NotImplementedError
