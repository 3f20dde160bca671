"""``rvs`` of the distributions of ``scipy.stats``: draws of the program's generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.random_numbers import global_stream, make_stream
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS, named

_CONTINUOUS = {
    "uniform": ("uniform", ()),
    "norm": ("standard_normal", ()),
    "expon": ("standard_exponential", ()),
    "gamma": ("standard_gamma", ("a",)),
    "beta": ("beta", ("a", "b")),
    "chi2": ("chisquare", ("df",)),
    "t": ("standard_t", ("df",)),
    "laplace": ("laplace", ()),
    "logistic": ("logistic", ()),
    "cauchy": ("standard_cauchy", ()),
    "rayleigh": ("rayleigh", ()),
    "weibull_min": ("weibull", ("c",)),
}
"""By a distribution of SciPy: the method of generators, and the parameters of its shape."""
_DISCRETE = {
    "poisson": ("poisson", ("mu",)),
    "binom": ("binomial", ("n", "p")),
    "bernoulli": ("binomial", ("p",)),
    "randint": ("integers", ("low", "high")),
    "geom": ("geometric", ("p",)),
}


@named("scipy.stats", "rvs", always=True)
def _rvs(run: Context, distribution: Any, *given: Any, **options: Any) -> Any:
    """``distribution.rvs(shape, loc, scale, size, random_state)``."""
    inner = getattr(distribution, "dist", None)
    if inner is not None:  # with parameters of its own
        given, options = (*distribution.args, *given), {**distribution.kwds, **options}
        distribution = inner
    kind = type(distribution).__name__.removesuffix("_gen")
    is_discrete = kind in _DISCRETE
    if not is_discrete and kind not in _CONTINUOUS:
        run.tracer.refuse(f"draws of the distribution {kind!r} of scipy.stats; use np.random")
    method, shapes = (_DISCRETE if is_discrete else _CONTINUOUS)[kind]
    names = [*shapes, "loc", *([] if is_discrete else ["scale"]), "size", "random_state"]
    options = {**dict(zip(names, given, strict=False)), **options}
    if unknown := options.keys() - set(names):
        run.tracer.refuse(f"TypeError: {kind}.rvs has no parameter {sorted(unknown)[0]!r}")
    if missing := [name for name in shapes if name not in options]:
        run.tracer.refuse(f"TypeError: {kind}.rvs needs {missing[0]!r}")
    parameters = [options[name] for name in shapes]
    if kind == "bernoulli":
        parameters = [1, *parameters]
    state = options.get("random_state")
    stream = global_stream(run) if state is None else make_stream(run, state)
    size = options.get("size")
    found = FUNCTIONS[vars(type(stream))[method]](run, stream, *parameters, size=size)
    for name, called in (("scale", np.multiply), ("loc", np.add)):
        if name in options:
            found = run.call(called, [found, options[name]], {})
    return found
