"""What tells calls of one function apart: values and arguments, as ranks compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


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
        return str(np.dtype(value.dtype)), tuple(value.shape)
    return repr(value)


def value_of(value: Any) -> Any:
    """A value that decides code, as it is compared on all ranks."""
    return (type(value).__name__, repr(value)) if isinstance(value, int | float | complex) else None
