"""What loops run over: ranges of symbols, and what is counted or taken side by side."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dace
import sympy

from distspmd.frontend.from_numpy import indexing
from distspmd.frontend.from_numpy.transcript import Refusal, told
from distspmd.frontend.from_numpy.values import Tensor
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    ceil_divide,
    multiply,
    same,
    simplified,
    subtract,
)

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter


def least_of(lengths: Sequence[Whole]) -> Whole:
    first, *others = lengths
    for other in others:
        if not same(first, other):
            first = simplified(sympy.Min(sympy.sympify(first), sympy.sympify(other)))
    return first


@dataclass(frozen=True)
class SymbolicRange:
    """``range(first, end, step)`` where not all are numbers."""

    first: Whole
    end: Whole
    step: Whole

    @property
    def length(self) -> Whole:
        """Number of values, if it is not negative."""
        if isinstance(self.step, int) and self.step < 0:
            return ceil_divide(subtract(self.first, self.end), -self.step)
        return ceil_divide(subtract(self.end, self.first), self.step)


@dataclass(frozen=True)
class Enumerated:
    """``enumerate(values, start)``."""

    values: Any
    start: Whole


@dataclass(frozen=True)
class Zipped:
    """``zip(...)``."""

    values: tuple[Any, ...]


def static_values(interpreter: Interpreter, over: Any) -> Iterator[Any]:
    """The values that are iterated over, if their number is known."""
    tracer = interpreter.tracer
    if isinstance(over, Enumerated):
        for n, value in enumerate(static_values(interpreter, over.values)):
            yield add(over.start, n), value
    elif isinstance(over, Zipped):
        yield from zip(*(static_values(interpreter, v) for v in over.values), strict=False)
    elif isinstance(over, SymbolicRange):
        if not isinstance(over.length, int):
            tracer.refuse(f"a number of values that is not known: {over.length}")
        for n in range(max(0, over.length)):
            yield add(over.first, multiply(n, over.step))
    elif isinstance(over, Tensor):
        if over.ndim == 0 or not isinstance(over.shape[0], int):
            tracer.refuse(f"values of a number that is not known: {told(over)}")
        for n in range(over.shape[0]):
            yield indexing.read(tracer, over, n)
    else:
        try:
            yield from over
        except TypeError:
            tracer.refuse(f"{told(over)} is not iterated over")


def map_ranges(interpreter: Interpreter, node: ast.expr) -> list[tuple[Any, Any, Any]] | None:
    """The ranges of ``dace.map[...]`` or ``distspmd.map[...]``; None for something else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute | ast.Name):
        return None
    try:
        base = interpreter.value(node.value)
    except Refusal:
        return None
    if not (base is dace.map or type(base).__name__ == "ParallelMap"):
        return None
    tracer = interpreter.tracer
    items = interpreter.subscript(node.slice)
    found = []
    for item in items if isinstance(items, tuple) else (items,):
        if not isinstance(item, slice) or item.stop is None:
            tracer.refuse("a map needs ranges: dace.map[0:n, 0:m]")
        found.append(
            tuple(
                default if e is None else tracer.as_whole(e, "the end of a range")
                for e, default in ((item.start, 0), (item.stop, 0), (item.step, 1))
            )
        )
    return found
