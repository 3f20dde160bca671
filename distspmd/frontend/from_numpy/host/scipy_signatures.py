"""Functions of SciPy that each rank calls on its block, by the dimensions that they need whole.

A row is a signature, as NumPy writes those of universal functions, and the functions that have it,
by their names below ``scipy``. ``axis`` in a signature stands for the dimensions that the argument
``axis`` or ``axes`` of the call names, wherever these are; other names are those of last
dimensions. A result of ``(axis)`` has as many dimensions there, of any length. Universal functions
of ``scipy.special`` and methods of distributions take numbers, and so are in no row.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.blocks import MOST_BLOCKS, term_of
from distspmd.frontend.from_numpy.host.probes import Form
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import same
from distspmd.runtime.host.host_functions import Signature
from distspmd.runtime.host.library_calls import Session

AXIS = "axis"
"""The name of a dimension that a call says by ``axis`` or ``axes``."""

ROWS: dict[str, str] = {
    "()->()": """
        special.comb special.perm special.factorial special.factorial2
        special.polygamma special.zeta special.diric special.softplus
        special.multigammaln special.lambertw special.jvp special.yvp special.ivp special.kvp
        special.h1vp special.h2vp special.spherical_jn special.spherical_yn special.spherical_in
        special.spherical_kn special.stirling2
        signal.sawtooth signal.square signal.gausspulse signal.chirp signal.gauss_spline
        stats.boxcox stats.yeojohnson""",
    "(axis)->(axis)": """
        signal.detrend signal.savgol_filter signal.hilbert signal.hilbert2 signal.decimate
        signal.resample signal.resample_poly signal.czt signal.zoom_fft
        fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft
        fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.hfft2 fft.ihfft2
        fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.hfftn fft.ihfftn
        fft.dct fft.idct fft.dst fft.idst fft.dctn fft.idctn fft.dstn fft.idstn
        fft.fftshift fft.ifftshift fftpack.dct fftpack.idct fftpack.dst fftpack.idst
        ndimage.gaussian_filter1d ndimage.uniform_filter1d ndimage.maximum_filter1d
        ndimage.minimum_filter1d ndimage.spline_filter1d
        ndimage.gaussian_filter ndimage.uniform_filter ndimage.median_filter
        ndimage.maximum_filter ndimage.minimum_filter ndimage.rank_filter
        ndimage.percentile_filter ndimage.gaussian_laplace ndimage.laplace
        ndimage.grey_closing ndimage.grey_opening
        ndimage.grey_dilation ndimage.grey_erosion ndimage.white_tophat ndimage.black_tophat
        ndimage.morphological_gradient ndimage.morphological_laplace
        ndimage.binary_closing ndimage.binary_opening ndimage.binary_dilation
        ndimage.binary_erosion ndimage.binary_fill_holes
        stats.zscore stats.gzscore stats.rankdata stats.trimboth stats.trim1
        stats.false_discovery_control integrate.cumulative_simpson
        special.softmax special.log_softmax""",
    "(b),(a),(axis)->(axis)": "signal.lfilter signal.filtfilt",
    "(s,c),(axis)->(axis)": "signal.sosfilt signal.sosfiltfilt",
    "(h),(axis)->(axis)": "signal.upfirdn",
    "(axis),(w)->(axis)": "ndimage.convolve1d ndimage.correlate1d",
    "(axis),(axis)->(axis)": """
        integrate.cumulative_trapezoid stats.zmap""",
    "(axis)->()": """
        integrate.romb special.logsumexp stats.gmean stats.hmean stats.pmean stats.sem stats.iqr
        stats.variation stats.kurtosis stats.skew stats.moment stats.tmean stats.tvar stats.tstd
        stats.tsem stats.tmin stats.tmax stats.kstat stats.kstatvar stats.circmean stats.circstd
        stats.circvar stats.gstd stats.median_abs_deviation stats.differential_entropy
        stats.trim_mean stats.mode stats.combine_pvalues stats.jarque_bera stats.normaltest
        stats.kurtosistest stats.skewtest stats.shapiro linalg.norm""",
    "(axis),(axis)->()": """
        integrate.trapezoid integrate.simpson stats.entropy stats.ttest_ind stats.ttest_rel
        stats.pearsonr stats.linregress stats.mannwhitneyu stats.ks_2samp stats.ranksums
        stats.wilcoxon stats.brunnermunzel stats.mood stats.cramervonmises_2samp
        stats.kendalltau stats.spearmanrho stats.siegelslopes
        stats.theilslopes stats.pointbiserialr stats.weightedtau stats.chatterjeexi
        stats.chisquare stats.power_divergence
        stats.alexandergovern stats.bartlett stats.f_oneway stats.fligner
        stats.kruskal stats.levene spatial.distance.jensenshannon""",
    "(n,m)->(k,l)": """
        linalg.expm linalg.logm linalg.sqrtm linalg.cosm linalg.sinm linalg.tanm linalg.coshm
        linalg.sinhm linalg.tanhm linalg.signm linalg.inv linalg.pinv linalg.pinvh linalg.cholesky
        linalg.null_space linalg.orth
        linalg.lu linalg.qr linalg.rq linalg.polar linalg.schur linalg.hessenberg linalg.ldl
        linalg.svd linalg.eig linalg.eigh linalg.matrix_balance""",
    "(n,m)->(k)": """
        linalg.svdvals linalg.eigvals linalg.eigvalsh linalg.eigvals_banded""",
    "(n,m)->()": """
        linalg.det linalg.expm_cond linalg.issymmetric linalg.ishermitian linalg.bandwidth""",
    "(n,m),(k,l)->(i,j)": """
        linalg.expm_frechet linalg.solve_triangular linalg.solve linalg.orthogonal_procrustes
        linalg.khatri_rao linalg.solve_continuous_lyapunov linalg.solve_discrete_lyapunov""",
    "(n,m),(k,l)->(i)": "linalg.subspace_angles",
    "(n,m),(k,l),(i,j)->(p,q)": "linalg.solve_sylvester",
    "(n)->(k,l)": """
        linalg.circulant linalg.companion linalg.fiedler linalg.fiedler_companion
        linalg.convolution_matrix""",
    "(n),(m)->(k,l)": "linalg.toeplitz",
    "(d),(m,d)->(m)": "spatial.distance.cdist",
}
"""By signature."""

_OF_NUMBERS = """
    interp1d CubicSpline PchipInterpolator Akima1DInterpolator CubicHermiteSpline PPoly BSpline
    UnivariateSpline InterpolatedUnivariateSpline LSQUnivariateSpline KroghInterpolator
    BarycentricInterpolator FloaterHormannInterpolator AAA interpolate.splev"""
_OF_POINTS = """
    RegularGridInterpolator RBFInterpolator LinearNDInterpolator NearestNDInterpolator
    CloughTocher2DInterpolator KDTree.query cKDTree.query Delaunay.find_simplex"""
PLACES: dict[str, str] = {
    **dict.fromkeys(_OF_NUMBERS.split(), "()->()"),
    **dict.fromkeys(_OF_POINTS.split(), "(d)->()"),
}
"""Objects that are called at places, methods, and functions: their first arguments are split."""

NAMES: dict[str, Signature] = {
    name: Signature.of(text) for text, names in ROWS.items() for name in names.split()
}
"""The signatures of functions."""

_DISTRIBUTIONS = "scipy.stats._distn_infrastructure"
OF_DISTRIBUTIONS = frozenset(
    ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "pmf", "logpmf"]
)
"""Methods of distributions that take numbers."""
_BY_ALL = frozenset(["stats.mannwhitneyu", "stats.wilcoxon"])
"""Functions whose ``method="auto"`` looks at all lines; where one is named they are split."""
_ALONG = {("signal.lfilter", "zi"), ("integrate.cumulative_simpson", "x")}
"""Further arguments that lie along the dimension of ``axis``."""


def signature_of(called: Any) -> Signature | None:
    """The signature of a function of SciPy; None where it is in no row."""
    if isinstance(called, np.ufunc):
        numbers = [",".join(["()"] * count) for count in (called.nin, called.nout)]
        return Signature.of(called.signature or "->".join(numbers))
    if getattr(called, "__module__", "") == _DISTRIBUTIONS and called.__name__ in OF_DISTRIBUTIONS:
        return Signature.of("()->()")
    return NAMES.get(name_of(called))


def name_of(called: object) -> str:
    """The name of a function below ``scipy``, without modules that are private."""
    parts = str(getattr(called, "__module__", "")).split(".")[1:]
    public = [part for part in parts if not part.startswith("_")]
    return ".".join([*public, str(getattr(called, "__name__", ""))])


Terms = tuple[list[str], list[str]]
"""Letters of arrays, and of results."""


def terms_by_signature(
    run: Context, tree: Any, data: Sequence[Tensor], form: Form, kind_of: Callable[[Any], type]
) -> Terms | None:
    """Letters of the arrays and results of a question to SciPy; None where it is not split.

    Args:
        run: the interpreter.
        tree: the question: a call, or a part of what one gives.
        data: the arrays that it names.
        form: of the answer.
        kind_of: what says of which class an object is, by the question that makes it.
    """
    every = [
        n for shape in (*(t.shape for t in data), *(f.shape for f in form.leaves)) for n in shape
    ]
    while isinstance(tree, Mapping) and tree.keys() & {"get", "item"}:
        (tree, _), *_ = tree.values()
    if "call" not in tree or run.tracer.is_decided_by_data(*every):
        return None
    called, given, named = tree["call"]
    is_function = "import" in called
    function = Session(()).value(called) if is_function else None
    name = name_of(function) if is_function else _name_of_object(called, kind_of)
    try:
        if name in PLACES:
            return _at_places(Signature.of(PLACES[name]), given, data, form)
        signature = signature_of(function) if is_function else None
        if signature is None:
            return None
        call = _Call(function, signature, given, named, data)
        batch = run.tracer.broadcast_shape([call.block(n) for n in range(len(data))])
        if not 0 < len(batch) <= MOST_BLOCKS:
            return None
        return call.terms(batch), call.results(batch, form)
    except _NotSplit:
        return None


def _name_of_object(called: Any, kind_of: Callable[[Any], type]) -> str:
    """The class of an object that is called, or whose method is, and the name of that."""
    if "get" in called:
        made, method = called["get"]
        return f"{kind_of(made).__name__}.{method}"
    return kind_of(called).__name__


def _at_places(
    signature: Signature, given: Sequence[Any], data: Sequence[Tensor], form: Form
) -> Terms:
    """The letters of a call whose first argument has places; all others it needs whole."""
    where = _number(given[0]) if given else None
    if where is None:
        raise _NotSplit
    count = data[where].ndim - len(signature.inputs[0])
    batch = tuple(data[where].shape[:count])
    if not 0 < count <= MOST_BLOCKS:
        raise _NotSplit
    operands = [
        _Operand(tuple(t.shape), frozenset(range(count if n == where else 0, t.ndim)))
        for n, t in enumerate(data)
    ]
    made = [_Operand(tuple(f.shape), frozenset(range(count, len(f.shape)))) for f in form.leaves]
    for leaf, result in zip(form.leaves, made, strict=True):
        if leaf.most is not None or len(result.block()) != count:
            raise _NotSplit
        if not all(map(same, result.block(), batch)):
            raise _NotSplit
    return [o.term(batch) for o in operands], [o.term(batch) for o in made]


class _NotSplit(Exception):
    """A call of which the signature does not say how it is split."""


@dataclass(frozen=True)
class _Operand:
    """The dimensions of an array that a function needs whole, by their places."""

    shape: tuple[Length, ...]
    whole: frozenset[int]

    def block(self) -> tuple[Length, ...]:
        return tuple(n for d, n in enumerate(self.shape) if d not in self.whole)

    def term(self, batch: Sequence[Length]) -> str:
        names = [f"d{d}" for d in range(len(self.shape))]
        split = iter(term_of(self.block(), batch, (), ()))
        return "".join(
            term_of((), (), [names[d]], names) if d in self.whole else next(split)
            for d in range(len(self.shape))
        )


class _Call:
    """A call, and what its signature says of the dimensions of its arrays.

    Raises:
        _NotSplit: it says nothing of some.
    """

    def __init__(
        self,
        called: object,
        signature: Signature,
        given: Sequence[Any],
        named: Mapping[str, Any],
        data: Sequence[Tensor],
    ) -> None:
        self.signature, self.data = signature, data
        self.is_integral = name_of(called).startswith("integrate.")  # places may be one line
        self.cores: dict[int, tuple[str, ...]] = {}
        if any(signature.inputs) or any(signature.outputs):
            arguments = _arguments(called, given, named)
        else:  # numbers, by whatever name
            arguments = {str(n): v for n, v in enumerate([*given, *named.values()])}
            if isinstance(called, np.ufunc) and named:
                raise _NotSplit
        if name_of(called) in _BY_ALL and arguments.get("method") == "auto":
            raise _NotSplit
        self.axes, self.keeps = _axes(arguments, data), bool(arguments.get("keepdims"))
        for core, tree in self._inputs(arguments):
            if (number := _number(tree)) is not None:
                self.cores[number] = core
        for name, tree in arguments.items():
            if (name_of(called), name) in _ALONG and _number(tree) is not None:
                self.cores[_number(tree) or 0] = (AXIS,)
        if self.cores.keys() != set(range(len(data))):
            raise _NotSplit
        self.ndim = max((data[n].ndim for n, c in self.cores.items() if AXIS in c), default=0)
        self._operands = [self._operand(n) for n in range(len(data))]

    def _inputs(self, arguments: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """What the signature says of each argument, and the argument."""
        inputs = self.signature.inputs
        for n, value in enumerate(arguments.values()):
            if isinstance(value, tuple):  # ``*samples``
                yield from ((inputs[0], each) for each in value)
            elif n < len(inputs) or inputs == ((),):
                yield inputs[min(n, len(inputs) - 1)], value

    def _operand(self, number: int) -> _Operand:
        tensor, core = self.data[number], self.cores[number]
        shape = tuple(tensor.shape)
        if AXIS not in core:
            if len(core) > len(shape):
                raise _NotSplit
            return _Operand(shape, frozenset(range(len(shape) - len(core), len(shape))))
        return _Operand(shape, self._along(len(shape)))

    def _along(self, ndim: int) -> frozenset[int]:
        """Places of the dimensions that ``axis`` names in an array of so many."""
        if not self.axes:
            raise _NotSplit
        is_last = self.axes in ((-1,), (self.ndim - 1,)) or self.is_integral
        if ndim == 1 and is_last:
            return frozenset([0])
        if ndim != self.ndim and any(a >= 0 for a in self.axes):
            raise _NotSplit
        found = frozenset(a if a >= 0 else a + ndim for a in self.axes)
        if not found <= {*range(ndim)}:
            raise _NotSplit
        return found

    def block(self, number: int) -> tuple[Length, ...]:
        """Extents of the dimensions of an array that are split."""
        return self._operands[number].block()

    def terms(self, batch: Sequence[Length]) -> list[str]:
        """Letters of the arrays."""
        return [operand.term(batch) for operand in self._operands]

    def results(self, batch: Sequence[Length], form: Form) -> list[str]:
        """Letters of the results.

        Raises:
            _NotSplit: one is not known to have the dimensions of blocks.
        """
        found = []
        outputs = self.signature.outputs
        if len(outputs) == 1:
            outputs = outputs * len(form.leaves)
        if len(outputs) != len(form.leaves):
            raise _NotSplit
        for leaf, core in zip(form.leaves, outputs, strict=True):
            made = _Operand(tuple(leaf.shape), self._made(len(leaf.shape), core, len(batch)))
            block = made.block()
            if leaf.most is not None or len(block) != len(batch):
                raise _NotSplit
            if not all(map(same, block, batch)):
                raise _NotSplit
            found.append(made.term(batch))
        return found

    def _made(self, ndim: int, core: tuple[str, ...], batch: int) -> frozenset[int]:
        """Places of dimensions of a result that no block has."""
        if self.axes and ndim == self.ndim and (AXIS in core or self.keeps):
            return self._along(ndim)
        if AXIS in core or (self.ndim and ndim > batch):
            raise _NotSplit
        return frozenset(range(batch, ndim))


def _arguments(called: object, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, in the order of the function's parameters, with defaults."""
    try:
        bound = _parameters(called).bind(*given, **named)
    except (TypeError, ValueError):
        raise _NotSplit from None
    bound.apply_defaults()
    return dict(bound.arguments)


@functools.lru_cache(maxsize=1024)
def _parameters(called: Any) -> inspect.Signature:
    return inspect.signature(called)


def _axes(arguments: Mapping[str, Any], data: Sequence[Tensor]) -> tuple[int, ...]:
    """What a call says of its axis; nothing where it takes none, or all."""
    found = arguments.get("axes", arguments.get(AXIS))
    if isinstance(found, Mapping) and "tuple" in found:
        found = found["tuple"]
    if isinstance(found, Mapping) and "list" in found:
        found = found["list"]
    every = tuple(found) if isinstance(found, tuple | list) else (found,)
    return every if all(type(a) is int for a in every) else ()


def _number(tree: object) -> int | None:
    """Which array a tree is; None where it is known, or no array alone."""
    found = tree.get("value") if isinstance(tree, Mapping) else None
    return found if type(found) is int else None
