"""What Python's functions do with each of as many values as the run decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mapped(called: Callable[..., Any], values: Any) -> list[Any]:
    """``list(map(called, values))``."""
    return [called(value) for value in values]


def filtered(called: Callable[..., Any], values: Any) -> list[Any]:
    """``list(filter(called, values))``."""
    return [value for value in values if called(value)]


def extreme_or(called: Callable[..., Any], values: Any, key: Any, default: Any) -> Any:
    """``min(values, key=key, default=default)``, or ``max``."""
    found = default
    if len(values) > 0:
        found = called(values, key=key)
    return found


def reduced(called: Callable[..., Any], values: Any, initial: Any) -> Any:
    """``functools.reduce(called, values, initial)``."""
    found = initial
    for value in values:
        found = called(found, value)
    return found
