"""``scipy.integrate``: ``quad`` and ``odeint`` as SciPy computes them, in programs and on ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

integrate = pytest.importorskip("scipy.integrate")


def pendulum(y, t, b, c):
    theta, omega = y
    return [omega, -b * omega - c * np.sin(theta)]


def stiff(y, t):
    first = -0.04 * y[0] + 1e4 * y[1] * y[2]
    last = 3e7 * y[1] ** 2
    return [first, -first - last, last]


def slopes_of_stiff(y, t):
    last = 6e7 * y[1]
    one, two = 1e4 * y[2], 1e4 * y[1]
    return [[-0.04, one, two], [0.04, -one - last, -two], [0.0, last, 0.0]]


def oscillator(t, y, mu):
    return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]


def gives_up(x):
    return integrate.odeint(oscillator, x, [0.0, 300.0], (100.0,), tfirst=True, mxstep=20)


def test_odeint_ends_where_scipy_gives_up() -> None:
    outcome = on_paper(_case(gives_up, np.array([2.0, 0.0])))
    assert "Excess work" in outcome.reason


def states(x):
    given = {"rtol": 1e-4, "atol": np.array([1e-6, 1e-10, 1e-6])}
    known = integrate.odeint(stiff, [1.0, 0.0, 0.0], [0, 0.4, 4], Dfun=slopes_of_stiff, **given)
    back = integrate.odeint(pendulum, x, np.linspace(3, 0, 4), (0.25, 5.0))
    number = integrate.odeint(lambda y, t: -50 * y, x[0], np.linspace(0, 5, 10), hmax=0.5, mxordn=4)
    return known, back, number


def ends(x):
    down = integrate.quad(lambda t: np.exp(-x[0] * t), np.inf, 0)
    poles = integrate.quad(lambda t: np.exp(-t) / np.sqrt(t) * x[0], 0, np.inf)[0]
    points = integrate.quad(lambda t: abs(t - 0.3) + x[1], 0, 1, points=[0.3])
    turned = integrate.quad(lambda t: np.exp(1j * t * x[0]), 0, 1, complex_func=True)[0]
    return down, poles, points[0], turned


def swings(y0, b):
    found = integrate.odeint(pendulum, y0, np.linspace(0, 2, 5), args=(b, 5.0))
    return found[:, 0], found[-1]


def areas(x, p):
    found = np.zeros(len(x))
    for i in range(len(x)):
        found[i] = integrate.quad(lambda t, k: np.sin(t) * k, 0, x[i], args=(p,))[0]
    return found, integrate.quad(lambda t: np.exp(-p * t * t), 0, np.inf)


def by_a_rule(x):
    return integrate.fixed_quad(lambda t: np.exp(-x[0] * t), 0, 1, n=6)[0]


def _case(function: Any, *given: Any) -> Case:
    return Case(function.__name__, function, "own", "", lambda rng: given, ())


RULE = _case(by_a_rule, np.array([1.5, 2.0]))
LOOPS = [_case(swings, np.array([1.0, 0.2]), 0.25), _case(areas, np.array([1.0, 0.2, 3.0]), 1.5)]
LOOPS += [_case(each, np.array([1.0, 0.2])) for each in (states, ends)]


@pytest.mark.parametrize(
    "case",
    [RULE, *(pytest.param(case, marks=pytest.mark.slow) for case in LOOPS)],
    ids=lambda case: case.name,
)
def test_programs_integrate(case: Case) -> None:
    outcome = on_paper(case)
    assert outcome.kind == RIGHT, outcome


@pytest.mark.slow
@pytest.mark.parametrize("case", LOOPS, ids=lambda case: case.name)
def test_compiled_programs_integrate(case: Case) -> None:
    outcome = run_here(case)
    assert outcome.kind == RIGHT, outcome


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ("full_output", lambda x: integrate.quad(lambda t: t * x[0], 0, 1, full_output=1)),
    ],
    ids=["more of quad"],
)
def test_what_is_not_covered_is_said(said: str, program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(program, np.ones(2))
