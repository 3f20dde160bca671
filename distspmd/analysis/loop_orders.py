"""Why a loop stays in order: a property of the loop, which the record tells."""

from __future__ import annotations

from dace.sdfg.state import LoopRegion

_PROPERTY = "_distspmd_order"
"""An attribute of loops."""


def mark_order(loop: LoopRegion, why: str) -> None:
    """Say of a loop why its iterations run one after the other, in words."""
    setattr(loop, _PROPERTY, why)


def order_of(loop: LoopRegion) -> str:
    """Why the iterations of a loop run one after the other; empty where nothing says so."""
    return str(getattr(loop, _PROPERTY, ""))
