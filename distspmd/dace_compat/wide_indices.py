"""Indices of 64 bits in programs with large arrays.

DaCe declares a parameter of a map as wide as the ends of its range need, 32 bits as a rule. The
place of an element is computed in that type, and overflows in an array of 2^31 elements or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sympy
from dace import SDFG, dtypes
from dace.sdfg import nodes

NARROW = (dtypes.int8, dtypes.int16, dtypes.int32)
MOST = 2**31 - 1
"""The most elements of an array whose places all have 32 bits."""


def has_large_arrays(sdfg: SDFG) -> bool:
    """Whether an array of a program, nested ones included, has places that 32 bits do not hold."""
    sizes = (
        sympy.sympify(array.total_size)
        for _, _, array in sdfg.arrays_recursive()
        if hasattr(array, "total_size")
    )
    return any(size.is_Integer and size > MOST for size in sizes)


@contextmanager
def wide_indices(sdfg: SDFG) -> Iterator[None]:
    """Let code that is generated for a program have parameters of maps of 64 bits, if it needs."""
    if not has_large_arrays(sdfg):
        yield
        return
    name = "new_symbols"
    own = getattr(nodes.MapEntry, name)

    def new_symbols(
        entry: nodes.MapEntry, of: SDFG, state: Any, symbols: Mapping[str, dtypes.typeclass]
    ) -> dict[str, dtypes.typeclass]:
        found = own(entry, of, state, symbols)
        wide = {p: dtypes.int64 for p in entry.map.params if found[p] in NARROW}
        return {**found, **wide}

    setattr(nodes.MapEntry, name, new_symbols)
    try:
        yield
    finally:
        setattr(nodes.MapEntry, name, own)
