"""Expressions as contractions: the letters of indices, and the windows that they run over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from string import ascii_letters
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Argument, Expression, IndexValue, Load, Operation, parts
from distspmd.expressions.operations import DType
from distspmd.frontend.tensor_ir.statements import Length, Window
from distspmd.frontend.tensor_ir.whole_numbers import subtract

LETTER = "__letter_"
"""How symbols begin whose last character is the letter that they are to have."""


def letters_of(names: Sequence[str]) -> dict[str, str]:
    """Letters of symbols: those that they ask for, or free ones."""
    found = {n: n[-1] for n in names if n.startswith(LETTER)}
    free = iter(x for x in ascii_letters if x not in found.values())
    return {n: found.get(n) or next(free) for n in names}


class NoWindow(Exception):
    """A load is no window of a container: it is stored first."""


def window_of(
    load: Load,
    lengths: Mapping[str, Length],
    letters: Mapping[str, str],
    counted: Collection[str] = (),
) -> tuple[str, Window]:
    """The letters of a load, and the window that they run over.

    Args:
        load: at indices.
        lengths: of the indices, by name.
        letters: of the indices, by name.
        counted: indices whose values are computed with: a node counts them in the whole container,
            so their windows begin where it does.

    Raises:
        NoWindow: the elements are no window, or one that begins elsewhere.
    """
    term, first, extents = "", [], []
    for index in load.index:
        if not isinstance(index, int | sympy.Basic):
            raise NoWindow
        own = [s for s in sympy.sympify(index).free_symbols if s.name in lengths]
        if not own:
            term += "()"
            first.append(index)
            extents.append(1)
            continue
        if len(own) > 1:
            raise NoWindow
        (variable,) = own
        rest = subtract(index, variable)
        if isinstance(rest, sympy.Basic) and variable in rest.free_symbols:
            raise NoWindow
        if letters[variable.name] in term or (variable.name in counted and rest != 0):
            raise NoWindow
        term += letters[variable.name]
        first.append(rest)
        extents.append(lengths[variable.name])
    return term, Window(load.array, tuple(first), tuple(extents))


def counted_in(expression: Expression) -> set[str]:
    """Indices whose values an expression computes with."""
    return {v for p in parts(expression) if isinstance(p, IndexValue) for v, _ in p.terms}


def is_product(expression: Expression, count: int) -> bool:
    """Whether a contraction's expression is the product of its two operands."""
    return (
        count == 2
        and isinstance(expression, Operation)
        and expression.name == "multiply"
        and all(
            isinstance(a, Argument) and a.dtype == expression.dtype for a in expression.arguments
        )
        and expression.arguments[0] != expression.arguments[1]
    )


def neutral_element(operation: str, dtype: DType) -> Any:
    """The number that changes no sum, maximum or minimum of a type."""
    if operation == "sum":
        return 0
    if dtype.kind == "f":
        return -np.inf if operation == "max" else np.inf
    info = np.iinfo(dtype) if dtype.kind in "iu" else None
    if info is None:
        return operation == "min"
    return info.min if operation == "max" else info.max
