"""Numbers of which the run decides the type, as of ``best = inf`` that a loop makes a whole number.

Such a number is kept in the type that holds all its types. Beside it there is the number of the
type that it has in Python, as long as it is assigned and chosen; the caller gets it in that type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.transcript import PYTHON_TYPES
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, number
from distspmd.frontend.tensor_ir.statements import Index

TYPES: tuple[tuple[str, bool], ...] = (
    *((dtype.name, True) for dtype in PYTHON_TYPES.values()),
    *(
        (np.dtype(letter).name, False)
        for letter in (*np.typecodes["AllInteger"], "?", "f", "d", "F", "D")
    ),
)
"""Types of numbers, by name, and whether they are Python's; a number of a type is its place."""


def differ(one: Tensor, other: Tensor) -> bool:
    """Whether a number that is one of two has no type before the run."""
    if one.ndim or other.ndim:
        return False
    if one.run_type is not None or other.run_type is not None:
        return True
    if one.dtype.kind != other.dtype.kind:
        return True
    return one.dtype != other.dtype and one.weak is None and other.weak is None


def type_of(value: Tensor) -> Tensor:
    """The number of the type that a number has."""
    if value.run_type is not None:
        return value.run_type
    known = number(TYPES.index((value.dtype.name, value.weak is not None)), INT64)
    return Tensor((), INT64, lambda _: known)


def typed(value: object) -> Any:
    """A number that is kept, not computed with: it may be of any type that the run decides."""
    if isinstance(value, Tensor) and value.is_mixed and value.run_type is not None:
        return replace(value, is_mixed=False)
    return value


def without_mixture(value: object) -> Any:
    """A number where all types that it may have give the same."""
    if isinstance(value, Tensor) and value.is_mixed:
        return Tensor(value.shape, value.dtype, value.element, value.weak)
    return value


def with_whole(value: Tensor, found: Tensor) -> Tensor:
    """A sum, difference or product of a number and a whole one of Python: it keeps its type."""
    kind = type_of(value)

    def element(index: tuple[Index, ...]) -> Expression:
        given = own = kind.element(index)
        for is_python in (True, False):  # truth values become whole numbers
            before, after = (number(TYPES.index((n, is_python)), INT64) for n in ("bool", "int64"))
            own = apply("where", apply("equal", given, before), after, own)
        return own

    return replace(found, is_mixed=True, run_type=Tensor((), INT64, element))


def is_of_types(value: Tensor, kinds: Any) -> Tensor:
    """Whether the type that the run decides is one of some classes, or below one."""
    places = [
        place
        for place, (name, is_python) in enumerate(TYPES)
        if issubclass(_class_of(name, is_python=is_python), kinds)
    ]

    def element(index: tuple[Index, ...]) -> Expression:
        own = type_of(value).element(index)
        found: Expression = number(False, np.dtype(bool))
        for place in places:
            found = apply("logical_or", found, apply("equal", own, number(place, INT64)))
        return found

    return Tensor((), np.dtype(bool), element, bool)


def _class_of(name: str, *, is_python: bool) -> type:
    """The class of a number of a type."""
    dtype = np.dtype(name)
    known = (kind for kind, own in PYTHON_TYPES.items() if is_python and own == dtype)
    return next(known, dtype.type)


def is_truth(value: Tensor, wanted: bool) -> Tensor:
    """Whether a number of which the run decides the type is Python's True, or False."""
    is_bool = is_of_types(value, bool)

    def element(index: tuple[Index, ...]) -> Expression:
        same = apply("equal", value.element(index), number(wanted, value.dtype))
        return apply("logical_and", is_bool.element(index), same)

    return Tensor((), np.dtype(bool), element, bool)


def number_of_type(value: Any) -> Any:
    """The number of the type that a number, or each element of an array, has."""
    if isinstance(value, Tensor):
        found = type_of(value)
        return Tensor(value.shape, INT64, lambda _: found.element(()))
    if isinstance(value, sympy.Basic):
        return TYPES.index(("bool" if value.is_Boolean or value.is_Relational else "int64", True))
    is_numpys = isinstance(value, np.generic | np.ndarray)
    dtype = value.dtype if is_numpys else PYTHON_TYPES[type(value)]
    return TYPES.index((dtype.name, not is_numpys))


def is_joined(value: Tensor, kept: DType) -> bool:
    """Whether a number may have another type than the one that it is kept in."""
    return value.run_type is not None or (not value.ndim and value.dtype != kept)


def choose_type(holds: Tensor, one: Tensor, other: Tensor, found: Tensor) -> Tensor:
    """A number that is one of two where a condition holds, with the type that it has then."""
    if not differ(one, other):
        return found
    types = [type_of(each) for each in (one, other)]

    def element(index: tuple[Index, ...]) -> Expression:
        return apply("where", holds.element(index), *(t.element(index) for t in types))

    found.run_type = Tensor((), INT64, element)
    return found


def type_from(before: object, tensor: Tensor) -> DType:
    """The type of what begins as a whole number of Python, and goes on as a tensor."""
    if tensor.weak is None and isinstance(before, int):
        try:
            np.array(before, dtype=tensor.dtype)
        except OverflowError:
            return np.result_type(tensor.dtype, INT64)
        return np.result_type(tensor.dtype, 0)
    return np.result_type(tensor.dtype, INT64)
