"""Statements ``with``: settings of NumPy and of warnings, and objects of the program."""

from __future__ import annotations

import ast
import contextlib
import warnings
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader import objects, python_errors
from distspmd.frontend.from_numpy.reader.registry import statement

_TASKLET = '; read a program with tasklets by DaCe\'s parser: numpy_program(f, frontend="dace")'


@statement(ast.With)
def _with(run: Context, node: ast.With) -> None:
    exits = []
    with contextlib.ExitStack() as stack:
        for item in node.items:
            manager = item.context_expr
            call = manager if isinstance(manager, ast.Call) else ast.Call(manager, [], [])
            function = run.value(call.func)
            if function is np.errstate:
                run.call(np.seterr, [], {k.arg: run.value(k.value) for k in call.keywords if k.arg})
            elif function is warnings.catch_warnings:
                stack.enter_context(warnings.catch_warnings())
            else:
                exits.append(_entered(run, item))
        run.block(node.body)
    for manager in reversed(exits):
        left = objects.special(run, manager, "exit", None, None, None)
        if run.truth(left) is not False:
            run.tracer.refuse(f"{type(manager).__name__}.__exit__ may keep errors to itself")


def _entered(run: Context, item: ast.withitem) -> Any:
    """An object of the program whose ``__enter__`` has been called."""
    manager = run.value(item.context_expr)
    found = objects.special(run, manager, "enter") if objects.is_own(manager) else NotImplemented
    if found is NotImplemented:
        text = ast.unparse(item.context_expr)
        told = (
            "a with statement, but for np.errstate, warnings.catch_warnings and objects of the "
            f"program, is not covered{_TASKLET * (text == 'dace.tasklet')}"
        )
        if not (manager is None or objects.is_own(manager)):
            run.tracer.refuse(told)
        python_errors.fail(run, python_errors.enter, manager, otherwise=told)
    if item.optional_vars is not None:
        run.bind(item.optional_vars, found)
    return manager
