"""Calls of all functions of SciPy that are split by signature: arrays, dimensions and types."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.host.scipy_signatures import NAMES, ROWS
from distspmd.runtime.host.host_functions import Signature

LENGTH = 17
"""Of a line: longer than what filters pad."""
BLOCKS = (5, 4)
"""Extents of dimensions that are split: uneven on two and three ranks."""


@dataclass(frozen=True)
class Call:
    """A call of a function of SciPy on arrays.

    Attributes:
        name: of the function, and what is special of the call.
        function: it.
        arrays: that the program gets.
        more: further arguments, by their places.
        options: and by their names.
        is_split: whether dimensions are left that can be split.
    """

    name: str
    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    more: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    is_split: bool = True

    def run(self) -> Any:
        """What SciPy gives.

        Raises:
            Exception: it does not take such arrays.
        """
        arrays = [np.array(array) for array in self.arrays]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self.function(*arrays, *self.more, **dict(self.options))

    def program(self) -> Callable[..., Any]:
        """A program that makes the call."""
        function, more, options = self.function, self.more, dict(self.options)

        kind = type(self.run())

        def plain(found: Any) -> Any:
            return found

        def named(found: Any) -> Any:
            return tuple(found)

        def held(found: Any) -> Any:
            return found.statistic, found.pvalue

        number = np.generic | float | int
        is_plain = kind in (np.ndarray, tuple, list) or issubclass(kind, number)
        opened = plain if is_plain else held
        opened = named if issubclass(kind, tuple) and kind is not tuple else opened

        def one(x: Any) -> Any:
            return opened(function(x, *more, **options))

        def two(x: Any, y: Any) -> Any:
            return opened(function(x, y, *more, **options))

        def three(x: Any, y: Any, z: Any) -> Any:
            return opened(function(x, y, z, *more, **options))

        def four(x: Any, y: Any, z: Any, w: Any) -> Any:
            return opened(function(x, y, z, w, *more, **options))

        return (one, two, three, four)[len(self.arrays) - 1]


MORE: dict[str, tuple[Any, ...]] = {
    "signal.savgol_filter": (7, 2),
    "signal.decimate": (2, 4, "fir"),
    "special.diric": (3,),
    "signal.resample": (10,),
    "signal.resample_poly": (2, 3),
    "signal.zoom_fft": (0.5,),
    "ndimage.gaussian_filter1d": (1.5,),
    "ndimage.uniform_filter1d": (3,),
    "ndimage.maximum_filter1d": (3,),
    "ndimage.minimum_filter1d": (4,),
    "ndimage.gaussian_filter": (1.0,),
    "ndimage.gaussian_laplace": (1.0,),
    "ndimage.uniform_filter": (3,),
    "ndimage.median_filter": (3,),
    "ndimage.maximum_filter": (3,),
    "ndimage.minimum_filter": (3,),
    "ndimage.rank_filter": (1, 3),
    "ndimage.percentile_filter": (30, 3),
    **{
        f"ndimage.{name}": (3,)
        for name in (
            *("grey_closing", "grey_opening", "grey_dilation", "grey_erosion"),
            *("white_tophat", "black_tophat", "morphological_gradient", "morphological_laplace"),
        )
    },
    "stats.trimboth": (0.1,),
    "stats.trim1": (0.1,),
    "stats.trim_mean": (0.1,),
    "stats.pmean": (2.0,),
    "linalg.convolution_matrix": (9,),
    "signal.gauss_spline": (3,),
    "signal.chirp": (1.0, 2.0, 5.0),
    "special.multigammaln": (2,),
    "stats.boxcox": (0.3,),
    "stats.yeojohnson": (0.3,),
}
"""Arguments behind the arrays, where a function needs some."""
_FIRST_NUMBER = """
    special.polygamma special.jvp special.yvp special.ivp special.kvp special.h1vp special.h2vp
    special.spherical_jn special.spherical_yn special.spherical_in special.spherical_kn
    special.comb special.perm special.stirling2 special.zeta"""
FIRST_NUMBER = frozenset(_FIRST_NUMBER.split())
"""Functions of numbers whose first arguments are small whole ones."""
VARIED: dict[str, tuple[tuple[tuple[str, Any], ...], ...]] = {
    "signal.detrend": ((("type", "constant"),), (("bp", 7),)),
    "signal.savgol_filter": ((("mode", "nearest"), ("deriv", 1)),),
    "signal.filtfilt": ((("padtype", "even"), ("padlen", 4)),),
    "fft.dct": ((("type", 3), ("norm", "ortho")),),
    "fft.fft": ((("n", 9), ("norm", "forward")),),
    "ndimage.gaussian_filter1d": ((("order", 1), ("mode", "wrap")),),
    "stats.zscore": ((("ddof", 1),),),
    "stats.skew": ((("bias", False), ("keepdims", True)),),
    "stats.iqr": ((("rng", (10, 60)), ("keepdims", True)),),
    "stats.gmean": ((("keepdims", True),),),
    "stats.entropy": ((("base", 2.0),),),
    "stats.ttest_ind": ((("equal_var", False),), (("keepdims", True),)),
    "stats.mannwhitneyu": ((("method", "asymptotic"),),),
    "stats.wilcoxon": ((("method", "approx"),),),
    "stats.rankdata": ((("method", "dense"),),),
    "integrate.simpson": ((("dx", 0.5),),),
    "integrate.cumulative_trapezoid": ((("initial", 0),),),
    "integrate.cumulative_simpson": ((("initial", 0.0),),),
    "special.logsumexp": ((("keepdims", True),),),
    "linalg.norm": ((("ord", 1),), (("keepdims", True),)),
    "linalg.svd": ((("full_matrices", False),),),
    "linalg.qr": ((("mode", "economic"),),),
    "linalg.cholesky": ((("lower", True),),),
    "linalg.lu": ((("permute_l", True),),),
    "linalg.eigh": ((("eigvals_only", True),),),
    "linalg.solve_triangular": ((("lower", True),),),
    "spatial.distance.cdist": ((("metric", "cityblock"),),),
}
"""Options of further calls."""


def calls(name: str) -> list[Call]:
    """Calls of a function in a row; none, if this version of SciPy has not the function."""
    module, _, own = f"scipy.{name}".rpartition(".")
    function = getattr(importlib.import_module(module), own, None)
    if function is None:
        return []
    signature = NAMES[name]
    found = []
    for kind in ("f8", "f4", "c16", "i8"):
        for label, lead, options in _shapes(function, signature):
            rng = np.random.default_rng(len(found))
            arrays = _arrays(name, signature, rng, np.dtype(kind), *lead)
            function_axis = inspect.signature(function).parameters.get("axis")
            is_split = label != "" or function_axis is None or function_axis.default is not None
            by_all = name in ("stats.mannwhitneyu", "stats.wilcoxon")  # by their method "auto"
            for varied in ((), *(VARIED.get(name, ()) if kind == "f8" else ())):
                words = "".join(f" {k}={v}" for k, v in varied)
                found.append(
                    Call(
                        f"{name} {kind} {label}{words}",
                        function,
                        arrays,
                        MORE.get(name, ()),
                        (*options, *varied),
                        is_split and not (by_all and not varied),
                    )
                )
    return [call for call in found if _is_taken(call)]


def _is_taken(call: Call) -> bool:
    try:
        call.run()
    except Exception:
        return False
    return True


def _shapes(function: Any, signature: Signature) -> Iterator[tuple[str, Any, Any]]:
    """What is said of the axis, and extents of the dimensions before and behind it."""
    parameters = inspect.signature(function).parameters
    if "axis" in parameters:
        yield "axis=-1", (BLOCKS, (), 1), (("axis", -1),)
        yield "axis=0", ((), BLOCKS, 1), (("axis", 0),)
        yield "axis=1", (BLOCKS[:1], BLOCKS[1:], 1), (("axis", 1),)
        if parameters["axis"].default is not inspect.Parameter.empty:
            yield "", (BLOCKS[:1], (), 1), ()
    elif "axes" in parameters:
        yield "axes=(-1,)", (BLOCKS, (), 1), (("axes", (-1,)),)
        yield "axes=(0, 1)", ((), BLOCKS, 2), (("axes", (0, 1)),)
        yield "axes=(1, 2)", (BLOCKS[:1], BLOCKS[1:], 2), (("axes", (1, 2)),)
    else:
        yield "", (BLOCKS, (), 1), ()
        yield "one", (BLOCKS[:1], (), 1), ()


def _arrays(
    name: str, signature: Signature, rng: Any, kind: Any, before: Any, behind: Any, lines: int
) -> tuple[Any, ...]:
    inputs = signature.inputs
    if inputs == ((),) and name in FIRST_NUMBER:
        inputs = ((), ())
    if name in ONE:
        inputs = inputs[:1]
    found = []
    for n, core in enumerate(inputs):
        line = tuple(LENGTH - 4 * d for d in range(lines))
        known = KNOWN.get(core[0] if core and ("axis",) in inputs else "")
        if known is not None:
            found.append(known.astype(np.result_type(known, kind)))
            continue
        shape = (*before, *line, *behind) if core in ((), ("axis",)) else (*before, *_core(core))
        if core in ((), ("axis",)) and not core:
            shape = (*before, *behind)
        if name == "spatial.distance.cdist":
            shape = ((*before, 4), (6, 4))[n]
        values = _values(rng, shape, kind, n)
        if name in FIRST_NUMBER and n == 0:
            values = rng.integers(1, 5, shape)
        if name == "stats.false_discovery_control":
            values = values / 3
        found.append(values)
    return tuple(found)


KNOWN: dict[str, Any] = {
    "b": np.array([0.2, 0.3, 0.1]),
    "a": np.array([1.0, -0.4, 0.2]),
    "h": np.array([0.2, 0.3, 0.1, 0.5]),
    "w": np.array([0.2, 0.3, 0.1]),
    "s": np.array([[0.2, 0.3, 0.1, 1.0, -0.4, 0.2], [0.5, 0.2, 0.1, 1.0, -0.1, 0.1]]),
}
"""Filters."""
ONE = frozenset(["stats.chisquare", "stats.power_divergence"])
"""Functions that get one array here."""


def _core(core: tuple[str, ...]) -> tuple[int, ...]:
    return (6,) * len(core)


def _values(rng: Any, shape: tuple[int, ...], kind: Any, number: int) -> Any:
    values = rng.random(shape) + 0.1
    if shape[-2:] == (6, 6):
        values = values @ np.swapaxes(values, -1, -2) + 6 * np.eye(6)
    if kind.kind == "i":
        values = np.rint(values * 90)
    if kind.kind == "c":
        values = values + 0.3j * (number + 1)
    return values.astype(kind)


EVERY = [name for names in ROWS.values() for name in names.split()]


def of_universal_functions() -> list[Call]:
    """Calls of all universal functions of ``scipy.special`` that take such numbers."""
    from scipy import special  # type: ignore[import-untyped,unused-ignore]

    found = []
    for name, function in sorted(vars(special).items()):
        if not isinstance(function, np.ufunc) or function.nin > 4 or function.signature:
            continue
        for kind in ("f8", "f4", "i8"):
            rng = np.random.default_rng(len(found))
            shapes = [BLOCKS, BLOCKS[1:], (BLOCKS[0], 1), BLOCKS][: function.nin]
            arrays = tuple(
                _values(rng, s, np.dtype(kind), 0) % (3 if kind == "i8" else 9) for s in shapes
            )
            found.append(Call(f"special.{name} {kind}", function, arrays))
    return [call for call in found if _is_taken(call)]


def of_distributions() -> list[Call]:
    """Calls of methods of all distributions of ``scipy.stats``, with parameters of the run."""
    from scipy import stats

    found = []
    for name, distribution in sorted(vars(stats).items()):
        if not isinstance(distribution, stats.rv_continuous | stats.rv_discrete):
            continue
        if distribution.numargs > 3 or name in SLOW:
            continue
        density = "pdf" if isinstance(distribution, stats.rv_continuous) else "pmf"
        for method in (density, "cdf", "ppf"):
            rng = np.random.default_rng(len(found))
            places = rng.random(BLOCKS) if method != "pmf" else rng.integers(0, 4, BLOCKS)
            shapes = [1.0 + k + rng.random(BLOCKS[1:]) for k in range(distribution.numargs)]
            function = getattr(distribution, method)
            found.append(Call(f"stats.{name}.{method}", function, (places, *shapes)))
    return [call for call in found if _is_taken(call)]


SLOW = frozenset(
    ["levy_stable", "studentized_range", "kstwo", "kstwobign", "ksone", "genhyperbolic"]
)
"""Distributions that integrate."""
