"""Zeros, fits and minima of functions of a program, which SciPy asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

optimize = pytest.importorskip("scipy.optimize")


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


def by_derivatives(x):
    slopes = optimize.fsolve(lambda v, a: v**2 - a, x, (x,), lambda v, a: np.diag(2 * v))
    v, told, info, _ = optimize.fsolve(lambda v: np.exp(v) - x, x, full_output=True)
    t = np.arange(3.0)
    line, cov, more, _, ier = optimize.leastsq(
        lambda p: p[0] * t + p[1] - x, [1.0, 0.0], Dfun=lambda p: [t, t * 0 + 1], col_deriv=1,
        full_output=True,
    )  # fmt: skip
    valley = optimize.minimize(lambda v: ((v - x) ** 2).sum(), t, jac=lambda v: 2 * (v - x))
    inverse = np.round(valley.hess_inv, 6), valley.njev
    return slopes, v, told["nfev"], info, line, cov, more["fvec"], ier > 0, inverse


def by_weights(x):
    t = np.arange(3.0)
    first, cov = optimize.curve_fit(lambda t, a: a * t + 1, t, x, sigma=1 + t, absolute_sigma=True)
    return np.round(first, 6), np.round(cov, 6)


CASES = [
    Case(f.__name__, f, "own", "", lambda rng: (np.array([4.0, 2.0, 3.5]),), ())
    for f in (zeros, fitted, least, by_name, told, by_derivatives, by_weights)
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
