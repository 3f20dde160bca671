"""Conflict resolutions: how ranks combine what each of them made of a neutral element.

A rank that writes with ``f(old, new)`` begins with an element ``e`` that is neutral for the
operation ``*``, and ends with an operand. This is right if ``f(a, b)`` equals ``a * f(e, b)``. For
``a - b`` the operation is the sum, for ``a / b`` the product, and for ``a + b - a * b`` the
function itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from distspmd.layouts import user_reductions
from distspmd.layouts.reductions import find_reduction

_KNOWN = {
    "Sum": "sum",
    "Product": "prod",
    "Min": "min",
    "Max": "max",
    "Logical_And": "and",
    "Logical_Or": "or",
    "Logical_Xor": "xor",
    "Bitwise_And": "bitand",
    "Bitwise_Or": "bitor",
    "Bitwise_Xor": "bitxor",
}
"""Of DaCe's names of conflict resolutions."""

_CANDIDATES = {
    "b": ("and", "or", "xor"),
    "i": ("sum", "prod", "min", "max", "bitand", "bitor", "bitxor"),
    "f": ("sum", "prod", "min", "max"),
    "c": ("sum", "prod"),
}


def operation_of(resolution: str, dtype: np.dtype[Any]) -> str | None:
    """The reduction by which ranks combine, or None where none is known.

    Args:
        resolution: DaCe's name of a conflict resolution, or the name of a lambda.
        dtype: of the elements.
    """
    if resolution in _KNOWN:
        known = _KNOWN[resolution]
        return known if find_reduction(known).supports(dtype) else None
    return _of_lambda(resolution, dtype) if resolution.startswith(user_reductions.PREFIX) else None


@cache
def _of_lambda(name: str, dtype: np.dtype[Any]) -> str | None:
    kind = dtype.kind
    if not user_reductions.is_function(name):
        return None
    if kind not in "biufc" or (kind in "biu" and user_reductions.has_integer_division(name)):
        return None
    for candidate in _CANDIDATES["i" if kind == "u" else kind]:
        known = find_reduction(candidate)
        neutral = known.identity(dtype)
        with np.errstate(all="ignore"):
            if user_reductions.extends(name, kind, known.ufunc, neutral.item()):
                return candidate
    itself = (
        user_reductions.combines(name, kind) and user_reductions.neutral(name, kind) is not None
    )
    return name if itself else None
