"""What a program touches: iteration spaces, accesses, and the boxes of each rank.

May import `distspmd.nodes` and whatever that may import; changes no SDFG.
"""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.analysis.declared_accesses import NodeAccesses, node_accesses

__all__ = ["NodeAccesses", "node_accesses"]

__getattr__ = lazy_names(
    __name__,
    {
        "NodeAccesses": "distspmd.analysis.declared_accesses",
        "node_accesses": "distspmd.analysis.declared_accesses",
    },
)
