"""``scipy.integrate``: ``quad`` and ``odeint`` as SciPy computes them, in programs and on ranks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.library import multistep, quadrature
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


PROBLEMS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("smooth", (pendulum, [np.pi - 0.1, 0.0], np.linspace(0, 10, 101), (0.25, 5.0)), {}),
    ("backwards", (pendulum, [1.0, 0.3], np.linspace(3, 0, 10), (0.25, 5.0)), {}),
    (
        "stiff",
        (stiff, [1.0, 0.0, 0.0], np.r_[0, 4 * 10.0 ** np.arange(-1, 7)]),
        {"rtol": 1e-4, "atol": np.array([1e-6, 1e-10, 1e-6])},
    ),
    (
        "stiff at times",
        (oscillator, [2.0, 0.0], np.linspace(0, 300, 40), (100.0,)),
        {"mxstep": 5000, "tfirst": True},
    ),
    ("with derivatives", (stiff, [1.0, 0.0, 0.0], [0, 0.4, 4]), {"Dfun": slopes_of_stiff}),
    ("exact", (pendulum, [1, 0], [0.0, 1, 1, 2], (0.1, 2)), {"rtol": 1e-10, "atol": 1e-12}),
    ("short steps", (pendulum, [1, 0], [0.0, 1, 2], (0.1, 2)), {"hmax": 0.05, "h0": 0.01}),
    ("one number", (lambda y, t: -50 * y, 1.0, np.linspace(0, 5, 10)), {}),
]


@pytest.mark.parametrize(
    ("given", "options"), [p[1:] for p in PROBLEMS], ids=[p[0] for p in PROBLEMS]
)
def test_steps_of_odeint_are_those_of_scipy(given: Any, options: dict[str, Any]) -> None:
    found = multistep.odeint(*given, **options)
    wanted = integrate.odeint(*given, **options)
    assert np.allclose(found, wanted, rtol=1e-11, atol=1e-14)


def test_odeint_ends_where_scipy_gives_up() -> None:
    with pytest.raises(RuntimeError, match="Excess work"):
        multistep.odeint(oscillator, [2.0, 0.0], [0.0, 300.0], (100.0,), tfirst=True)


INTEGRALS: list[tuple[Callable[[Any], Any], float, float]] = [
    (lambda t: np.exp(-1.5 * t * t), 0, 2),
    (lambda t: np.exp(-1.5 * t * t), 0, np.inf),
    (lambda t: np.exp(-t * t), -np.inf, np.inf),
    (lambda t: np.exp(t), -np.inf, 1.0),
    (lambda t: np.sqrt(t), 0, 1),
    (lambda t: np.log(t), 0, 1),
    (lambda t: 1 / np.sqrt(t), 0, 1),
    (lambda t: np.sin(50 * t), 0, 10),
    (lambda t: abs(t - 0.3), 0, 1),
    (lambda t: float(t > 0.37), 0, 1),
    (lambda t: np.sin(1 / t), 0.01, 1),
    (lambda t: np.exp(-t) / np.sqrt(t), 0, np.inf),
    (lambda t: t, 3, 1),
    (lambda t: 0.0, 0, 1),
]


@pytest.mark.parametrize("number", range(len(INTEGRALS)))
def test_integrals_are_those_of_scipy(number: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted, error = integrate.quad(*INTEGRALS[number])
        found, ours = quadrature.quad(*INTEGRALS[number])
    assert abs(found - wanted) <= 1e-13 * max(1.0, abs(wanted))
    assert ours <= 2 * error + 1e-14
    assert error <= 5 * ours + 1e-14


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
        ("limits of orders", lambda x: integrate.odeint(lambda y, t: -y, x, [0, 1], mxordn=4)),
        ("change the sign", lambda x: integrate.quad(lambda t: x[0] * t, np.inf, 0)),
    ],
    ids=["more of quad", "orders", "downwards"],
)
def test_what_is_not_covered_is_said(said: str, program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(program, np.ones(2))
