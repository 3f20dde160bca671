"""What DaCe learns when this package is imported too, in whichever order: NumPy functions, and of
what its gradients depend."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_EXTENSIONS = {
    "dace": ("distspmd.nodes.einsum", "distspmd.nodes.linear_solve"),
    "dace.autodiff.analysis": ("distspmd.dace_compat.gradient_dependencies",),
}
"""Of modules of DaCe, what extends them."""


def extend_dace() -> None:
    """Register the extensions, now or as soon as what they extend is imported (which is slow)."""
    for name, extensions in _EXTENSIONS.items():
        if name in sys.modules:
            _register(extensions)
        else:
            sys.meta_path.insert(0, _After(name, extensions))


def _register(extensions: Sequence[str]) -> None:
    for name in extensions:
        importlib.import_module(name)


class _After(MetaPathFinder):
    """Lets the usual finders find a module, and registers when it has been executed."""

    def __init__(self, name: str, extensions: Sequence[str]) -> None:
        self.name, self.extensions = name, extensions

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The usual spec of the module; None for all other modules."""
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            _register(self.extensions)

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
