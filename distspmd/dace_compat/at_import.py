"""What is done as soon as DaCe is imported, by whomever: it learns to read and to show our nodes.

Importing this imports no DaCe.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_DACE = "dace"
_AFTERWARDS = ("distspmd.dace_compat.tasklet_kinds", "distspmd.dace_compat.viewer")
"""Modules that are imported once DaCe is."""


class _Once(MetaPathFinder):
    """Finds DaCe as others do, once, and imports what follows it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Where DaCe is; nothing of other modules."""
        if fullname != _DACE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            _follow()

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def follow_dace() -> None:
    """Import what follows DaCe: now, if it is imported, and else with it."""
    if _DACE in sys.modules:
        _follow()
    else:
        sys.meta_path.insert(0, _Once())


def _follow() -> None:
    for name in _AFTERWARDS:
        importlib.import_module(name)
