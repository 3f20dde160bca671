"""Statements that compute with one of several things: a branch reads them once for each.

before -> after, of ``x`` that is 0 or an array::

    y = x + b        if x is 0: y = 0 + b
                     else: y = array + b
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import sympy

from distspmd.frontend.from_numpy.syntax import objects
from distspmd.frontend.from_numpy.syntax.branches import branch
from distspmd.frontend.from_numpy.syntax.mutation import Around, watched
from distspmd.frontend.from_numpy.syntax.variables import UNBOUND, OneOf, Saved
from distspmd.frontend.from_numpy.transcript import Refusal

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter

DEEPEST = 6
"""Choices that are told apart for one statement, at most."""


class ReadsChoice(Refusal):
    """A statement computes with one of several things.

    Attributes:
        choice: which it is.
    """

    def __init__(self, message: str, choice: OneOf) -> None:
        super().__init__(message)
        self.choice = choice


def refuse(run: Interpreter, choice: OneOf) -> NoReturn:
    """Refuse to compute with one of several things, unless a statement around tells them apart.

    Raises:
        ReadsChoice: always.
    """
    raise ReadsChoice(run.tracer.message(choice.reason), choice)


def read(run: Interpreter, node: ast.stmt, by: Callable[[Any, Any], None]) -> None:
    """Read a statement; once for each of two things, if it computes with one that is either.

    Args:
        run: the reading.
        node: the statement.
        by: what reads it.
    """
    tracer = run.tracer
    if tracer.straight is not None or tracer.guarded or tracer.parallel:
        by(run, node)
        return
    if not any(True for _ in _choices(run, node)):
        by(run, node)
        return
    saved = Saved.of(run)
    try:
        with watched(tracer, Around.BRANCH):
            by(run, node)
        return
    except ReadsChoice as problem:
        which = problem.choice.which
        if run.told_apart >= DEEPEST or tracer.bounds.get(which.name) != (0, 1):
            raise
    saved.restore(run)
    made = ast.If(ast.Constant(sympy.Ne(which, 0)), [node], [node])
    run.told_apart += 1
    try:
        branch(run, ast.fix_missing_locations(ast.copy_location(made, node)))
    finally:
        run.told_apart -= 1


def _choices(run: Interpreter, node: ast.stmt) -> Iterator[OneOf]:
    """The choices that the variables of a statement are, or parts of them."""
    known = run.variables
    found = {name: value for name, value in known.items() if _holds_choice(value)}
    if not found:
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in found:
            yield found[part.id]


def _holds_choice(value: Any) -> bool:
    """Whether a value is a choice, or a record with one."""
    if isinstance(value, OneOf):
        return value.values[0] is not UNBOUND
    if isinstance(value, tuple | list) or type(value) is dict:
        parts = value.values() if isinstance(value, dict) else value
        return any(isinstance(part, OneOf) for part in parts)
    return objects.is_own(value) and any(isinstance(p, OneOf) for p in vars(value).values())
