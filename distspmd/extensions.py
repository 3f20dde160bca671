"""What DaCe learns when this package is imported too, in whichever order: NumPy functions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_EXTENSIONS = ("distspmd.nodes.einsum", "distspmd.nodes.solving")


def extend_dace() -> None:
    """Register the extensions, now or as soon as DaCe is imported (which takes seconds)."""
    if "dace" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterDace())


def _register() -> None:
    for name in _EXTENSIONS:
        importlib.import_module(name)


class _AfterDace(MetaPathFinder):
    """Lets the usual finders find DaCe, and registers when it has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The usual spec of DaCe; None for all other modules."""
        if fullname != "dace":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            _register()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
