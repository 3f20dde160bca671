"""Variables that the run binds at times: by a condition, or in some iterations of a loop.

In the other iterations they are what they were: ``for i in range(n): if x[i] > 0: k = i`` leaves
the last such ``i``. So the loop carries them, and a flag that says whether they are bound. Where
the syntax shows that no statement reads a variable unbound, there is no flag. The same loops carry
what is None at first, with a flag that says whether it still is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.kinds import has_data, is_whole
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, told
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.absence import (
    may_be_absent,
    may_be_none,
    may_be_unbound,
    none_or,
    unbound_or,
    value_of,
)
from distspmd.frontend.from_numpy.kinds.carried_records import has_parts, record_of
from distspmd.frontend.from_numpy.kinds.carried_variables import First, Loop
from distspmd.frontend.from_numpy.kinds.last_values import names_read
from distspmd.frontend.from_numpy.kinds.variables import OneOf, readable
from distspmd.frontend.from_numpy.kinds.varying import ReadLoopAgain
from distspmd.frontend.from_numpy.reader.bindings import (
    count_bindings,
    is_bound_in,
    is_read_unbound,
)
from distspmd.frontend.tensor_ir.statements import Block, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import Whole, subtract, symbol

FIXED = "fixed"
"""The kind of a variable that has one value wherever it has one."""

_NO, _YES = sympy.Integer(0), sympy.Integer(1)


class BoundAtTimes(Exception):
    """A loop is read again, with a first value of a variable.

    Attributes:
        loop: which is read again.
        name: of the variable.
        first: its first value.
        is_fixed: whether it has no other value.
    """

    def __init__(self, loop: Loop, name: str, first: Any, *, is_fixed: bool = False) -> None:
        super().__init__(name)
        self.loop, self.name, self.first, self.is_fixed = loop, name, first, is_fixed


def is_exposed(interpreter: Context, node: ast.stmt, name: str, value: Any) -> bool:
    """Whether a variable may be read unbound behind a statement that binds it on some ways.

    Args:
        interpreter: the reading.
        node: the statement.
        name: of the variable.
        value: which it has where it is bound.

    Raises:
        BoundAtTimes: a loop around has to carry it.
        CannotRoll: a loop around would have to carry it, and cannot.
    """
    frame = interpreter.tracer.frames[-1]
    loop = frame.loops[0] if frame.loops else None
    if is_bound_in(frame.body, name):
        if not is_read_unbound(frame.body, name):
            return False
    elif loop is None or names_read(loop.node)[name] <= names_read(node)[name]:
        return False  # a name that is no function's
    if loop is not None:
        if may_be_unbound(value):
            value = value_of(value)
        is_fixed = not has_data(value) and count_bindings(loop.node, name) == 1
        first = value if is_fixed else _first(interpreter, loop, name, value)
        raise BoundAtTimes(loop, name, unbound_or(name, first), is_fixed=is_fixed)
    return True


def note_unbound(
    interpreter: Context,
    node: ast.stmt,
    before: Mapping[str, Any],
    carried: Collection[str],
    length: Whole | None,
    body: Block,
) -> None:
    """Flag what a loop alone binds, or alone gives more than None, which may have no iteration.

    The loop is not yet added.

    Args:
        interpreter: the reading, behind the loop.
        node: the loop.
        before: the variables before it.
        carried: those that it carries.
        length: the number of its iterations; None where its body is to say that there is one.
        body: of the loop.
    """
    tracer, variables = interpreter.tracer, interpreter.variables
    flag = None
    for name in [n for n in variables if n not in carried and before.get(n) is None]:
        value = variables[name]
        if name in before:
            is_flagged = _is_carried(value)
        else:
            is_flagged = not may_be_unbound(value) and is_exposed(interpreter, node, name, value)
        if not is_flagged:
            continue
        if flag is None:
            flag = tracer.unique(f"{readable(name)}_which")
            tracer.known.bounds[flag] = (0, 1)
            none = _YES if length is None else sympy.Max(0, sympy.Min(1, subtract(1, length)))
            tracer.add(SetSymbol(flag, none, INT64))
            if length is None:
                body.statements.insert(0, SetSymbol(flag, _NO, INT64))
        choice = none_or if name in before else unbound_or
        variables[name] = choice(name, value, symbol(flag))


def carry_missing(interpreter: Context, loop: Loop) -> None:
    """Let a loop carry what it reads before it binds it: in later iterations it has a value.

    Raises:
        BoundAtTimes: the loop is read again with it.
    """
    for name in sorted(loop.missing - loop.firsts.keys()):
        if name in interpreter.variables:
            is_exposed(interpreter, loop.node, name, interpreter.variables[name])


def carry_absent(
    interpreter: Context, loop: Loop, name: str, place: object, before: object, now: Any
) -> None:
    """Let a loop carry a flag of a variable that is None before it, or behind an iteration.

    Raises:
        ReadLoopAgain: the same, with a first value that is none of this reading alone.
        BoundAtTimes: the loop is read again with it.
    """
    if name in loop.firsts or not (before is None or now is None or may_be_absent(now)):
        return
    if may_be_unbound(now):
        raise BoundAtTimes(loop, name, unbound_or(name, before, _NO))
    if before is None and (may_be_none(now) or _is_carried(now)):
        value = value_of(now) if may_be_none(now) else now
        first = none_or(name, _first(interpreter, loop, name, value), _YES)
        is_whole_variable = any(one.name == name and one.before is None for one in loop.carried)
        if is_whole_variable and _is_of_any_reading(first):
            raise ReadLoopAgain(name, First(first))
        raise BoundAtTimes(loop, name, first)
    if before is not None and _is_carried(before):
        raise BoundAtTimes(loop, name, none_or(name, before, _NO))


def _is_of_any_reading(first: object) -> bool:
    """Whether a first value has no symbols that are those of one reading."""
    if isinstance(first, OneOf):
        return all(map(_is_of_any_reading, first.values))
    if isinstance(first, tuple):
        return all(map(_is_of_any_reading, first))
    if isinstance(first, Tensor):
        return all(isinstance(n, int) for n in first.shape)
    return not has_data(first)


def _is_carried(value: object) -> bool:
    kinds = bool | int | float | complex | np.generic | sympy.Basic | Tensor | np.ndarray
    if isinstance(value, tuple):
        return all(map(_is_carried, value))
    return isinstance(value, kinds)


def _first(interpreter: Context, loop: Loop, name: str, value: Any) -> Any:
    """A value of the kind that a variable gets."""
    if isinstance(value, bool | float | complex | np.generic):
        return type(value)(0)
    if is_whole(value):
        return 0
    if may_be_none(value):
        return none_or(name, _first(interpreter, loop, name, value_of(value)), _YES)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_first(interpreter, loop, name, part) for part in value)
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    if has_parts(value):
        return record_of(value, lambda part: _first(interpreter, loop, name, part))
    if not has_data(value):
        return value
    if not isinstance(value, Tensor) or value.mask is not None:
        what = told(value)
    else:
        inside = interpreter.tracer.known.bounds.keys() - loop.known_before
        of_shape = {s.name for n in value.shape for s in getattr(n, "free_symbols", ())}
        if not of_shape & inside:
            zero = number(0, value.dtype)
            return Tensor(value.shape, value.dtype, lambda _: zero, value.weak)
        what = f"{told(value)}, whose length the loop decides"
    raise CannotRoll(
        f"{name!r} is bound in some iterations only, and is {what}; give it a value before the loop"
    )
