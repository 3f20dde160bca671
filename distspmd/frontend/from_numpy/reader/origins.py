"""Whether modules, classes and functions are a user's own, or those of Python and of libraries.

It is asked before a program is read, and imports nothing that reading needs.
"""

from __future__ import annotations

import functools
import sys
from enum import Enum

from distspmd.frontend.from_numpy.library import is_of_library

OF_PYTHON = frozenset(sys.stdlib_module_names) - {"__main__"}
_LIBRARIES = OF_PYTHON | {"numpy", "scipy", "sympy", "dace", "torch", "mpi4py", "distspmd"}


def is_library_module(module: str) -> bool:
    """Whether a module is one of Python or of a package of arrays, by its name."""
    return module != "__main__" and module.split(".")[0] in _LIBRARIES


def is_own_class(kind: object) -> bool:
    """Whether a class is one that a user has written, of objects with attributes."""
    return isinstance(kind, type) and _is_written_by_user(kind)


@functools.cache
def _is_written_by_user(kind: type) -> bool:
    is_library = is_library_module(kind.__module__) and not is_of_library(kind)
    return not is_library and not issubclass(kind, BaseException | Enum)
