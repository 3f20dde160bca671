"""Errors that a called function raises, and a handler of a ``try`` around the call takes.

The function is read with one more handler around its body, which has a flag for each of the
caller's. It ends where it sets one, and the caller's flag is set then; what the call gives is not
looked at. The call has to be the value of a statement that only binds it.
"""

from __future__ import annotations

import ast

import numpy as np

from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.last_values import names_read
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.lists.list_rooms import settle
from distspmd.frontend.from_numpy.reader.frames import Frame, Handlers
from distspmd.frontend.from_numpy.reader.jumps import error_of, may_raise, without_jumps
from distspmd.frontend.from_numpy.reader.mutation import Around, watched
from distspmd.frontend.from_numpy.reader.stacked_calls import calls_itself
from distspmd.frontend.from_numpy.reader.tail_calls import AsLoop, check_end, written


def read_body(run: Context, node: ast.FunctionDef, caller: Frame | None) -> None:
    """Read the statements of a function, with the handlers around the call that it is read for.

    Args:
        run: whose innermost frame is the function's.
        node: the function.
        caller: the frame of the call; None for the program itself.
    """
    check_end(run, node)
    frame = run.tracer.frames[-1]
    if not calls_itself(node):
        _read(run, node, caller)
        return
    before = Saved.of(run)
    try:
        with watched(run.tracer, Around.BRANCH):
            _read(run, node, caller)
    except AsLoop as found:
        if found.frame is not frame:
            raise
        before.restore(run)
        _read_as_loop(run, node, caller, before)


def _read_as_loop(run: Context, node: ast.FunctionDef, caller: Frame | None, before: Saved) -> None:
    """Read a function as a loop; with its calls written out where it cannot be one."""
    try:
        with watched(run.tracer, Around.BRANCH):
            _read(run, node, caller)
    except (CannotRoll, Refusal):
        if settle(run.tracer):  # the next reading knows more of the lists
            raise
        before.restore(run)
        run.as_loops[run.tracer.frames[-1].place] = node
        _read(run, node, caller)


def _read(run: Context, node: ast.FunctionDef, caller: Frame | None) -> None:
    made = written(run, node)
    own = run.tracer.frames[-1]
    own.body, own.reads = made.body, names_read(made)
    handlers = _handlers(run, caller) if caller is not None and may_raise(node) else None
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


def _handlers(run: Context, caller: Frame) -> Handlers | None:
    """All handlers around a call, the innermost ones first; None where its errors are refused."""
    every = [h for h in reversed(caller.attempts) if h.flags]
    statement = caller.statement
    is_value = (
        isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr)
        and statement.value is run.tracer.node
        and caller.block is run.tracer.block
    )
    if not every or not is_value:
        return None
    kinds = [kinds for each in every for kinds in each.kinds]
    return Handlers(kinds, [flag for each in every for flag in each.flags])


def _body(run: Context, node: ast.FunctionDef, caught: tuple[str, ...]) -> list[ast.stmt]:
    """The statements of a function, without jumps."""
    node = written(run, node)
    if (node, caught) not in run.bodies:
        run.bodies[node, caught] = without_jumps(node, caught=caught)
    return run.bodies[node, caught]
