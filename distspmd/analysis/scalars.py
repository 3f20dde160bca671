"""Which arguments and results are numbers to the caller: in an SDFG some are arrays of one element."""

from __future__ import annotations

from collections.abc import Iterable

from dace import SDFG, data

_ATTRIBUTE = "_distspmd_scalars"


def mark_scalars(sdfg: SDFG, names: Iterable[str]) -> None:
    """Say of arrays of one element, that the caller passes and gets numbers for them."""
    setattr(sdfg, _ATTRIBUTE, frozenset(names))


def scalars_of(sdfg: SDFG) -> frozenset[str]:
    """Names of arguments and results that are numbers to the caller."""
    own = frozenset(n for n, c in sdfg.arrays.items() if isinstance(c, data.Scalar))
    marked: frozenset[str] = getattr(sdfg, _ATTRIBUTE, frozenset())
    return own | marked
