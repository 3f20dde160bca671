"""Numbers that functions of NumPy give of what is known before the run.

NumPy computes them when the program is read, as Python would, so that they may be lengths, steps
and keys.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_MODULES = ("numpy", "numpy.linalg")
_WORDS = (str, type, np.dtype)
_NUMBERS = (bool, int, float, complex, np.generic)


def known_result(
    function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> np.generic | None:
    """The number that a function of NumPy gives; None where it is not known, or is an array."""
    if getattr(function, "__module__", None) not in _MODULES:
        return None
    if not arguments or not all(map(_is_known, (*arguments, *keywords.values()))):
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = function(*arguments, **keywords)
    except Exception:  # which the reading of the call tells, with its line
        return None
    return found if isinstance(found, np.generic) else None


def _is_known(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_known, value))
    return value is None or isinstance(value, _NUMBERS + _WORDS)
