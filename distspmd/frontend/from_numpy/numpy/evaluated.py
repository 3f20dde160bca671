"""``eval`` of texts that are known when the program is read: the expression stands in its place."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any

from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.bindings import bound_names
from distspmd.frontend.from_numpy.reader.texts import Text

_SOMETIMES = (ast.For, ast.While, ast.If, ast.Try, ast.With)


@function(builtins.eval)
def _eval(run: Context, source: Any, globals: Any = None, locals: Any = None) -> Any:
    tracer = run.tracer
    if not isinstance(source, str) or isinstance(source, Text):
        tracer.refuse(f"eval of {told(source)}: its text has to be known when the program is read")
    try:
        found = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as problem:
        tracer.refuse(f"eval({source!r}): SyntaxError: {problem.msg}")
    at = tracer.node
    for part in ast.walk(found):
        ast.copy_location(part, at)
    if globals is None and locals is None:
        _check_names(run, source, found)
        return run.value(found)
    known: dict[str, Any] = {}
    for given in (globals, locals):
        if isinstance(given, Mapping):
            known.update(given)
        elif given is not None:
            tracer.refuse(f"eval with the variables {told(given)}; give it a dictionary of names")
    with run.variables_of(known):
        return run.value(found)


def _check_names(run: Context, source: str, found: ast.expr) -> None:
    """Refuse names that the function binds at times: its syntax does not say that they are read."""
    own = run.tracer.frames[-1].body
    at_times = {n for s in own if isinstance(s, _SOMETIMES) for n in bound_names(s)}
    read = {part.id for part in ast.walk(found) if isinstance(part, ast.Name)}
    if names := sorted(read & at_times):
        run.tracer.refuse(
            f"eval({source!r}) reads {', '.join(names)}, which a loop or a branch of the function "
            "binds; write the expression itself, or eval(...) in a function of these arguments"
        )
