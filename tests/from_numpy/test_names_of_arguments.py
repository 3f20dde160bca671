"""Functions take their arguments by the names that NumPy gives them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS, REFUSALS, own_names
from from_numpy.corpus.registry import Case
from from_numpy.harness import run_here
from from_numpy.outcomes import RIGHT


def by_name(x: Any) -> Any:
    table = np.full(shape=(3, 4), fill_value=3.0) + np.eye(N=3, M=4)
    parts = np.split(ary=np.transpose(a=table, axes=(1, 0)), indices_or_sections=[1, 3], axis=0)
    wide = np.pad(array=x, pad_width=1, mode="edge"), np.tile(A=x, reps=2), np.diag(v=x, k=1)
    kept = np.where(x > 3, x, 0), np.clip(a=x, a_min=2, a_max=5), np.repeat(a=x, repeats=2)
    rows = np.expand_dims(a=x, axis=0), np.moveaxis(a=table, source=0, destination=1)
    ordered = np.sort(a=x), np.searchsorted(a=np.arange(9.0), v=x, side="right"), np.unique(ar=x)
    sums = np.sum(a=x), np.mean(a=table, axis=0), np.linspace(start=0, stop=1, num=5)
    np.fill_diagonal(a=table, val=7)
    return parts, wide, kept, rows, ordered, sums, table, round(number=2.567, ndigits=1)


def test_names_of_numpy_are_taken() -> None:
    values = np.array([5.0, 1, 4, 2, 8, 3, 9])
    found = run_here(Case("by_name", by_name, "choices", "", lambda _: (values.copy(),), ()))
    assert found.kind == RIGHT, found


def test_each_function_knows_the_name_of_its_first_argument() -> None:
    by_place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    unknown = []
    for called, handler in FUNCTIONS.items():
        if not str(getattr(called, "__module__", "")).startswith("numpy") or handler in REFUSALS:
            continue
        try:
            first = next(iter(inspect.signature(called).parameters.values()), None)
        except (TypeError, ValueError):
            continue
        own = inspect.signature(handler).parameters
        takes_all = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in own.values())
        if first is None or first.kind is not by_place or takes_all:
            continue
        if first.name not in own and own_names(called, handler).get(first.name) not in own:
            unknown.append(called.__name__)
    assert unknown == []
