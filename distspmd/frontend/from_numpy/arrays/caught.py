"""Errors that the run finds by itself, of indices and keys say, and handlers around that take them.

A handler that names such an error is a part of the program: what the statement computes sets its
flag. One of all errors does not run: the program ends, and says so.
"""

from __future__ import annotations

import ast

from distspmd.frontend.from_numpy.arrays.transcript import Transcript, error_class, told
from distspmd.frontend.from_numpy.context import Context


def line_of_error(tracer: Transcript, kind: str) -> int:
    """The line with which the program ends here; below 0 if a handler would take all errors.

    Raises:
        Refusal: a handler around names the error.
    """
    line = tracer.line[1] if tracer.line else 0
    return -line if tracer.check_uncaught(kind) else line


def is_taken(tracer: Transcript, kind: str) -> bool:
    """Whether a handler that names an error takes it from what the statement computes."""
    frame, error = tracer.frames[-1], error_class(kind)
    handlers = frame.handlers_of(error)
    is_inside = frame.block is not tracer.block or frame.is_binding
    if handlers is None or handlers.takes_all(error) or is_inside:
        return False
    if tracer.guarded or tracer.parallel or tracer.straight is not None:
        return False
    return isinstance(frame.statement, ast.Assign | ast.AnnAssign)


def kinds_of(run: Context, handler: ast.ExceptHandler) -> tuple[type[BaseException], ...]:
    """The errors that a handler names; all where it names none."""
    found = BaseException if handler.type is None else run.value(handler.type)
    every = found if isinstance(found, tuple) else (found,)
    for each in every:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            run.tracer.refuse(f"a handler of {told(each)}, which is no class of errors")
    return every
