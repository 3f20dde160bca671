"""Distributions of ``scipy.stats``: their densities, chances and quantiles."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.functions.registry import named
from distspmd.frontend.from_numpy.library import densities


def _asked_for(name: str) -> None:
    """Add a method of distributions."""
    python = getattr(densities, name)

    @named("scipy.stats", name)
    def handler(run: Any, distribution: Any, x: Any, *given: Any, **named_: Any) -> Any:
        inner = getattr(distribution, "dist", None)
        if inner is not None:  # with parameters of its own
            distribution, given, named_ = inner, distribution.args, distribution.kwds
        kind = type(distribution).__name__.removesuffix("_gen")
        return run.call(python, [kind, x, *given], named_)


for _name in ("pdf", "logpdf", "cdf", "sf", "ppf"):
    _asked_for(_name)
