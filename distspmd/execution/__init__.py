"""Compiled programs and their calls: arguments, results, tiles that stay on the ranks.

May import `distspmd.codegen` and whatever that may import.
"""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.execution.program import Program
    from distspmd.execution.symbolic_program import SymbolicProgram

__all__ = ["Program", "SymbolicProgram"]

__getattr__ = lazy_names(
    __name__,
    {
        "Program": "distspmd.execution.program",
        "SymbolicProgram": "distspmd.execution.symbolic_program",
    },
)
