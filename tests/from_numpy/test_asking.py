"""What SciPy itself computes while a program runs, and solvers that ask for functions of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.runtime.host.library_calls import Session, form_of, leaves, write_answer
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

scipy = pytest.importorskip("scipy")
from scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, stats  # noqa: E402


def peaks(x):
    found, told = signal.find_peaks(x, height=0.5)
    return found, told["peak_heights"], x[found].sum()


def tree(x):
    points = x.reshape(-1, 2)
    known = spatial.cKDTree(points)
    distances, places = known.query(points[:3] + 0.01, k=2)
    return distances, places


def hull(x):
    found = spatial.ConvexHull(x.reshape(-1, 2))
    return found.volume, x.reshape(-1, 2)[found.vertices]


def regions(x):
    image = x.reshape(4, 6)
    labels, count = ndimage.label(image > 0.5)
    return labels, count, ndimage.sum(image, labels, range(1, count + 1))


def of_samples(x):
    t = stats.ks_2samp(x[:10], x[10:])
    return t.statistic, t.pvalue, stats.describe(x).variance, stats.gaussian_kde(x)(0.5)


def spline(x):
    t, c, k = interpolate.splrep(np.arange(24.0), x, s=0)
    return interpolate.BSpline(t, c, k)(np.linspace(0, 20, 7)), k


def stored(x):
    a = sparse.csr_matrix(x.reshape(4, 6) * (x.reshape(4, 6) > 0.5))
    total = 0.0
    for i in range(4):
        for k in range(a.indptr[i], a.indptr[i + 1]):
            total += a.data[k] * a.indices[k]
    return a.nnz, total


def by_name(x):
    a = x[:16].reshape(4, 4) + 4 * np.eye(4)
    return linalg.solve_sylvester(a, a, a), sparse.linalg.gmres(sparse.csr_matrix(a), x[:4])[0]


def series(x):
    fit = np.polynomial.chebyshev.chebfit(np.linspace(-1, 1, 24), x, 3)
    path, _ = np.einsum_path("ij,jk,kl->il", *[x.reshape(4, 6)[:, :4]] * 3)
    return np.polynomial.Chebyshev(fit)(0.3), fit, len(path)


def kept_object(x):
    """The object is of the array as it was."""
    known = spatial.ConvexHull(x.reshape(-1, 2))
    x[:] = 0.0
    return known.volume


@pytest.mark.parametrize(
    "program",
    [peaks, tree, hull, regions, of_samples, spline, stored, by_name, series, kept_object],
)
def test_what_scipy_computes_is_asked_for(program: Callable[..., Any]) -> None:
    outcome = on_paper(_case(program))
    assert outcome.kind == RIGHT, outcome.reason


def bounded(x):
    found = optimize.minimize(
        lambda v: ((v - x[:3]) ** 2).sum(), np.zeros(3), method="L-BFGS-B", bounds=[(0, 0.4)] * 3
    )
    return found.x, found.fun, found.success


def constrained(x):
    limits = ({"type": "ineq", "fun": lambda v: v[0] - 2 * v[1] + 2 * x[0]},)
    found = optimize.minimize(
        lambda v: (v[0] - 1) ** 2 + (v[1] - 2.5) ** 2, (2, 0), method="SLSQP", constraints=limits
    )
    return found.x


def fitted(x):
    t = np.linspace(0, 4, 24)
    y = 2.5 * np.exp(-1.3 * t) + 0.01 * x
    fit = optimize.least_squares(lambda p: p[0] * np.exp(p[1] * t) - y, [1.0, 0.0], loss="soft_l1")
    by_bounds = optimize.curve_fit(lambda t, a, b: a * np.exp(b * t), t, y, bounds=(-3, 3))
    return np.round(fit.x, 5), np.round(by_bounds[0], 5)


def stiff(x):
    found = integrate.solve_ivp(
        lambda t, y: [-40 * y[0] + x[0] * y[1], y[0] - y[1]], (0, 1), [1, 0.5], method="Radau"
    )
    return found.t[-1], found.y[:, -1]


def falling(x):
    def fall(t, y):
        return [y[1], -9.81]

    def hit(t, y):
        return y[0]

    hit.terminal = True
    found = integrate.solve_ivp(fall, [0, 100], [1 + x[0], 0], events=hit, dense_output=True)
    return found.t_events[0], found.sol(np.linspace(0, 0.3, 4))


def volumes(x):
    inside = integrate.dblquad(lambda b, a: a * b * x[0], 0, 2, 0, lambda a: a)[0]
    return inside, integrate.tplquad(lambda c, b, a: a + b * c, 0, 1, 0, 1, 0, 1)[0]


def searched(x):
    def least(v):
        return ((v - x[:2]) ** 2).sum()

    found = optimize.differential_evolution(least, [(-1, 1), (-1, 1)], seed=3, maxiter=4)
    return np.round(found.x, 3)


@pytest.mark.parametrize(
    "program", [bounded, constrained, fitted, stiff, falling, volumes, searched]
)
def test_solvers_ask_for_functions_of_the_program(program: Callable[..., Any]) -> None:
    outcome = on_paper(_case(program))
    assert outcome.kind == RIGHT, outcome.reason


def test_a_program_asks_while_it_runs() -> None:
    assert run_here(_case(peaks)).kind == RIGHT


@pytest.mark.slow
def test_a_solver_asks_while_a_program_runs() -> None:
    assert run_here(_case(fitted)).kind == RIGHT


def singular(x):
    try:
        found = linalg.solve_sylvester(np.zeros((2, 2)), x[:4].reshape(2, 2), np.ones((2, 2)))
    except np.linalg.LinAlgError:
        found = np.full((2, 2), -1.0)
    return linalg.cholesky_banded(x[:4].reshape(2, 2) - 5.0), found


def test_what_scipy_raises_ends_the_program_with_its_words() -> None:
    outcome = run_here(_case(singular, compares=False))
    assert "LinAlgError" in outcome.reason
    assert "not positive definite" in outcome.reason


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ("gives neither numbers nor arrays", lambda x: ndimage.find_objects(x > 0.5)),
        ("what it gives has to be known before", lambda x: linalg.null_space(x)),
    ],
)
def test_what_cannot_be_asked_for_is_said(said: str, program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(program, np.ones(4))


def test_answers_of_another_form_are_errors() -> None:
    assert form_of((1, [np.ones(2), None], {"a": 2.0})) == "(x, (x, NoneType), {a: x})"
    assert [np.shape(leaf) for leaf in leaves((1, [np.ones(2)]))] == [(), (2,)]
    room, count = np.zeros(4), np.zeros(1, np.int64)
    write_answer([np.ones(3)], "(x)", [room, count], {0: 1})
    assert (room.tolist(), count.item()) == ([1, 1, 1, 0], 3)
    for wrong in ([np.ones(5)], [np.ones((2, 2))], [np.ones(2) * 1j], [np.ones(2), 1]):
        with pytest.raises(ValueError, match=r"it gave"):
            write_answer(wrong, "(x)", [room, count], {0: 1})


def test_the_library_gets_copies() -> None:
    given = np.ones(3)
    made = {"call": [{"import": "numpy:copyto"}, [{"value": 0}, 2.0], {}]}
    Session([given]).value(made)
    assert given.tolist() == [1, 1, 1]


def _case(program: Callable[..., Any], *, compares: bool = True) -> Case:
    def make(rng: Any) -> Any:
        return (rng.random(24),)

    return Case(program.__name__, program, "asking", "scipy", make, (), True)
