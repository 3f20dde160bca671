"""What DaCe has to change a program with, found in DaCe itself, and how each is applied."""

from __future__ import annotations

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import dace.transformation
from dace import SDFG, dtypes
from dace.sdfg.graph import SubgraphView
from dace.transformation import pass_pipeline as passes
from dace.transformation.auto import auto_optimize
from dace.transformation.transformation import (
    ExpandTransformation,
    PatternTransformation,
    SubgraphTransformation,
)

Apply = Callable[[SDFG], bool]
"""Changes an SDFG in place; whether there was anything to change."""
SMALL = 2
"""The size of tiles of transformations that make some, beside their defaults; no size is even."""


_MATCHED = (PatternTransformation, SubgraphTransformation)


@cache
def transformations() -> dict[str, Apply]:
    """All of DaCe's transformations, passes and functions that change a program, by name."""
    for module in pkgutil.walk_packages(dace.transformation.__path__, "dace.transformation."):
        importlib.import_module(module.name)
    found: dict[str, Apply] = {}
    for kind in _subclasses(PatternTransformation):
        if not issubclass(kind, ExpandTransformation) and _is_complete(kind):
            found[kind.__name__] = partial(_apply_pattern, kind, {})
            if small := _small_tiles(kind):
                found[f"{kind.__name__}({SMALL})"] = partial(_apply_pattern, kind, small)
    for kind in _subclasses(SubgraphTransformation):
        found[kind.__name__] = partial(_apply_to_states, kind)
    for kind in _subclasses(passes.Pass):
        if not kind.__subclasses__() and not issubclass(kind, _MATCHED) and _modifies(kind):
            found[kind.__name__] = partial(_apply_pass, kind)
    found |= {name: partial(_apply_function, each) for name, each in _automatic()}
    return dict(sorted(found.items()))


def _subclasses(kind: type) -> list[Any]:
    """Classes of DaCe below one, each once."""
    found: dict[type, None] = {}
    for each in kind.__subclasses__():
        found |= {each: None, **dict.fromkeys(_subclasses(each))}
    own = (k for k in found if k.__module__.startswith("dace.transformation."))
    return [each for each in own if not inspect.isabstract(each)]


def _is_complete(kind: Any) -> bool:
    """Whether it says what it matches, and what it does there."""
    return bool(
        kind.expressions.__func__ is not PatternTransformation.expressions.__func__
        and kind.apply is not PatternTransformation.apply
    )


def _small_tiles(kind: Any) -> dict[str, Any]:
    """Settings for small tiles, of a transformation that has some."""
    names = getattr(kind, "__properties__", {})
    found: dict[str, Any] = {"tile_size": str(SMALL)} if "tile_size" in names else {}
    return found | ({"tile_sizes": [SMALL]} if "tile_sizes" in names else {})


def _apply_pattern(kind: Any, options: dict[str, Any], sdfg: SDFG) -> bool:
    return bool(sdfg.apply_transformations(kind, options=options or None, validate=False))


def _apply_to_states(kind: Any, sdfg: SDFG) -> bool:
    for state in sdfg.states():
        transformation = kind()
        transformation.setup_match(SubgraphView(state, state.nodes()))
        if transformation.can_be_applied(sdfg, SubgraphView(state, state.nodes())):
            transformation.apply(sdfg)
            return True
    return False


def _modifies(kind: Any) -> bool:
    """Whether a pass needs no settings, and is more than an analysis."""
    try:
        return bool(kind().modifies() != passes.Modifies.Nothing)
    except (NotImplementedError, TypeError):
        return False


def _apply_pass(kind: Any, sdfg: SDFG) -> bool:
    before = sdfg.hash_sdfg()
    passes.Pipeline([kind()]).apply_pass(sdfg, {})
    return bool(sdfg.hash_sdfg() != before)


def _automatic() -> Iterator[tuple[str, Any]]:
    """The functions of DaCe's automatic optimisation that take an SDFG."""
    for name, function in inspect.getmembers(auto_optimize, inspect.isfunction):
        first = next(iter(inspect.signature(function).parameters.values()), None)
        takes = first is not None and first.name in ("sdfg", "graph_or_subgraph")
        if takes and function.__module__ == auto_optimize.__name__:
            yield f"{name}()", function


def _apply_function(function: Any, sdfg: SDFG) -> bool:
    before = sdfg.hash_sdfg()
    given = {
        name: {"device": dtypes.DeviceType.CPU}.get(name, False)
        for name, p in inspect.signature(function).parameters.items()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    }
    function(sdfg, **dict(list(given.items())[1:]))
    return bool(sdfg.hash_sdfg() != before)


@cache
def _parsed(program: Any, simplify: bool) -> SDFG:
    return program.to_sdfg(simplify=simplify)


def changed(apply: Apply, program: Any) -> SDFG | None:
    """A program that was changed: as DaCe simplifies it, else as it parses it; None for no match.

    Raises:
        Exception: whatever the transformation raises, or the validation of what it made.
    """
    for simplify in (True, False):
        sdfg = copy.deepcopy(_parsed(program, simplify))
        if apply(sdfg):
            sdfg.validate()
            return sdfg
    return None
