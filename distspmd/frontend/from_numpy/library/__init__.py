"""Parts of Python's library as Python, which programs take in as they do functions of their own.

Their messages name the line of the program that calls them, and lists that they make are told apart
by it.
"""

from __future__ import annotations


def is_of_library(function: object) -> bool:
    """Whether a function, or a class, is one of these modules."""
    return str(getattr(function, "__module__", "")).startswith(f"{__name__}.")
