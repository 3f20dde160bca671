"""Types of elements by their names: NumPy's, and those that ml_dtypes adds to it."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def find_dtype(named: Any) -> np.dtype[Any]:
    """The type that is meant by what NumPy takes for one, or by a name such as ``"bfloat16"``.

    Raises:
        TypeError, ValueError: there is none.
    """
    found: np.dtype[Any]
    try:
        found = np.dtype(named)
        return found
    except TypeError:
        if not isinstance(named, str):
            raise
    try:
        importlib.import_module("ml_dtypes")  # which makes its names known to NumPy
    except ImportError:
        raise TypeError(f"NumPy has no {named!r}, and ml_dtypes is not installed") from None
    found = np.dtype(named)
    return found
