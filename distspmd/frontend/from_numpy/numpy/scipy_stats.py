"""Distributions of ``scipy.stats`` with parameters of the run."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.scipy_signatures import OF_DISTRIBUTIONS
from distspmd.frontend.from_numpy.numpy.registry import CALLED, OTHERWISE, named


@named("scipy.stats", CALLED)
def _frozen(run: Context, distribution: Any, *given: Any, **named_: Any) -> Any:
    """A distribution with its parameters."""
    from scipy import stats  # type: ignore[import-untyped,unused-ignore]

    if not isinstance(distribution, stats.rv_continuous | stats.rv_discrete):
        return run.functions[OTHERWISE](run, distribution, given, named_)
    made: Any = object.__new__(type(stats.norm()))
    made.dist, made.args, made.kwds = distribution, given, named_
    return made


def _of_frozen(name: str) -> None:
    """Let a method of a distribution with its parameters be one of the distribution."""

    @named("scipy.stats", name, always=True)
    def handler(run: Context, owner: Any, *given: Any, **named_: Any) -> Any:
        if (inner := getattr(owner, "dist", None)) is not None:
            owner, given, named_ = inner, (*given, *owner.args), {**owner.kwds, **named_}
        elif not hasattr(owner, "pdf") and not hasattr(owner, "pmf"):  # ``entropy`` of samples
            from scipy import stats  # type: ignore[import-untyped,unused-ignore]

            return run.functions[OTHERWISE](run, getattr(stats, name), [owner, *given], named_)
        method = getattr(type(owner), name)
        if not has_data((given, named_)):
            return method(owner, *given, **named_)
        return run.functions[OTHERWISE](run, method, [owner, *given], named_)


for _name in (*OF_DISTRIBUTIONS, "entropy", "mean", "median", "std", "var", "interval"):
    _of_frozen(_name)
