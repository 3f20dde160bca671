"""``scipy.integrate.solve_ivp``: as SciPy computes it, in programs and on ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.frontend.from_numpy.library import initial_values
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


CASES = [
    Case(f.__name__, f, "own", "", make, ())
    for f, make in (
        (at_places, lambda rng: (np.array([1.0, 0.2]),)),
        (at_steps, lambda rng: (np.array([1.0, 0.2]),)),
        (backwards, lambda rng: (np.array([2, 3]), 1.0)),
    )
]


@pytest.mark.parametrize("method", ["RK45", "RK23"])
@pytest.mark.parametrize("t_eval", [None, np.linspace(0, 15, 40)])
@pytest.mark.parametrize(
    "options",
    [{}, {"rtol": 1e-6, "atol": 1e-9}, {"max_step": 0.2}, {"first_step": 0.1}],
    ids=lambda options: next(iter(options), "as it is"),
)
def test_steps_are_those_of_scipy(method: str, t_eval: Any, options: dict[str, float]) -> None:
    given = (lotka_volterra, [0, 15], [10, 5])
    named = {"args": (1.5, 1, 3, 1), "method": method, "t_eval": t_eval, **options}
    wanted = integrate.solve_ivp(*given, **named)
    found = initial_values.solve_ivp(*given, **named)
    assert found.nfev == wanted.nfev
    assert np.allclose(found.t, wanted.t, rtol=1e-8)
    assert np.allclose(found.y, wanted.y, rtol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_programs_solve_initial_value_problems(case: Case) -> None:
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome


@pytest.mark.slow
def test_ranks_solve_initial_value_problems(launch: Any) -> None:
    folder = Path(__file__).parent
    done = launch(folder / "run_here.py", "from_numpy.test_initial_values", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


def test_steps_that_get_too_small_are_an_error() -> None:
    def blows_up(t: Any, y: Any) -> Any:
        return y**2

    with np.errstate(all="ignore"), pytest.raises(RuntimeError, match="Required step size"):
        initial_values.solve_ivp(blows_up, (0, 5), np.array([1.0]))
