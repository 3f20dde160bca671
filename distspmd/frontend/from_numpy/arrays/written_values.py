"""What was written to elements of index arrays before: ``i = np.arange(n); i += 1; a[i] = ...``.

So arrays of indices that follow their places, as those of ``np.arange`` and ``np.indices`` do,
index as slices would, although the program keeps them in memory, and changes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy

from distspmd.expressions.ir import (
    Expression,
    Load,
    replace_leaves,
)
from distspmd.frontend.from_numpy.arrays.elements import by_formula, substitute, whole_operations
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import whole_expression
from distspmd.frontend.tensor_ir.statements import Index, Kernel, Parameter, Statement, Store
from distspmd.frontend.tensor_ir.whole_numbers import (
    Bounds,
    Whole,
    add,
    is_at_least,
    multiply,
    remainder,
    subtract,
    symbol,
)

_MOST = 64
"""Statements that are looked back, at most."""


def whole_of(tracer: Tracer, expression: Expression, bounds: Bounds) -> Whole | None:
    """The whole number of symbols that an expression is, also by what was written before.

    Args:
        tracer: knows tables, and what the block that is being written has so far.
        expression: of symbols.
        bounds: of the symbols.

    Returns:
        None where data decide it, or something outside of the block.
    """
    return whole_operations(
        _resolved(tracer, expression, tracer.program.block.statements[-_MOST:], bounds)
    )


def line_of(numbers: object) -> tuple[int, int] | None:
    """The first and the step of whole numbers in equal steps, ``[3, 5, 7]``; None of others."""
    found = np.asarray(numbers)
    if found.ndim != 1 or len(found) < 2 or found.dtype.kind not in "iu":
        return None
    first, step = int(found[0]), int(found[1]) - int(found[0])
    if not step or not np.array_equal(found, first + step * np.arange(len(found))):
        return None
    return first, step


def _in_line(tracer: Tracer, load: Load) -> Expression | None:
    """What an element of a table is that has numbers in equal steps."""
    values = tracer.known.tables.get(load.array)
    line = None if values is None else line_of(values)
    length = None
    if line is None and values is not None and (around := line_around(values)):
        line, length = around
    if line is None:
        return None
    tracer.known.relied_on.add(load.array)
    first, step = line
    found = add(first, multiply(step, load.index[0]))
    return whole_expression(found if length is None else remainder(found, length))


def line_around(numbers: object) -> tuple[tuple[int, int], int] | None:
    """First, step and length of a line that goes around once, ``[2, 3, 0, 1]``; None of others."""
    found = np.asarray(numbers)
    if found.ndim != 1 or len(found) < 2 or found.dtype.kind not in "iu":
        return None
    steps = np.diff(found.astype(np.int64))
    (jumps,) = np.nonzero(steps != np.median(steps)) if len(steps) > 2 else (np.arange(1),)
    if len(jumps) != 1:
        return None
    step = int(steps[jumps[0] - 1])  # any other one
    first, length = int(found[0]), abs(int(steps[jumps[0]]) - step)
    around = length > 0 and np.array_equal(found, (first + step * np.arange(len(found))) % length)
    return ((first, step), length) if around else None


def _resolved(
    tracer: Tracer, expression: Expression, before: Sequence[Statement], bounds: Bounds
) -> Expression:
    """An expression with what its whole numbers hold behind some statements, if that is known."""

    def resolved(leaf: Expression) -> Expression:
        if not isinstance(leaf, Load) or leaf.dtype.kind not in "iu":
            return leaf
        if not all(isinstance(i, int | sympy.Basic) for i in leaf.index):
            return leaf
        known = _in_line(tracer, leaf) or by_formula(tracer, leaf)
        return known or _written(tracer, leaf, before, bounds)

    return replace_leaves(expression, resolved)


def _written(tracer: Tracer, load: Load, before: Sequence[Statement], bounds: Bounds) -> Expression:
    """What an element holds behind some statements; the element itself where that is not known."""
    for number in range(len(before) - 1, -1, -1):
        statement = before[number]
        inside = {c for inner in statement.blocks() for c in inner.containers()}
        if load.array in inside:
            return load
        if load.array not in {*statement.writes()}:
            continue
        if not isinstance(statement, Kernel) or len(statement.stores) != 1:
            return load
        (store,) = statement.stores
        by = None if store.conflict else _iteration(load, store, statement.parameters, bounds)
        if by is None:
            return load
        if not isinstance(by, bool):
            return _resolved(tracer, substitute(store.value, by), before[:number], bounds)
    return load


def _iteration(
    load: Load, store: Store, parameters: Sequence[Parameter], bounds: Bounds
) -> dict[sympy.Symbol, Index] | bool | None:
    """What the parameters are where an element is written; False if it is not; None: not known."""
    by: dict[sympy.Symbol, Index] = {}
    own = {p.name: p for p in parameters}
    for read, written in zip(load.index, store.index, strict=True):
        if not isinstance(written, int | sympy.Basic):
            return None
        names = [s for s in sympy.sympify(written).free_symbols if s.name in own]
        difference = subtract(read, written)
        if not names:
            if difference != 0:
                return False if isinstance(difference, int) else None
            continue
        (name, *others) = names
        shift = subtract(written, name)
        if others or name in sympy.sympify(shift).free_symbols or own[name.name].step != 1:
            return None
        place, parameter = subtract(read, shift), own[name.name]
        below, above = subtract(place, parameter.first), subtract(parameter.end, place)
        if isinstance(below, int) and isinstance(above, int) and (below < 0 or above < 1):
            return False
        if not (is_at_least(below, 0, bounds) and is_at_least(above, 1, bounds)):
            return None
        by[symbol(name.name)] = place
    return by if {s.name for s in by} == own.keys() else None
