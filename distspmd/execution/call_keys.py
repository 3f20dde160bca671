"""What tells calls of one function apart: values and arguments, as ranks compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.runtime.calls.form import contains_arrays


def comparable(value: Any) -> Any:
    """A value as it prints on all ranks; of what prints otherwise on each, its type."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return sorted((str(key), comparable(each)) for key, each in value.items())
    if isinstance(value, Sequence):
        return [comparable(each) for each in value]
    return type(value).__qualname__


def kind_of(value: Any) -> Any:
    """Shape and type of an array or a number; of anything else what it is, as it becomes code."""
    if isinstance(value, np.generic):
        return "number", str(value.dtype)  # unlike an array of no dimensions it is not written
    if isinstance(value, bool | int | float | complex):
        return type(value).__name__
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        is_of_class = isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap)
        own = (type(value).__qualname__,) if is_of_class else ()
        return str(np.dtype(value.dtype)), tuple(value.shape), *own
    if isinstance(value, list | tuple | dict) and contains_arrays(value):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        return type(value).__name__, *((repr(key), _kind_of_part(each)) for key, each in entries)
    return repr(value)


def _kind_of_part(value: Any) -> Any:
    """The kind of an entry of an argument; of what becomes code its value."""
    return repr(value) if isinstance(value, bool | int) else kind_of(value)


def is_all_code(value: Any) -> bool:
    """Whether a program is made for all that an argument is: for functions and objects."""
    if isinstance(value, bool | int | float | complex | str | None) or hasattr(value, "dtype"):
        return False
    return not (isinstance(value, list | tuple | dict) and contains_arrays(value))


def value_of(value: Any) -> Any:
    """A value that decides code, as it is compared on all ranks."""
    return (type(value).__name__, repr(value)) if isinstance(value, int | float | complex) else None


def what_is_new(key: Sequence[Any], others: Sequence[Sequence[Any]], arguments: int) -> str:
    """For what a program is made, though there are others of the function; empty without any.

    Args:
        key: of a call.
        others: of the programs that there are.
        arguments: how many entries at the end of a key are of arguments.
    """
    if not others:
        return ""
    outside, given = key[: len(key) - arguments], key[len(key) - arguments :]
    for other in reversed(others):
        before = other[len(other) - arguments :]
        if other[: len(other) - arguments] == outside and len(before) == arguments:
            pairs = zip(given, before, strict=True)
            return "for " + ", ".join(_told(*mine) for mine, theirs in pairs if mine != theirs)
    return "for what it sees from outside, or for other objects"


def _told(name: str, kind: Any, value: Any) -> str:
    """An argument of a call, as it differs from that of another one."""
    if value is not None:
        return f"{name}={value[1]}, which decides its code"
    if isinstance(kind, tuple) and len(kind) > 1 and isinstance(kind[1], tuple):
        return f"{name} of {kind[0]}{list(kind[1])}"
    return f"{name} of the kind {kind}"
