"""The reductions that a program defines itself: which they are, and where its library has them.

Ranks that load a program ask for them without DaCe.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from distspmd.layouts.reductions import find_reduction
from distspmd.lowering import PlannedMemlet
from distspmd.plans.encoding import Function

_NAMES = ("distspmd_kernel_", "distspmd_fill_", "distspmd_combine_")


def collect_lambdas(memlets: Iterable[PlannedMemlet]) -> tuple[Function, ...]:
    """The lambdas by which plans reduce, each once for a dtype, in the order of the plans."""
    found: dict[Function, None] = {}
    for memlet in memlets:
        move = memlet.solution.plan.redistribution
        if move.reduction and find_reduction(move.reduction).is_lambda:
            found[move.reduction, move.dtype] = None
    return tuple(found)


def addresses_of(
    library: ctypes.CDLL, functions: Iterable[Function]
) -> dict[Function, tuple[int, int, int]]:
    """Where the functions lie in a loaded program."""

    def address(name: str) -> int:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0

    return {
        function: tuple(address(f"{name}{number}") for name in _NAMES)  # type: ignore[misc]
        for number, function in enumerate(functions)
    }
