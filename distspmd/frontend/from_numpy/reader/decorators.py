"""Decorators: those of users are called, those that change no result are passed over.

A function that a user's decorator has wrapped is the wrapper, which is read as any function. One
that a library has wrapped, to keep results or to compile it, is what it was before.
"""

from __future__ import annotations

import ast
import functools
import types
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.reader.origins import is_library_module
from distspmd.runtime.host.host_functions import HostFunction

_PLAIN = {functools.lru_cache, functools.cache, functools.wraps}
"""What gives a function that computes what the decorated one does."""
_COMPILERS = ("numba", "line_profiler", "memory_profiler")
"""Packages whose decorators do so."""


def without_wrappers(function: object) -> Any:
    """The function that runs where one is called: without wrappers of libraries."""
    while hasattr(function, "__wrapped__") and not _is_users_wrapper(function):
        function = function.__wrapped__
    return function


def is_wrapper(function: object) -> bool:
    """Whether a function is a wrapper that a user has written, or one that Python runs."""
    return hasattr(function, "__wrapped__") and _is_users_wrapper(function)


def _is_users_wrapper(function: object) -> bool:
    if not isinstance(function, types.FunctionType):
        return isinstance(function, HostFunction)
    return not is_library_module(str(function.__globals__.get("__name__", "")))


def decorated(run: Context, decorators: list[ast.expr], function: object) -> Any:
    """A function that a program defines, under its decorators."""
    for node in reversed(decorators):
        called = run.value(node.func if isinstance(node, ast.Call) else node)
        if _changes_nothing(called):
            continue
        decorator = run.value(node)
        run.tracer.node = node
        function = run.call(decorator, [function], {})
    return function


def _changes_nothing(decorator: object) -> bool:
    package = str(getattr(decorator, "__module__", "") or "").split(".")[0]
    try:
        return package in _COMPILERS or decorator in _PLAIN
    except TypeError:
        return False
