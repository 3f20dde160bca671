"""The public functions: lower a program, search for a schedule, compile, and all at a call.

All ranks import this package, but one parses and lowers: DaCe is imported where it is used.
"""

from distspmd.api.steps import compile, iteration_spaces, lower, search

__all__ = ["compile", "iteration_spaces", "lower", "search"]
