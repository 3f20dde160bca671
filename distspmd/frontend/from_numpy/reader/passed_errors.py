"""Errors that a called function raises, and a handler of a ``try`` around the call takes.

The function is read with one more handler around its body, which has a flag for each of the
caller's. It ends where it sets one, and the caller's flag is set then; what the call gives is not
looked at. The call has to be the value of a statement that only binds it.
"""

from __future__ import annotations

import ast

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.frames import Frame, Handlers
from distspmd.frontend.from_numpy.reader.jumps import error_of, may_raise, without_jumps

DEEPEST = 60
"""Functions that are read within each other, at most."""


DEEPEST_BY_RUN = 10
"""Calls by a function of itself that are read, where the run decides whether they are the last."""


def read_body(run: Context, node: ast.FunctionDef, caller: Frame | None) -> None:
    """Read the statements of a function, with the handlers around the call that it is read for.

    Args:
        run: whose innermost frame is the function's.
        node: the function.
        caller: the frame of the call; None for the program itself.
    """
    _check_depth(run, node)
    may_pass = caller is not None and caller.attempts and may_raise(node)
    handlers = _handlers(run, caller) if caller is not None and may_pass else None
    if caller is None or handlers is None:
        run.block(_body(run, node, ()))
        return
    frame = run.tracer.frames[-1]
    own_flags = tuple(f"__passed{n}" for n in range(len(handlers.flags)))
    frame.variables.update(dict.fromkeys(own_flags, False))
    frame.attempts = [Handlers(handlers.kinds, own_flags)]
    run.block(_body(run, node, own_flags))
    for flag, passed in zip(handlers.flags, own_flags, strict=True):
        found = frame.variables[passed]
        if found is False:
            continue
        before = caller.variables[flag]
        caller.variables[flag] = (
            found if before is False else run.call(np.logical_or, [before, found], {})
        )
        caller.variables[error_of(flag)] = frame.variables.get(error_of(passed))


def _check_depth(run: Context, node: ast.FunctionDef) -> None:
    """Leave calls without an end that is known to Python.

    Raises:
        Refusal: too many functions call each other.
    """
    *outer, own = run.tracer.frames
    if len(outer) > DEEPEST:
        run.tracer.refuse(
            f"functions that call each other more than {DEEPEST} times deep, as far as is known "
            "before the run; write a loop"
        )
    own.name, own.inner = node.name, run.tracer.inner
    own.place = (own.file, node.lineno, node.name)
    same = [frame.inner for frame in outer if frame.place == own.place]
    if len(same) >= DEEPEST_BY_RUN and same[0] != own.inner:
        run.tracer.refuse(
            f"{node.name!r}, which calls itself as often as the run decides, is not covered: "
            "write a loop"
        )


def _handlers(run: Context, caller: Frame) -> Handlers | None:
    """All handlers around a call, the innermost ones first; None where its errors are refused."""
    every = [h for h in reversed(caller.attempts) if h.flags]
    statement = caller.statement
    is_value = (
        isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr)
        and statement.value is run.tracer.node
        and caller.block is run.tracer.program.block
    )
    if not every or not is_value:
        return None
    kinds = [kinds for each in every for kinds in each.kinds]
    return Handlers(kinds, [flag for each in every for flag in each.flags])


def _body(run: Context, node: ast.FunctionDef, caught: tuple[str, ...]) -> list[ast.stmt]:
    """The statements of a function, without jumps."""
    if (node, caught) not in run.bodies:
        run.bodies[node, caught] = without_jumps(node, caught=caught)
    return run.bodies[node, caught]
