"""Driver mode: one process runs the script, and ranks that it has started serve its calls."""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.driver.handle import Handle
    from distspmd.driver.ranks import Ranks

__all__ = ["Handle", "Ranks"]

__getattr__ = lazy_names(
    __name__,
    {
        "Handle": "distspmd.driver.handle",
        "Ranks": "distspmd.driver.ranks",
    },
)
