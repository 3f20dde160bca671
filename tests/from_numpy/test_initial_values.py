"""``scipy.integrate.solve_ivp``: as SciPy computes it, in programs and on ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

integrate = pytest.importorskip("scipy.integrate")


def lotka_volterra(t, z, a, b, c, d):
    x, y = z
    return [a * x - b * x * y, -c * y + d * x * y]


def pendulum(t, y):
    return np.array([y[1], -np.sin(y[0])])


def at_places(y0):
    found = integrate.solve_ivp(pendulum, [0, 2.0], y0, t_eval=np.linspace(0, 2, 7))
    return found.t, found.y, found.y[0].max()


def at_steps(y0):
    found = integrate.solve_ivp(
        lambda t, y: -0.5 * y + t, (0, 2.0), y0[:1] + 1, rtol=1e-6, method="RK23"
    )
    return found.t, found.y, found.nfev, found.success, found.message, found.sol is None


def backwards(y0, rate):
    found = integrate.solve_ivp(
        lotka_volterra, (2.0, 0), y0, args=(1.5, rate, 3, 1), t_eval=np.array([2.0, 1.0, 0.3])
    )
    return found.y[:, -1]


def turning(y0):
    found = integrate.solve_ivp(lambda t, z: 1j * z, (0, 1.0), y0 + 0.5j, t_eval=[0.5, 1.0])
    return found.y


CASES = [
    Case(f.__name__, f, "own", "", make, ())
    for f, make in (
        (at_places, lambda rng: (np.array([1.0, 0.2]),)),
        (at_steps, lambda rng: (np.array([1.0, 0.2]),)),
        (turning, lambda rng: (np.array([1.0, 0.2]),)),
        (backwards, lambda rng: (np.array([2, 3]), 1.0)),
    )
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_programs_solve_initial_value_problems(case: Case) -> None:
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome


@pytest.mark.slow
def test_ranks_solve_initial_value_problems(launch: Any) -> None:
    folder = Path(__file__).parent
    done = launch(folder / "run_here.py", "from_numpy.test_initial_values", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout
