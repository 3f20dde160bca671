"""The tables of functions, methods and attributes, and how a module adds to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""What becomes of a call, by the function object: called with the interpreter and the arguments."""
METHODS: dict[str, Callable[..., Any]] = {}
"""The same for methods of arrays, by name: called with interpreter, array, and arguments."""


def function(*objects: Any, method: str | None = None) -> Callable[[Any], Any]:
    """Add a function for objects that programs call, and for a method of arrays."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        for each in objects:
            FUNCTIONS[each] = handler
        if method is not None:
            METHODS[method] = handler
        return handler

    return add


def attribute(name: str) -> Callable[[Any], Any]:
    """Add an attribute of arrays."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[("attribute", name)] = handler
        return handler

    return add


def ufunc_method(name: str) -> Callable[[Any], Any]:
    """Add a method of universal functions."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[("ufunc", name)] = handler
        return handler

    return add
