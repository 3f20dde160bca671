"""Sources of functions, and what they see from outside."""

from __future__ import annotations

import ast
import inspect
import itertools
from contextlib import suppress
from typing import Any, TypeVar

from distspmd.frontend.from_numpy.context import Context


def read_source(function: Any) -> tuple[ast.FunctionDef | ast.Lambda | None, list[str], int]:
    """The syntax of a function, with the lines that it is in and the number of the first.

    Raises:
        OSError: there is no source.
        TypeError: it is no function of Python.
    """
    code = function.__code__  # of a wrapper, not of what it wraps
    if code.co_name == "<lambda>":  # it may begin and end within a statement
        lines, _ = inspect.findsource(code)
        return _with_private_names(_lambda_in("".join(lines), function), function), lines, 1
    lines, first = inspect.getsourcelines(code)
    is_inner = lines[0][:1].isspace()  # texts of several lines stay as they are
    node = _function_in("".join(["if True:\n" if is_inner else "", *lines]), code.co_name)
    if node is not None:
        ast.increment_lineno(node, first - 1 - is_inner)
    return _with_private_names(node, function), lines, first


_Node = TypeVar("_Node", bound="ast.FunctionDef | ast.Lambda | None")


def _with_private_names(node: _Node, function: Any) -> _Node:
    """The syntax of a function in a class, where ``__name`` is ``_Class__name``."""
    parts = function.__qualname__.split(".")
    classes = [one for one, inner in itertools.pairwise(parts) if "<locals>" not in (one, inner)]
    prefix = classes[-1].lstrip("_") if classes else ""
    for part in ast.walk(node) if node is not None and prefix else ():
        for field in ("id", "attr", "arg", "name"):
            name = getattr(part, field, None)
            if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                setattr(part, field, f"_{prefix}{name}")
    return node


def source_of(tracer: Any, function: Any) -> tuple[Any, list[str], int, str]:
    """What :func:`read_source` gives, and the file.

    Raises:
        Refusal: there is no source.
    """
    try:
        node, lines, first = read_source(function)
        file = inspect.getsourcefile(function.__code__) or ""
    except (OSError, TypeError, AttributeError):
        tracer.refuse(
            f"the source of the function {function.__name__!r} is not to be found: write it in a "
            "file"
        )
    if node is None:
        tracer.refuse(f"the source of {function.__name__!r} has no function of that name")
    return node, lines, first, file


def _function_in(text: str, name: str) -> ast.FunctionDef | None:
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
    return None


def _lambda_in(text: str, function: Any) -> ast.Lambda | None:
    """The innermost lambda of a file whose body has all positions of a function's code."""
    code = function.__code__
    with suppress(SyntaxError):
        found = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Lambda)
            and node.lineno == code.co_firstlineno
            and [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            == list(code.co_varnames[: code.co_argcount])
        ]
        inside = [node for node in found if _has_positions(node.body, code)]
        every = inside or found
        return every[-1] if every else None
    return None


def _has_positions(body: ast.expr, code: object) -> bool:
    """Whether an expression has all positions of a code; true before Python 3.11, without them."""
    first = (body.lineno, body.col_offset)
    last = (body.end_lineno or 0, body.end_col_offset or 0)
    return all(
        first <= (line, column) and (end_line, end) <= last
        for line, end_line, column, end in getattr(code, "co_positions", tuple)()
        if None not in (line, end_line, column, end) and end > 0
    )


def globals_of(function: Any) -> dict[str, Any]:
    """What a function sees from outside."""
    known = dict(function.__globals__)
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        with suppress(ValueError):  # not bound yet
            known[name] = cell.cell_contents
    return known


TOO_DEEP = (
    "functions that call each other more than 60 times deep, as far as is known; write a loop"
)
INNER_CALLS = 2000
"""Calls by functions of themselves that are written out in a program, at most."""


def count_inner_call(run: Context, function: object, file: str, first_line: int) -> None:
    """Count the calls that functions make of themselves: what decides their end may be the run.

    Raises:
        Refusal: there are too many.
    """
    if any((f.file, f.first_line) == (file, first_line) for f in run.tracer.frames):
        run.inner_calls += 1
    if run.inner_calls > INNER_CALLS:
        name = getattr(function, "__name__", "a function")
        run.tracer.refuse(
            f"{name} calls itself more often than {INNER_CALLS} times, as far as is known before "
            "the run; write a loop, over a table of what is computed say"
        )
