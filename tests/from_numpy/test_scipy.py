"""Functions of SciPy, and of Python's ``math``, in NumPy programs: SciPy's values, on paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.fftpack
from mpi4py import MPI
from scipy import integrate, linalg, signal, special, stats
from scipy.spatial.distance import cdist, pdist
from scipy.stats import contingency

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def transforms(x: Any, y: Any) -> Any:
    return scipy.fft.irfft(scipy.fft.rfft(x, 16) * scipy.fft.rfft(y, 16), 16, workers=2)


def cosines(x: Any, y: Any) -> Any:
    both = scipy.fftpack.dct(x, type=2, norm="ortho"), scipy.fft.dct(y)
    return both, scipy.fft.idct(x, norm="ortho"), scipy.fft.idct(y)


def distances(x: Any, y: Any) -> Any:
    one, other = x[:6].reshape(3, 2), y[:8].reshape(4, 2)
    named = cdist(one, other, "cityblock"), cdist(one, other, metric="minkowski", p=3)
    more = cdist(one, other, "chebyshev"), cdist(one, other, "cosine"), pdist(one, "sqeuclidean")
    own = cdist(one, other, lambda u, v: abs(u - v).sum())
    return cdist(one, other), named, more, own, cdist(one, other, "canberra")


def integrals(x: Any, y: Any) -> Any:
    at = np.cumsum(y)
    odd, even = integrate.simpson(x, x=at), integrate.simpson(x[1:], x=at[1:])
    sums = integrate.cumulative_trapezoid(x, at, initial=0)
    return odd, even, sums, integrate.simpson(x, dx=0.5), integrate.trapezoid(x, at)


def filters(x: Any, y: Any) -> Any:
    full, same = signal.correlate(x, y[:4]), signal.convolve(x, y[:4], "same")
    return full, same, signal.fftconvolve(x, y[:4], "valid")


def matrices(x: Any, y: Any) -> Any:
    made = linalg.toeplitz(x[:3], y[:4]), linalg.block_diag(x[:2], np.eye(2))
    a = linalg.toeplitz(x[:4])
    b = np.diag(y[:4] + 1) + 0.1
    values, vectors = linalg.eigh(a, b)
    return made, linalg.eigh(a)[0], values, np.abs(vectors), linalg.pinv(a), linalg.det(b)


def gammas(x: Any, y: Any) -> Any:
    total = 0.0
    for k in range(4):
        total += (
            math.gamma(x[k] + 1) + math.lgamma(y[k] + k) * math.erfc(x[k]) + math.gamma(k - 0.5)
        )
        total += math.gamma(2 * k + 3)
    return total


def chances(x: Any, y: Any) -> Any:
    t = x.mean() * 3
    found = [stats.t.sf(abs(t), 7), stats.t.cdf(-t, df=5), stats.t.pdf(t, 4)]
    found += [stats.chi2.sf(t * 4, 3), stats.chi2.pdf(t, 4), stats.f.sf(t, 3, 8)]
    found += [stats.gamma.cdf(t, 2.5), stats.gamma.pdf(t, 2.0, scale=1.5)]
    found += [stats.beta.cdf(x[0], 2, 3), stats.beta.pdf(x[1], 2.0, 3.0)]
    k, normal = np.floor(x * 4), stats.norm(x[0], x[1] + 1)
    whole = stats.poisson.pmf(k, 2.5) + stats.binom.pmf(k, 6, y[0])
    return np.array(found), whole, normal.pdf(y), stats.norm(loc=y[1]).logpdf(x)


def tables(x: Any, y: Any) -> Any:
    counts = np.outer(x, y + 1)
    first = linalg.solve_toeplitz(x[:4] + np.array([4.0, 0, 0, 0]), y[:4])
    other = linalg.solve_toeplitz((x[:4] + 4, y[:4] + 0.5), y[:4])
    return first, other, contingency.expected_freq(counts), contingency.margins(counts)


def outside_of_domains(x: Any, y: Any) -> Any:
    root, angle = np.emath.sqrt(x - 0.5), np.lib.scimath.arcsin(y * 2)
    more = np.emath.log(x), np.emath.power(x - 0.5, 2), np.emath.logn(2, x), np.emath.arctanh(y * 2)
    number = np.lib.scimath.arccos(y[0])
    return abs(root), np.real(angle), np.imag(angle), more, number, hasattr(number, "__len__")


def bessel(x: Any, y: Any) -> Any:
    wide = np.concatenate(((x - 0.5) * 90, x * 1e-6, np.array([0.0, 25.0, -25.5])))
    orders = special.jv(1, x), special.jn(0, y * 30)
    return special.j0(wide), special.j1(wide), orders, special.j0(2.5 * y[0])


FUNCTIONS = [
    bessel,
    *(transforms, cosines, distances, integrals, filters, matrices, gammas, chances, tables),
    outside_of_domains,
]


def draws(x: Any, y: Any) -> Any:
    first = stats.uniform(1, 2).rvs(size=500, random_state=3)
    second = stats.norm.rvs(loc=x[0] + 10, scale=y, size=(400, 9), random_state=4)
    third = stats.poisson.rvs(3.0, 1, 300)
    return first, second, third, stats.norm(5).rvs(), stats.bernoulli(0.5).rvs(size=200)


@pytest.mark.usefixtures("unoptimised")
def test_draws_of_distributions_are_those_of_their_names() -> None:
    x, y = np.random.default_rng(2).random((2, 9))
    lowered = distspmd.lower(numpy_program(draws, x, y))
    with distspmd.compile(lowered, MPI.COMM_SELF) as program:
        found = program(x, y)
    like = draws(x, y)
    assert [np.shape(each) for each in found] == [np.shape(each) for each in like]
    assert [np.asarray(each).dtype for each in found] == [np.asarray(each).dtype for each in like]
    assert 1 <= found[0].min() <= found[0].max() <= 3
    assert np.allclose(found[1].mean(0), x[0] + 10, atol=0.2)
    assert np.allclose(found[1].std(0), y, atol=0.1)
    assert found[2].min() >= 1
    assert 3.5 < found[2].mean() < 4.5
    assert set(found[4]) == {0, 1}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_of_scipy_give_its_values(function: Callable[..., Any]) -> None:
    made = lambda rng: (rng.random(9), rng.random(9))  # noqa: E731
    outcome = on_paper(Case(function.__name__, function, "own", "", made, ()))
    assert outcome.kind == "right", outcome


REFUSED: list[tuple[str, Callable[..., Any]]] = [
    ("should have the same dimensionality", lambda x: signal.correlate(x, x[0])),
    ("scipy.stats.t.cdf without df", lambda x: stats.t.cdf(x[0])),
]


@pytest.mark.parametrize(("said", "function"), REFUSED)
def test_others_are_refused_by_name(said: str, function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(function, np.ones((3, 3)))
