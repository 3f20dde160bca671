"""Zeros, fits and minima of functions of several numbers, beside ``scipy.optimize``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.library import fits, minimize
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

optimize = pytest.importorskip("scipy.optimize")


def trigonometric(v):
    places = np.arange(1, len(v) + 1)
    return len(v) - np.cos(v).sum() + places * (1 - np.cos(v)) - np.sin(v)


EQUATIONS: dict[str, tuple[Any, Any]] = {
    "two": (lambda v: [v[0] * np.cos(v[1]) - 4, v[1] * v[0] - v[1] - 5], [1, 1]),
    "valley": (lambda v: np.array([10 * (v[1] - v[0] ** 2), 1 - v[0]]), [-1.2, 1.0]),
    "trigonometric": (trigonometric, np.full(5, 0.2)),
    "one": (lambda v: np.exp(v) - 3, 5.0),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_zeros_are_those_of_scipy(name: str) -> None:
    f, start = EQUATIONS[name]
    x, told, info, _ = fits.fsolve(f, start, full_output=True)
    wanted, said, ier, _ = optimize.fsolve(f, start, full_output=True)
    assert np.allclose(x, wanted, rtol=1e-12, atol=1e-13)
    assert (told["nfev"], info) == (said["nfev"], ier)
    assert np.allclose(fits.root(f, start, method="lm").x, optimize.root(f, start, method="lm").x)


@pytest.mark.parametrize("name", EQUATIONS)
def test_least_squares_are_those_of_scipy(name: str) -> None:
    f, start = EQUATIONS[name]
    x, cov, told, _, info = fits.leastsq(f, start, full_output=True)
    wanted, matrix, said, _, ier = optimize.leastsq(f, start, full_output=True)
    assert np.allclose(x, wanted, rtol=1e-12, atol=1e-13)
    assert np.allclose(cov, matrix, rtol=1e-4)  # it is of differences of a step before the last
    assert (told["nfev"], info) == (said["nfev"], ier)


def test_zeros_by_given_derivatives_are_those_of_scipy() -> None:
    given = (lambda v, a: v**2 - a, np.ones(3), (np.array([2.0, 3.0, 4.0]),))
    slopes = {"fprime": lambda v, a: np.diag(2 * v)}
    assert np.allclose(fits.fsolve(*given, **slopes), optimize.fsolve(*given, **slopes), rtol=1e-13)


def decay(t, a, b, c):
    return a * np.exp(-b * t) + c


TIMES = np.linspace(0, 4, 50)
SEEN = decay(TIMES, 2.5, 1.3, 0.5) + 0.2 * np.random.default_rng(0).normal(size=50)


@pytest.mark.parametrize(
    "options",
    [{}, {"sigma": 0.2 + TIMES / 10}, {"sigma": np.full(50, 0.2), "absolute_sigma": True}],
    ids=["alike", "weights", "known errors"],
)
def test_fits_are_those_of_scipy(options: dict[str, Any]) -> None:
    found = fits.curve_fit(decay, TIMES, SEEN, np.ones(3), **options)
    wanted = optimize.curve_fit(decay, TIMES, SEEN, **options)
    assert np.allclose(found[0], wanted[0], rtol=1e-7)  # derivatives are known to 1e-8 only
    assert np.allclose(found[1], wanted[1], rtol=1e-6)


def beale(v):
    x, y = v
    terms = 1.5 - x + x * y, 2.25 - x + x * y**2, 2.625 - x + x * y**3
    return sum(t**2 for t in terms)


MINIMA: dict[str, tuple[Any, Any]] = {
    "square": (lambda v: ((v - np.array([1.0, 2.0, 3.0])) ** 2).sum(), np.zeros(3)),
    "valley": (optimize.rosen, np.array([1.3, 0.7, 0.8, 1.9, 1.2])),
    "beale": (beale, [1.0, 1.0]),
    "flat": (lambda v: (v[0] - 2) ** 4 + v[0], [5.0]),
}


@pytest.mark.parametrize("method", ["BFGS", "Nelder-Mead"])
@pytest.mark.parametrize("name", MINIMA)
def test_minima_are_those_of_scipy(name: str, method: str) -> None:
    f, start = MINIMA[name]
    found = minimize.minimize(f, start, method=method)
    wanted = optimize.minimize(f, start, method=method)
    assert np.allclose(found.x, wanted.x, rtol=1e-8, atol=1e-9)
    assert (found.nit, found.nfev, found.status) == (wanted.nit, wanted.nfev, wanted.status)


def test_minima_by_given_slopes_are_those_of_scipy() -> None:
    start, slopes = [1.3, 0.7], optimize.rosen_der
    found = minimize.minimize(optimize.rosen, start, jac=slopes)
    wanted = optimize.minimize(optimize.rosen, start, jac=slopes)
    assert np.allclose(found.x, wanted.x, rtol=1e-13)
    assert np.allclose(found.hess_inv, wanted.hess_inv, rtol=1e-10)


def zeros(x):
    found = optimize.root(lambda v: [v[0] * np.cos(v[1]) - x[0], v[1] * v[0] - v[1] - 5], [1, 1])
    return found.x, found.success, optimize.fsolve(lambda v, a: v**2 - a, np.ones(3), args=(x,))


def fitted(x):
    best, cov = optimize.curve_fit(lambda t, a, b: a * t + b, np.arange(3.0), x)
    return best, cov.shape


def least(x):
    found = optimize.minimize(lambda v: ((v - x) ** 2).sum(), np.zeros(3))
    simple = optimize.minimize(lambda v: ((v - x[:2]) ** 2).sum(), x[1:], method="Nelder-Mead")
    return np.round(found.x, 6), found.success, found.nit, simple.x, simple["fun"]


def by_name(x):
    def f(v):
        return (v[0] - 1) ** 2 + 3 * (v[1] + 2) ** 2

    p, least, calls, slopes, flag = optimize.fmin_cg(f, x[:2], full_output=1, disp=0)
    q, _, ways, rounds, found, end = optimize.fmin_powell(f, x[:2], full_output=True, disp=0)
    ends = flag, end, calls > 0, slopes > 0, rounds, found, ways.shape
    alone = optimize.fmin_cg(f, x[:2], disp=0), optimize.fmin_powell(f, x[:2], disp=0)
    return np.round(p, 4), round(least, 4), np.round(q, 4), ends, np.round(alone, 4)


def told(x):
    def f(v):
        return (v[0] - 1) ** 2 + 3 * (v[1] + 2) ** 2

    p = optimize.fmin(f, x[:2])
    q = optimize.fmin_bfgs(f, x[:2])
    r = optimize.minimize(f, x[:2], method="BFGS", options={"disp": True})
    return np.round(p, 3), np.round(q, 4), np.round(r.x, 4)


CASES = [
    Case(f.__name__, f, "own", "", lambda rng: (np.array([4.0, 2.0, 3.5]),), ())
    for f in (zeros, fitted, least, by_name, told)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_programs_find_zeros_and_minima(case: Case) -> None:
    outcome = on_paper(case)
    assert outcome.kind == RIGHT, outcome


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_programs_find_zeros_and_minima(case: Case) -> None:
    outcome = run_here(case)
    assert outcome.kind == RIGHT, outcome


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ("p0=", lambda x: optimize.curve_fit(lambda t, *p: p[0] * t, np.arange(2.0), x)),
        ("retall", lambda x: optimize.fmin(lambda v: v @ v, x, retall=1)),
    ],
    ids=["any number", "all ways"],
)
def test_what_is_not_covered_is_said(said: str, program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(program, np.ones(2))
