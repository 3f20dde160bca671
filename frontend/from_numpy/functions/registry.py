"""The tables of functions, methods and attributes, and how a module adds to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


REFUSED: dict[Any, str] = {}
"""What is not covered, by the object or the name of a method: what to write instead."""


def refused(*objects: Any, instead: str) -> None:
    """Say of functions, or of methods by their names, that they are not covered.

    Args:
        objects: functions, or names of methods of arrays.
        instead: a sentence that says what to write, or why there is nothing.
    """
    for each in objects:
        REFUSED[each] = instead

        def handler(run: Any, *_: Any, told: Any = each, **__: Any) -> Any:
            name = told if isinstance(told, str) else getattr(told, "__name__", str(told))
            run.tracer.refuse(f"{name} is not covered: {instead}")

        if isinstance(each, str):
            METHODS.setdefault(each, handler)
        else:
            FUNCTIONS.setdefault(each, handler)


def named(module: str, *names: str) -> Callable[[Any], Any]:
    """Add a function of a package that need not be installed, by where it is and its name."""

    def add(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FUNCTIONS[(module, name)] = handler
        return handler

    return add


def by_name(functions: Mapping[Any, Any], function: Any) -> Callable[..., Any] | None:
    """The handler of a function by its module, of which the first two parts count, and its name."""
    module = str(getattr(function, "__module__", "") or "")
    found: Callable[..., Any] | None = functions.get(
        (".".join(module.split(".")[:2]), getattr(function, "__name__", ""))
    )
    return found
