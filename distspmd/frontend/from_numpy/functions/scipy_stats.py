"""Distributions of ``scipy.stats``: their densities, chances and quantiles."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.functions.registry import CALLED, named
from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.library import densities, incomplete, samples, shaped


def _asked_for(name: str) -> None:
    """Add a method of distributions."""
    python = getattr(densities, name, densities.pdf)

    @named("scipy.stats", name)
    def handler(run: Any, distribution: Any, x: Any, *given: Any, **named_: Any) -> Any:
        inner = getattr(distribution, "dist", None)
        if inner is not None:  # with parameters of its own
            distribution, given, named_ = inner, distribution.args, distribution.kwds
        kind = type(distribution).__name__.removesuffix("_gen")
        if kind == "multivariate_normal" and name in ("pdf", "logpdf"):
            return run.call(getattr(densities, f"multivariate_{name}"), [x, *given], named_)
        if kind in shaped.SHAPES:
            return _of_shape(run, name, kind, [x, *given], named_)
        return run.call(python, [kind, x, *given], named_)


def _of_shape(run: Any, name: str, kind: str, given: list[Any], named_: dict[str, Any]) -> Any:
    """A method of a distribution whose first parameters say its shape."""
    shapes = [*given[1:], *(named_[n] for n in shaped.SHAPES[kind] if n in named_)]
    count = len(shaped.SHAPES[kind])
    rest = {k: v for k, v in named_.items() if k not in shaped.SHAPES[kind]}
    if len(shapes) < count:
        run.tracer.refuse(f"scipy.stats.{kind}.{name} without {', '.join(shaped.SHAPES[kind])}")
    where = [kind, given[0], tuple(shapes[:count]), *shapes[count:]]
    return run.call(getattr(shaped, name), where, rest)


@named("scipy.stats", CALLED)
def _frozen(run: Any, distribution: Any, *given: Any, **named_: Any) -> Any:
    """A distribution with its parameters."""
    from scipy import stats  # type: ignore[import-untyped,unused-ignore]

    if not isinstance(distribution, stats.rv_continuous | stats.rv_discrete):
        if type(distribution) is not type(stats.multivariate_normal):
            run.tracer.refuse(f"{type(distribution).__name__} of scipy.stats with parameters")
        made: Any = object.__new__(type(stats.multivariate_normal(mean=[0.0])))
    else:
        made = object.__new__(type(stats.norm()))
    made.dist, made.args, made.kwds = distribution, given, named_
    return made


for _name in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "sf", "ppf"):
    _asked_for(_name)

read_in_place(
    "scipy.stats",
    *(samples.pearsonr, samples.spearmanr, samples.linregress, samples.rankdata),
    *(samples.ttest_1samp, samples.ttest_rel, samples.ttest_ind, samples.f_oneway),
    *(samples.chisquare, samples.iqr, samples.median_abs_deviation),
    *(samples.margins, samples.expected_freq),
)
read_in_place(
    "scipy.special",
    *(incomplete.betainc, incomplete.gammainc, incomplete.gammaincc, incomplete.stdtr),
    *(incomplete.fdtr, incomplete.fdtrc, incomplete.chdtr, incomplete.chdtrc),
)
