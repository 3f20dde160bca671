"""What reads the statements and expressions of Python: functions of the interpreter, by syntax."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

STATEMENTS: dict[type[ast.AST], Callable[[Any, Any], None]] = {}
EXPRESSIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {}
Reader = TypeVar("Reader", bound=Callable[..., Any])


def statement(*kinds: type[ast.stmt]) -> Callable[[Reader], Reader]:
    """Enter a function ``(interpreter, node) -> None`` as what reads statements of some kinds."""

    def enter(reader: Reader) -> Reader:
        STATEMENTS.update(dict.fromkeys(kinds, reader))
        return reader

    return enter


def expression(*kinds: type[ast.expr]) -> Callable[[Reader], Reader]:
    """Enter a function ``(interpreter, node) -> value`` as what reads expressions of some kinds."""

    def enter(reader: Reader) -> Reader:
        EXPRESSIONS.update(dict.fromkeys(kinds, reader))
        return reader

    return enter
