"""Variables that a loop binds in some of its iterations, and that have no value before it.

In the others they are what they were: ``for i in range(n): if x[i] > 0: k = i`` leaves the last
such ``i``. So the loop carries them, from a first value that no program reads.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distspmd.frontend.from_numpy.kinds import has_data, is_whole
from distspmd.frontend.from_numpy.syntax.bindings import is_read_unbound
from distspmd.frontend.from_numpy.syntax.last_values import names_read
from distspmd.frontend.from_numpy.transcript import CannotRoll, told
from distspmd.frontend.from_numpy.values import Tensor, number

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter
    from distspmd.frontend.from_numpy.syntax.carried import Loop


class BoundAtTimes(Exception):
    """A loop is read again, with a first value of a variable.

    Attributes:
        loop: which is read again.
        name: of the variable.
        first: its first value.
    """

    def __init__(self, loop: Loop, name: str, first: Any) -> None:
        super().__init__(name)
        self.loop, self.name, self.first = loop, name, first


def bound_one_way(interpreter: Interpreter, node: ast.If, name: str, value: Any) -> Any:
    """What a variable is behind a branch of which one way alone gives it a value.

    Raises:
        BoundAtTimes: a loop around has to carry it.
        CannotRoll: a loop around would have to carry it, and cannot.
    """
    frame = interpreter.tracer.frames[-1]
    loop = frame.loops[0] if frame.loops else None
    if loop is None or not _is_read_unbound(loop, node, name, frame.body):
        return value
    if not has_data(value) and _bindings(loop.node, name) == 1:
        return value
    raise BoundAtTimes(loop, name, _first(interpreter, loop, name, value))


def _is_read_unbound(loop: Loop, node: ast.If, name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether a variable may be read where an iteration has not bound it."""
    if any(_bindings(statement, name) for statement in body):
        return is_read_unbound(body, name)
    return names_read(loop.node)[name] > names_read(node)[name]  # a name that is no function's


def _bindings(node: ast.AST, name: str) -> int:
    names = (part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name)
    return sum(isinstance(part.ctx, ast.Store) for part in names)


def _first(interpreter: Interpreter, loop: Loop, name: str, value: Any) -> Any:
    """A value of the kind that a variable gets."""
    if isinstance(value, bool | float | complex | np.generic):
        return type(value)(0)
    if is_whole(value):
        return 0
    if not isinstance(value, Tensor) or value.mask is not None:
        what = told(value)
    else:
        inside = interpreter.tracer.bounds.keys() - loop.known_before
        of_shape = {s.name for n in value.shape for s in getattr(n, "free_symbols", ())}
        if not of_shape & inside:
            zero = number(0, value.dtype)
            return Tensor(value.shape, value.dtype, lambda _: zero, value.weak)
        what = f"{told(value)}, whose length the loop decides"
    raise CannotRoll(
        f"{name!r} is bound in some iterations only, and is {what}; give it a value before the loop"
    )
