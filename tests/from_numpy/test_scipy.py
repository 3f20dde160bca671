"""Functions of SciPy, and of Python's ``math``, in NumPy programs: SciPy's values, on paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.fftpack
from scipy import integrate, linalg, signal, stats
from scipy.spatial.distance import cdist, pdist

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


@pytest.mark.parametrize(
    "function", [transforms, cosines, distances, integrals, filters, matrices, gammas, chances]
)
def test_functions_of_scipy_give_its_values(function: Callable[..., Any]) -> None:
    made = lambda rng: (rng.random(9), rng.random(9))  # noqa: E731
    outcome = on_paper(Case(function.__name__, function, "own", "", made, ()))
    assert outcome.kind == "right", outcome


REFUSED: list[tuple[str, Callable[..., Any]]] = [
    ("distances by the metric 'mahalanobis'", lambda x: cdist(x, x, "mahalanobis")),
    ("should have the same dimensionality", lambda x: signal.correlate(x, x[0])),
    ("its arguments have to be known", lambda x: signal.butter(3, x[0, 0] / 9)),
    ("the run decides how many vectors", lambda x: linalg.null_space(x)),
    ("with pivoting=True", lambda x: linalg.qr(x, pivoting=True)),
    ("is not covered", lambda x: scipy.fft.dstn(x)),
    ("quantiles of the distribution 't'", lambda x: stats.t.ppf(x[0], 3)),
    ("scipy.stats.t.cdf without df", lambda x: stats.t.cdf(x[0])),
]


@pytest.mark.parametrize(("said", "function"), REFUSED)
def test_others_are_refused_by_name(said: str, function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(function, np.ones((3, 3)))
