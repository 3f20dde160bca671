"""Maps of no iterations: they read nothing, so that no index is out of bounds."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from distspmd.frontend.from_numpy.arrays.values import number
from distspmd.frontend.tensor_ir.statements import Parameter, Store


def is_empty(parameters: Sequence[Parameter]) -> bool:
    """Whether a map is known to have no iterations."""
    return any(
        isinstance(p.first, int) and isinstance(p.end, int) and p.first >= p.end for p in parameters
    )


def without_reads(stores: Sequence[Store]) -> list[Store]:
    """Stores to the same places of what nothing is read for; none of those that data place."""
    return [
        Store(s.container, s.index, number(0, s.value.dtype), s.conflict)
        for s in stores
        if all(isinstance(i, int | sympy.Basic) for i in s.index)
    ]
