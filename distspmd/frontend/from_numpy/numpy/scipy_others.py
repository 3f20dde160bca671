"""Functions of SciPy that are NumPy's by other names, and distances between points.

SciPy is needed by the program alone.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arrays.arithmetic import converted
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.scipy_signatures import OF_DISTRIBUTIONS
from distspmd.frontend.from_numpy.library import asked_solvers, convolutions
from distspmd.frontend.from_numpy.numpy.random_numbers import global_stream, make_stream
from distspmd.frontend.from_numpy.numpy.registry import CALLED, FUNCTIONS, OTHERWISE, named
from distspmd.frontend.from_numpy.numpy.written_out import read_in_place, written_out_in
from distspmd.frontend.from_numpy.reader.frames import Closure

# -- as in NumPy ----------------------------------------------------------------------------------


def _like(called: object, *options: str) -> Any:
    """A function of SciPy that NumPy has; options that change no values may be given."""

    def handler(run: Context, *given: object, **keywords: object) -> Any:
        kept = {key: value for key, value in keywords.items() if key not in options}
        return run.call(called, list(given), kept)

    return handler


_TRANSFORMS = (
    *("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2"),
    *("fftn", "ifftn", "rfftn", "irfftn", "fftfreq", "rfftfreq", "fftshift", "ifftshift"),
)
for _name in _TRANSFORMS:
    _known = _like(getattr(np.fft, _name), "overwrite_x", "workers", "plan")
    for _module in ("scipy.fft", "scipy.fftpack"):
        if _module == "scipy.fft" or not _name.startswith(("rfft", "irfft")):
            named(_module, _name)(_known)  # rfft of fftpack has its parts in another order
for _name in ("det", "pinv", "norm", "svdvals", "eigvalsh"):
    _known = _like(getattr(np.linalg, _name), "check_finite", "overwrite_a")
    named("scipy.linalg", _name)(_known)
_OF_LAPACK = ("check_finite", "overwrite_a", "overwrite_b", "lapack_driver")
for _name in ("svd", "lstsq"):
    _known = _like(getattr(np.linalg, _name), *_OF_LAPACK)
    named("scipy.linalg", _name)(_known)
named("scipy.integrate", "trapezoid")(_like(np.trapezoid))


# -- linear algebra -------------------------------------------------------------------------------


@written_out_in("scipy.linalg")
def _eigh(
    a: Any,
    b: object = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    if type != 1 or b is not None:
        raise NotImplementedError("scipy.linalg.eigh of two matrices")
    part: Any = "L" if lower else "U"
    return np.linalg.eigvalsh(a, part) if eigvals_only else np.linalg.eigh(a, part)


# -- distances ------------------------------------------------------------------------------------


@written_out_in("scipy.spatial")
def _cdist(XA: object, XB: object, metric: object = "euclidean") -> Any:  # noqa: N803
    if not callable(metric):
        raise NotImplementedError("SciPy knows the distance")
    return np.array([[metric(u, v) for v in np.asarray(XB)] for u in np.asarray(XA)])


@written_out_in("scipy.spatial")
def _pdist(X: object, metric: object = "euclidean") -> Any:  # noqa: N803
    if not callable(metric):
        raise NotImplementedError("SciPy knows the distance")
    points = np.asarray(X)
    first, second = np.triu_indices(points.shape[0], 1)
    return np.array([metric(points[i], points[j]) for i, j in zip(first, second, strict=True)])


@written_out_in("scipy.spatial")
def _euclidean(u: object, v: object) -> Any:
    return np.sqrt(np.sum((np.asarray(u) - np.asarray(v)) ** 2))


@written_out_in("scipy.spatial")
def _sqeuclidean(u: object, v: object) -> Any:
    return np.sum((np.asarray(u) - np.asarray(v)) ** 2)


@written_out_in("scipy.spatial")
def _cityblock(u: object, v: object) -> Any:
    return np.sum(np.abs(np.asarray(u) - np.asarray(v)))


@written_out_in("scipy.spatial")
def _chebyshev(u: object, v: object) -> Any:
    return np.max(np.abs(np.asarray(u) - np.asarray(v)))


read_in_place(
    "scipy.signal",
    *(convolutions.convolve, convolutions.correlate, convolutions.fftconvolve),
    convolutions.correlation_lags,
)


@written_out_in("scipy.integrate")
def _fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: Any = 5) -> Any:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    places = (b - a) * (nodes + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(weights * func(places, *args), axis=-1), None


@named("scipy.stats", CALLED)
def _frozen(run: Context, distribution: object, *given: object, **named_: object) -> Any:
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


@named("scipy.optimize", "curve_fit")
def _curve_fit(
    run: Context,
    f: object,
    xdata: object,
    ydata: object,
    p0: object = None,
    *given: object,
    **options: object,
) -> Any:
    if p0 is None:
        p0 = len(parameters_of(run, f)) - 1
    return run.call(asked_solvers.fitted, [f, xdata, ydata, p0, *given], options)


def parameters_of(run: Context, f: Any) -> list[str]:
    """The names of what a function takes, each by its place.

    Raises:
        Refusal: it takes any number.
    """
    if isinstance(f, Closure):
        places = [a.arg for a in (*f.node.args.posonlyargs, *f.node.args.args)]
        takes_any = f.node.args.vararg is not None
    else:
        kinds = inspect.signature(f).parameters.values()
        places = [p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD]
        takes_any = any(p.kind is p.VAR_POSITIONAL for p in kinds)
    if takes_any:
        run.tracer.refuse("curve_fit of a function with *args: give the first values, p0=")
    return places


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


def _elementwise(name: str, operation: str) -> None:
    """Add a function of elements that is an operation."""

    @named("scipy.special", name)
    def handler(run: Context, x: object) -> Tensor:
        tensor = run.tracer.tensor(x)
        kind = tensor.dtype if tensor.dtype == np.float32 else np.dtype(np.float64)
        if tensor.dtype.kind == "c":
            run.tracer.refuse(f"scipy.special.{name} of complex numbers")
        whole = converted(run.tracer, tensor, kind)
        return Tensor(whole.shape, kind, lambda i: apply(operation, whole.element(i)))


for _name, _operation in {
    "erf": "erf",
    "erfc": "erfc",
    "gamma": "gamma",
    "gammaln": "lgamma",
    "expit": "sigmoid",
    **{name: name for name in ("j0", "j1", "y0", "y1")},
}.items():
    _elementwise(_name, _operation)


@written_out_in("scipy.special")
def _jv(v: object, z: object) -> Any:
    from scipy.special import j0, j1  # type: ignore[import-untyped,unused-ignore]

    if v not in (0, 1):
        raise NotImplementedError("the C library has the orders 0 and 1")
    return j1(z) if v else j0(z)


@written_out_in("scipy.special")
def _logit(x: object) -> Any:
    return np.log(x / (1 - np.asarray(x)))


@written_out_in("scipy.special")
def _xlogy(x: Any, y: Any) -> Any:
    none = np.equal(x, 0) & ~np.isnan(y)
    return np.where(none, 0.0, x * np.log(np.where(none, 1.0, y)))


@written_out_in("scipy.special")
def _xlog1py(x: Any, y: Any) -> Any:
    none = np.equal(x, 0) & ~np.isnan(y)
    return np.where(none, 0.0, x * np.log1p(np.where(none, 0.0, y)))


@written_out_in("scipy.special")
def _entr(x: Any) -> Any:
    inside = -x * np.log(np.where(np.greater(x, 0), x, 1.0))
    return np.where(np.equal(x, 0), 0.0, np.where(np.less(x, 0), -np.inf, inside))


@written_out_in("scipy.special")
def _rel_entr(x: Any, y: Any) -> Any:
    both = np.greater(x, 0) & np.greater(y, 0)
    inside = x * np.log(np.where(both, x, 1.0) / np.where(both, y, 1.0))
    none = np.equal(x, 0) & np.greater_equal(y, 0)
    found = np.where(both, inside, np.where(none, 0.0, np.inf))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, found)


@written_out_in("scipy.special")
def _kl_div(x: Any, y: Any) -> Any:
    both = np.greater(x, 0) & np.greater(y, 0)
    inside = x * np.log(np.where(both, x, 1.0) / np.where(both, y, 1.0)) - x + y
    none = np.equal(x, 0) & np.greater_equal(y, 0)
    found = np.where(both, inside, np.where(none, y, np.inf))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, found)


@written_out_in("scipy.special")
def _ndtr(x: object) -> Any:
    from scipy.special import erfc  # type: ignore[import-untyped,unused-ignore]

    return 0.5 * erfc(-np.asarray(x) / np.sqrt(2.0))


# -- sums of exponentials -------------------------------------------------------------------------


@written_out_in("scipy.special")
def _logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    if return_sign:
        raise NotImplementedError("scipy.special.logsumexp with return_sign=True")
    values = np.asarray(a) + 0.0
    if b is not None:
        values = np.where(np.equal(b, 0), -np.inf, values)
    most = np.max(values, axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    parts = np.exp(values - most) if b is None else b * np.exp(values - most)
    found = np.log(np.sum(parts, axis=axis, keepdims=True)) + most
    if keepdims:
        return found
    return np.squeeze(found) if axis is None else np.squeeze(found, axis)


@written_out_in("scipy.special")
def _softmax(x: Any, axis: Any = None) -> Any:
    parts = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return parts / np.sum(parts, axis=axis, keepdims=True)


@written_out_in("scipy.special")
def _log_softmax(x: Any, axis: Any = None) -> Any:
    moved = x - np.max(x, axis=axis, keepdims=True)
    return moved - np.log(np.sum(np.exp(moved), axis=axis, keepdims=True))
