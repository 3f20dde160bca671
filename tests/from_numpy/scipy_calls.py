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
from distspmd.runtime.host_functions import Signature

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
    """

    name: str
    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    more: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

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

        def one(x: Any) -> Any:
            return function(x, *more, **options)

        def two(x: Any, y: Any) -> Any:
            return function(x, y, *more, **options)

        def three(x: Any, y: Any, z: Any) -> Any:
            return function(x, y, z, *more, **options)

        return (one, two, three)[len(self.arrays) - 1]


MORE: dict[str, tuple[Any, ...]] = {
    "signal.savgol_filter": (7, 2),
    "signal.decimate": (2,),
    "signal.resample": (10,),
    "signal.resample_poly": (2, 3),
    "signal.zoom_fft": (0.5,),
    "ndimage.gaussian_filter1d": (1.5,),
    "ndimage.uniform_filter1d": (3,),
    "ndimage.maximum_filter1d": (3,),
    "ndimage.minimum_filter1d": (4,),
    "ndimage.gaussian_filter": (1.0,),
    "ndimage.gaussian_laplace": (1.0,),
    "ndimage.gaussian_gradient_magnitude": (1.0,),
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
    "signal.envelope": ((1, 5),),
    "special.polygamma": (),
    "linalg.convolution_matrix": (9,),
    "signal.gauss_spline": (3,),
    "signal.chirp": (1.0, 2.0, 5.0),
    "special.multigammaln": (2,),
    "stats.boxcox": (0.3,),
    "stats.yeojohnson": (0.3,),
}
"""Arguments behind the arrays, where a function needs some."""
FIRST_NUMBER = frozenset(
    """special.polygamma special.jvp special.yvp special.ivp special.kvp special.h1vp special.h2vp
    special.spherical_jn special.spherical_yn special.spherical_in special.spherical_kn
    special.comb special.perm special.factorialk special.stirling2 special.zeta""".split()
)
"""Functions of numbers whose first arguments are small whole ones."""
VARIED: dict[str, tuple[tuple[tuple[str, Any], ...], ...]] = {
    "signal.lfilter": (),
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
            for varied in ((), *(VARIED.get(name, ()) if kind == "f8" else ())):
                words = "".join(f" {k}={v}" for k, v in varied)
                found.append(
                    Call(
                        f"{name} {kind} {label}{words}",
                        function,
                        arrays,
                        MORE.get(name, ()),
                        (*options, *varied),
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
    count = 1 if name == "spatial.distance.cdist" else 0
    found = []
    inputs = signature.inputs
    if inputs == ((),) and name in FIRST_NUMBER:
        inputs = ((), ())
    for n, core in enumerate(inputs):
        if core == ("axis",):
            shape = (*before, *(LENGTH - 4 * d for d in range(lines)), *behind)
        elif not core:
            shape = (*before, *behind)
        elif len({*signature.inputs}) > 1 and ("axis",) in signature.inputs:
            shape = {"b": (3,), "a": (3,), "s": (2, 6), "h": (4,), "w": (3,)}[core[0]]
        elif name == "spatial.distance.cdist":
            shape = ((*before, 4), (6, 4))[n]
        elif len(core) == 1:
            shape = (*before, 6 if name != "linalg.leslie" or n == 0 else 5)
        else:
            shape = (*before, 6, 6)
        values = rng.random(shape) + 0.1
        if name in FIRST_NUMBER and n == 0:
            values = rng.integers(1, 5, shape)
        if len(core) == 2 and "axis" not in core and shape[-2:] == (6, 6):
            values = values @ np.swapaxes(values, -1, -2) + 6 * np.eye(6)
        if core == ("s", "c"):
            values = np.array([[0.2, 0.3, 0.1, 1.0, -0.4, 0.2], [0.5, 0.2, 0.1, 1.0, -0.1, 0.1]])
        if core in (("a",), ("b",)):
            values = np.array([1.0, -0.4, 0.2]) if core == ("a",) else np.array([0.2, 0.3, 0.1])
        if np.dtype(kind).kind == "i" and values.dtype.kind == "f":
            values = np.rint(values * 5)
        if np.dtype(kind).kind == "c" and not (core and core[0] in "sabh"):
            values = values + 0.3j * (n + 1 + np.zeros(shape))
        whole = name in FIRST_NUMBER and n == 0 and np.dtype(kind).kind != "i"
        found.append(values.astype(int if whole else kind))
    return tuple(found[count and 0 :])


EVERY = [name for names in ROWS.values() for name in names.split()]
