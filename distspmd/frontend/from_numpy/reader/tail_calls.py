"""Functions that call themselves last, and whose end the run decides, become loops.

before -> after:  ``def f(a, b): if t: return v``; ``return f(x, y)``  ->  ``while True: if t:
return v``; ``a, b = x, y``; ``continue``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.reader import stacked_calls
from distspmd.frontend.from_numpy.reader.bindings import bound_names, is_read_unbound
from distspmd.frontend.from_numpy.reader.frames import Frame

DEEPEST = 60
"""Functions that are read within each other, at most."""


STACKED = 10
"""Calls by a function of itself, in branches of the run, from which on it has stacks."""


class AsLoop(Exception):
    """A function is read again as a loop.

    Attributes:
        frame: the outermost one of the function.
    """

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame.name)
        self.frame = frame


class _NoTailCall(Exception):
    """A call by a function of itself is not the last that it does."""


def check_end(run: Context, node: ast.FunctionDef) -> None:
    """Let a function become a loop that calls itself in a branch which the run decides.

    Args:
        run: the reading, whose innermost frame is that of the call.
        node: the function.

    Raises:
        AsLoop: it is read again.
        Refusal: too many functions call each other.
    """
    *outer, own = run.tracer.frames
    if len(outer) > DEEPEST:
        run.tracer.refuse(
            f"functions that call each other more than {DEEPEST} times deep, as far as is known "
            "before the run; write a loop, or let the call of itself be the last of the function"
        )
    own.name, own.inner = node.name, run.tracer.inner
    own.place = (own.file, node.lineno, node.name)
    first = next((frame for frame in outer if frame.place == own.place), None)
    if first is None or first.inner == own.inner or own.place in run.as_loops:
        return
    made = _as_loop(node)
    depth = sum(frame.place == own.place for frame in outer)
    if made is None and depth >= STACKED and stacked_calls.calls_itself(node):
        for_python(run, "recursion")
        made = stacked_calls.as_loop(node)
    if made is not None:
        run.as_loops[own.place] = made
        raise AsLoop(first)


def written(run: Context, node: ast.FunctionDef) -> ast.FunctionDef:
    """The syntax by which a function is read."""
    return run.as_loops.get(run.tracer.frames[-1].place, node)


def _as_loop(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """A function without calls of itself; None where one is not the last that it does."""
    own = node.args
    if own.vararg or own.kwarg or any(is_read_unbound(node.body, n) for n in _locals(node)):
        return None
    made = copy.deepcopy(node)
    tails = _Tails(made)
    try:
        body = tails.block(made.body)
    except _NoTailCall:
        return None
    if not tails.found or any(
        isinstance(n, ast.Name) and n.id == node.name for s in body for n in ast.walk(s)
    ):
        return None
    last = ast.copy_location(ast.Return(None), made.body[-1])
    loop = ast.While(ast.Constant(True), [*body, last], [])
    made.body = [ast.fix_missing_locations(ast.copy_location(loop, made.body[0]))]
    return made


def _locals(node: ast.FunctionDef) -> set[str]:
    arguments = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    return bound_names(node) - arguments


class _Tails:
    """Writes what a function returns that is a call of itself as its next iteration.

    Attributes:
        found: how many of these there are.
    """

    found = 0

    def __init__(self, node: ast.FunctionDef) -> None:
        self.name, own = node.name, node.args
        positional = [*own.posonlyargs, *own.args]
        self.names = [each.arg for each in positional]
        self.every = [*self.names, *(each.arg for each in own.kwonlyargs)]
        late = self.names[len(self.names) - len(own.defaults) :]
        self.defaults = dict(zip(late, own.defaults, strict=True))

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block."""
        return [made for statement in statements for made in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """A statement; of a branch those of its blocks."""
        if isinstance(node, ast.If):
            made = ast.If(node.test, self.block(node.body), self.block(node.orelse))
            return [ast.copy_location(made, node)]
        if isinstance(node, ast.Return) and node.value is not None:
            return self.returned(node.value, node)
        return [node]

    def returned(self, value: ast.expr, like: ast.stmt) -> list[ast.stmt]:
        """``return value``."""
        if isinstance(value, ast.IfExp):
            ways = [self.returned(way, like) for way in (value.body, value.orelse)]
            return [ast.copy_location(ast.If(value.test, *ways), like)]
        if not isinstance(value, ast.Call) or not self.is_own(value.func):
            return [ast.copy_location(ast.Return(value), like)]
        given = dict(zip(self.names, value.args, strict=False))
        if len(value.args) > len(self.names) or any(isinstance(a, ast.Starred) for a in value.args):
            raise _NoTailCall
        given.update({each.arg or "": each.value for each in value.keywords})
        values: list[Any] = [given.get(n, self.defaults.get(n)) for n in self.every]
        if given.keys() - set(self.every) or None in values:
            raise _NoTailCall
        targets: list[Any] = [ast.Name(name, ast.Store()) for name in self.every]
        target: Any = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
        next_: Any = values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())
        made: list[ast.stmt] = [ast.Assign([target], next_), ast.Continue()]
        self.found += 1
        return [ast.fix_missing_locations(ast.copy_location(each, like)) for each in made]

    def is_own(self, function: ast.expr) -> bool:
        """Whether a call is one of the function itself."""
        return isinstance(function, ast.Name) and function.id == self.name
