"""Sources of functions, and what they see from outside."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any


def function_in(text: str, function: Any) -> ast.FunctionDef | ast.Lambda | None:
    """The syntax of a function in a text; None where it is not there."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        tree = None
    name = function.__name__
    if tree is not None:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda) and name == "<lambda>":
                return node
    return None


def globals_of(function: Any) -> dict[str, Any]:
    """What a function sees from outside."""
    known = dict(function.__globals__)
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        with suppress(ValueError):  # not bound yet
            known[name] = cell.cell_contents
    return known
