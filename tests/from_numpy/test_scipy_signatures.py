"""Functions of SciPy that each rank calls on its block: split, proved, and as SciPy gives them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.host.scipy_signatures import NAMES, signature_of
from distspmd.runtime.host.host_functions import Signature
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

scipy = pytest.importorskip("scipy")
from scipy import fft, integrate, interpolate, linalg, ndimage, signal, special, stats  # noqa: E402
from scipy.spatial import distance  # noqa: E402

X = np.random.default_rng(3).random((7, 16))


def special_functions(x):
    return special.jv(1.5, x) + special.ellipk(x) + special.airy(x)[0]


def densities(x):
    return stats.t.ppf(x, 4), stats.nakagami.cdf(x, 2.0)


def filters(x):
    return signal.decimate(x, 2, ftype="fir"), signal.czt(x, 5).real


def images(x):
    return ndimage.maximum_filter1d(x, 3), ndimage.spline_filter1d(x, axis=1)


def sums(x):
    return stats.kstat(x, axis=1), integrate.cumulative_simpson(x)


def matrices(x):
    a = x.reshape(7, 4, 4)
    return linalg.cosm(a), distance.cdist(x, x[:3])


def over_columns(x):
    first = ndimage.maximum_filter1d(x, 3, 0), ndimage.minimum_filter1d(x, 3, axis=-2)
    return signal.resample(x, 20), stats.zscore(x), stats.kstat(x, axis=0, keepdims=True), *first


def results_with_names(x):
    found = stats.ttest_ind(x, x[:3] ** 2)
    other = stats.cramervonmises_2samp(x, x**2, axis=1)
    return found.statistic, found.pvalue, other.statistic


def between(x):
    places = np.linspace(0, 1, 7)
    return interpolate.CubicSpline(places, x[:, 0])(x), interpolate.interp1d(places, x[:, 1])(x)


def over_all(x):  # nothing is left to split
    return stats.kstat(x), signal.detrend(x[0]), fft.dctn(x)


SPLIT = [special_functions, densities, filters, images, sums, matrices]
SPLIT += [over_columns, results_with_names, between]


def calls(function: Any) -> list[Any]:
    sdfg = numpy_program(function, X)
    return [s for s in distspmd.iteration_spaces(sdfg) if s.parameters[0] == "__bA"]


@pytest.mark.parametrize("function", SPLIT, ids=lambda function: function.__name__)
def test_calls_by_signature_are_split_and_move_nothing(function: Any) -> None:
    own = calls(function)
    assert own
    names = {s.name: (3,) + (1,) * (len(s.parameters) - 1) for s in own}
    lowering = distspmd.lower(numpy_program(function, X), names)
    split = [s for s in lowering.spaces if s.name in names]
    assert all(s.mesh.size == 3 for s in split)
    distspmd.verify(lowering)


def test_what_needs_all_dimensions_is_whole() -> None:
    assert not calls(over_all)


@pytest.mark.parametrize("function", [*SPLIT, over_all], ids=lambda function: function.__name__)
def test_calls_by_signature_give_what_scipy_gives(function: Any) -> None:
    case = Case(function.__name__, function, "tests", "scipy", lambda rng: (X,), ())
    outcome = on_paper(case)
    assert outcome.kind == RIGHT, outcome.reason


def test_calls_by_signature_run() -> None:
    outcome = run_here(Case("filters", filters, "tests", "scipy", lambda rng: (X,), ()))
    assert outcome.kind == RIGHT, outcome.reason


@pytest.mark.parametrize("name", [*NAMES])
def test_rows_are_read_and_name_functions_of_scipy(name: str) -> None:
    """What this version of SciPy has not is left out."""
    module, _, function = f"scipy.{name}".rpartition(".")
    found = getattr(importlib.import_module(module), function, None)
    if found is not None:
        assert signature_of(found) == NAMES[name]


def test_universal_functions_have_the_signature_of_numbers() -> None:
    assert signature_of(special.jv) == Signature.of("(),()->()")
    assert signature_of(np.sort) is None
