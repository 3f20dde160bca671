"""The public functions: lower a program, search for a schedule, compile, and all at a call.

All ranks import this package, but one parses and lowers: DaCe is imported where it is used.
"""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.api.partitioned_function import PartitionedFunction

__all__ = ["PartitionedFunction"]

__getattr__ = lazy_names(__name__, {"PartitionedFunction": "distspmd.api.partitioned_function"})
