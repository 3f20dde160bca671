"""Automatic schedules: candidates of each space, what they cost in arrays, and the best of them.

May import everything up to the pipeline, and `distspmd.wcsp`; no MPI.
"""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.scheduling.result import SearchResult

__all__ = ["SearchResult"]

__getattr__ = lazy_names(
    __name__,
    {
        "SearchResult": "distspmd.scheduling.result",
    },
)
