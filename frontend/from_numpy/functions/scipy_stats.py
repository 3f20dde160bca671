"""Distributions of ``scipy.stats``: their densities, chances and quantiles."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.functions.registry import named
from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.library import densities, incomplete, samples


def _asked_for(name: str) -> None:
    """Add a method of distributions."""
    python = getattr(densities, name)

    @named("scipy.stats", name)
    def handler(run: Any, distribution: Any, x: Any, *given: Any, **named_: Any) -> Any:
        inner = getattr(distribution, "dist", None)
        if inner is not None:  # with parameters of its own
            distribution, given, named_ = inner, distribution.args, distribution.kwds
        kind = type(distribution).__name__.removesuffix("_gen")
        if kind == "multivariate_normal" and name in ("pdf", "logpdf"):
            return run.call(getattr(densities, f"multivariate_{name}"), [x, *given], named_)
        return run.call(python, [kind, x, *given], named_)


for _name in ("pdf", "logpdf", "cdf", "sf", "ppf"):
    _asked_for(_name)

read_in_place(
    "scipy.stats",
    *(samples.pearsonr, samples.spearmanr, samples.linregress, samples.rankdata),
    *(samples.ttest_1samp, samples.ttest_rel, samples.ttest_ind, samples.f_oneway),
    *(samples.chisquare, samples.iqr, samples.median_abs_deviation),
)
read_in_place(
    "scipy.special",
    *(incomplete.betainc, incomplete.gammainc, incomplete.gammaincc, incomplete.stdtr),
    *(incomplete.fdtr, incomplete.fdtrc, incomplete.chdtr, incomplete.chdtrc),
)
