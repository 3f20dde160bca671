"""Variables of a function that is read: saved, restored, and compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.tensor_ir.whole_numbers import same

# -- states of the reading ------------------------------------------------------------------------


class Saved:
    """What a trial changes, to be put back."""

    def __init__(self, run: Context) -> None:
        self.variables, self._put_back = dict(run.variables), run.tracer.saved()

    def restore(self, run: Context) -> None:
        """Put it back."""
        run.variables.clear()
        run.variables.update(self.variables)
        self._put_back()


ABSENT = object()


class _Unbound:
    """What a variable is where no statement of the run has bound it."""

    def __repr__(self) -> str:
        return "no value"


UNBOUND = _Unbound()


def readable(name: str) -> str:
    """What a variable is called in messages and names."""
    return re.sub(r"\W+", "_", name).strip("_") or "value"


def changed(first: dict[str, Any], second: dict[str, Any]) -> set[str]:
    """Names of variables that are not the same on two ways."""
    names = first.keys() | second.keys()
    return {n for n in names if not alike(first.get(n, ABSENT), second.get(n, ABSENT))}


def alike(one: object, other: object) -> bool:
    """Whether two values are the same for all that follows."""
    if one is other:
        return True
    if isinstance(one, View) and isinstance(other, View):
        return one.weak is other.weak and see_the_same(one, other)
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return False
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return False
    if any(isinstance(value, str) and type(value) is not str for value in (one, other)):
        return False  # a text with values of the run
    if isinstance(one, tuple | list) and type(one) is type(other) and len(one) == len(other):
        return all(map(alike, one, other))
    try:
        return type(one) is type(other) and bool(one == other)
    except (TypeError, ValueError):
        return False


def see_the_same(one: View, other: View) -> bool:
    """Whether two views have the same elements, as numbers of Python or of NumPy."""
    return (
        one.container is other.container
        and one.place == other.place
        and len(one.shape) == len(other.shape)
        and all(same(a, b) for a, b in zip(one.shape, other.shape, strict=True))
    )


@dataclass
class Undecided:
    """What a variable is that depends on the run in a way that no array can hold.

    Attributes:
        reason: what it may be; said where the variable is read.
    """

    reason: str


@dataclass
class OfPython(Undecided):
    """An object of Python, which regions alone read, and which the program may return.

    Attributes:
        name: by which it is kept while the program runs.
    """

    name: str


@dataclass
class OneOf(Undecided):
    """One of two values, which a function can return.

    Attributes:
        which: not 0 where it is the first.
        values: the two.
    """

    which: sympy.Symbol
    values: tuple[Any, Any]

    def symbols(self) -> list[sympy.Symbol]:
        """Those that say which of the values it is."""
        inner = [s for value in self.values if isinstance(value, OneOf) for s in value.symbols()]
        return [self.which, *inner]


def one_of(name: str, one: object, other: object, why: str) -> Undecided:
    """A variable that is one of two things that have no common form."""
    for value in (one, other):
        if isinstance(value, Undecided):
            return value
    return Undecided(f"{name!r} is {told(one)} or {told(other)} here, {why}")
