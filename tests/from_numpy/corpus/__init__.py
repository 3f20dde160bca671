"""Programs as authors write them, by field; each is registered with a maker of its inputs."""

import importlib
import pkgutil

from from_numpy.corpus.registry import CORPUS, Case

for _module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["CORPUS", "Case"]
