"""How far rounding moves the results of a program: NumPy's, with arguments that are an ulp apart.

A program whose results move so by more than the tolerance amplifies rounding, its own as well, and
another order of operations gives another result. By how much is measured, for each case alike.
"""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from distspmd.checking.compare import compare
from distspmd.runtime.calls.form import rebuilt
from from_numpy.corpus.registry import Case
from from_numpy.outcomes import listed

TRIALS = 6
ROUNDINGS = 10.0
"""How many roundings a result may have suffered for each of its arguments."""
MOST = float(np.finfo(np.float64).eps) ** 0.25
"""What may differ at most, relative to the largest value: beyond, nothing is known of a result."""


def movements(case: Case, result: Any, after: Mapping[str, Any]) -> dict[str, float]:
    """What rounding may change of each array, relative to its largest value; by where it is.

    Args:
        case: a program.
        result: what NumPy gives.
        after: its arguments behind the call, by name.
    """
    found: dict[str, float] = {}
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        given, named = case.arguments()
        given, named = moved(given, rng), moved(named, rng)
        changed = case.bound_to(given, named)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            other = copy.deepcopy(listed(case.function(*given, **named)))
        pairs = [("result", other, result), *((n, changed[n], v) for n, v in after.items())]
        for where, one, wanted in pairs:
            for place, apart in _apart(one, wanted, where):
                found[place] = max(found.get(place, 0.0), ROUNDINGS * apart)
    return {where: most for where, most in found.items() if most <= MOST}


def moved(value: Any, rng: np.random.Generator) -> Any:
    """A value in which each number of floating point is an ulp larger or smaller, or the same.

    Arrays of whole numbers have no rounding.
    """
    if isinstance(value, Mapping):
        return {key: moved(each, rng) for key, each in value.items()}
    if isinstance(value, tuple):
        return rebuilt(value, [moved(each, rng) for each in value])
    if isinstance(value, list):
        return [moved(each, rng) for each in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        if np.array_equal(value, np.round(value)):
            return value.copy()
        ulps = rng.integers(-1, 2, value.shape)
        return (value * (1 + ulps * np.finfo(value.dtype).eps)).astype(value.dtype)
    if isinstance(value, float) and not value.is_integer():
        return type(value)(value * (1 + rng.integers(-1, 2) * np.finfo(np.float64).eps))
    return value


def _apart(found: Any, wanted: Any, where: str) -> Iterator[tuple[str, float]]:
    """By how much the arrays of results differ whose shapes and types are the same."""
    if isinstance(wanted, tuple | list):
        if isinstance(found, tuple | list) and len(found) == len(wanted):
            for n, (one, other) in enumerate(zip(found, wanted, strict=True)):
                yield from _apart(one, other, f"{where}[{n}]")
    elif isinstance(wanted, Mapping):
        if isinstance(found, Mapping) and list(found) == list(wanted):
            for key, value in wanted.items():
                yield from _apart(found[key], value, f"{where}[{key!r}]")
    elif (want := np.asarray(wanted)).dtype.kind in "fc":
        have = np.asarray(found)
        if have.shape == want.shape and have.dtype == want.dtype:
            yield where, compare(where, have, want).largest
