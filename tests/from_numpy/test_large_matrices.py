"""One large matrix is factorised by all ranks together: results, bytes, errors, and schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans import Machine
from distspmd.runtime.compilers.scalapack import VARIABLE, find_scalapack

SLOW = pytest.mark.slow


FEW = ("cholesky", "solved", "inverted", "fitted", "reflected", "solution")
"""Of the functions of ``dealt_matrices.py``; all where none is named."""


@pytest.mark.parametrize(
    ("ranks", "names"), [(3, FEW), *(pytest.param(n, (), marks=SLOW) for n in range(1, 7))]
)
def test_ranks_factorise_a_matrix_together(
    launch: Any, root: Path, ranks: int, names: tuple[str, ...]
) -> None:
    done = launch(root / "tests" / "ranks" / "dealt_matrices.py", *names, ranks=ranks)
    assert "all right" in done.stdout


@pytest.mark.skipif(find_scalapack() is None, reason="there is no ScaLAPACK for this MPI")
@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=SLOW) for n in (2, 5, 6))])
def test_ranks_find_eigenvectors_and_singular_vectors_together(
    launch: Any, root: Path, ranks: int
) -> None:
    script = root / "tests" / "ranks" / "dealt_matrices.py"
    done = launch(script, "symmetric", "square", "eigen", "singular", ranks=ranks)
    assert "all right" in done.stdout


def spectrum(a: Any) -> Any:
    values, vectors = np.linalg.eigh(a)
    return values[0], vectors[:, 0], np.linalg.svd(a)[1][:3]


def test_a_search_shares_eigenvectors_where_there_is_a_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, __file__)  # which nothing loads here
    sdfg = numpy_program(spectrum, np.eye(1000), host="refuse")
    lowering = distspmd.lower(sdfg, ranks=4, machine=Machine())
    distspmd.verify(lowering)
    assert [call.function for call in lowering.matrices if call.is_split] == ["eigenvectors", "svd"]
    told = str(distspmd.explain(lowering))
    assert "by ScaLAPACK" in told
    assert "of which there is none" not in told


def test_the_record_says_that_eigenvectors_want_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "none")
    sdfg = numpy_program(spectrum, np.eye(1000), host="refuse")
    lowering = distspmd.lower(sdfg, ranks=4, machine=Machine())
    assert not lowering.matrices
    told = str(distspmd.explain(lowering)).replace("\n", " ")
    assert "eigenvectors of one matrix are found by ScaLAPACK, of which there is none" in told
    assert "libscalapack" in told


def factorised(a: Any, b: Any) -> Any:
    return np.linalg.cholesky(a), np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a)


@pytest.mark.parametrize(("n", "ranks"), [(2000, 2), (3000, 4)])
def test_a_search_splits_large_matrices_and_the_prediction_is_its_cost(n: int, ranks: int) -> None:
    sdfg = numpy_program(factorised, np.eye(n), np.ones(n), host="refuse")
    lowering = distspmd.lower(sdfg, ranks=ranks, machine=Machine())
    distspmd.verify(lowering)
    assert [call.function for call in lowering.matrices] == [
        *("cholesky", "solve", "inverse", "diagonal_of_factor")
    ]
    assert all(call.is_split and len(call.workers) == ranks for call in lowering.matrices)
    assert lowering.whole < 0.02
    one = distspmd.predict(distspmd.lower(sdfg, {}, machine=Machine())).seconds
    found = distspmd.search(sdfg, ranks=ranks, machine=Machine())
    assert distspmd.predict(lowering).seconds == pytest.approx(found.cost, rel=1e-3)
    assert 0.97 * ranks > one / distspmd.predict(lowering).seconds > 0.5 * ranks
    assert "in textbooks" in str(distspmd.explain(lowering))


def test_matrices_that_are_too_small_stay_whole() -> None:
    n = 300
    sdfg = numpy_program(factorised, np.eye(n), np.ones(n), host="refuse")
    far = Machine(alpha=1e-4, beta=1e-8)
    lowering = distspmd.lower(sdfg, ranks=4, machine=far)
    assert not any(call.is_split for call in lowering.matrices)


@pytest.mark.parametrize("device", [None, pytest.param("emulated", marks=SLOW)])
def test_matrices_are_factorised_in_loops(device: str | None) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((300, 300)), rng.standard_normal(300)
    given = {"a": a @ a.T + 300 * np.eye(300), "b": b}
    sdfg = numpy_program(steps, *given.values(), host="refuse")
    spaces = [s.name for s in distspmd.iteration_spaces(sdfg) if hasattr(s.node, "block")]
    lowering = distspmd.lower(sdfg, dict.fromkeys(spaces, (3,)))
    assert [call.times for call in lowering.matrices] == [3, 3]
    example = {"examples": given, "inputs": given, "device": device}
    distspmd.check(steps, lowering.schedule, 3, runs=1, **example)


@SLOW
def test_tall_matrices_are_factorised_in_loops_with_a_device() -> None:
    rng = np.random.default_rng(1)
    given = {"a": rng.standard_normal((400, 5)), "b": rng.standard_normal(400)}
    sdfg = numpy_program(tall_steps, *given.values(), host="refuse")
    spaces = [s.name for s in distspmd.iteration_spaces(sdfg) if hasattr(s.node, "block")]
    lowering = distspmd.lower(sdfg, dict.fromkeys(spaces, (3,)))
    example = {"examples": given, "inputs": given, "device": "emulated"}
    distspmd.check(tall_steps, lowering.schedule, 3, runs=1, **example)


def tall_steps(a: Any, b: Any) -> Any:
    for _t in range(2):
        q, r = np.linalg.qr(a)
        a[:] = q * 2 + b[:, None] * 0.1
        b += np.linalg.lstsq(a, b, rcond=None)[0].sum()
    return b.sum(), r


def steps(a: Any, b: Any) -> Any:
    for _t in range(3):
        b[:] = np.linalg.solve(a, b) + np.linalg.cholesky(a)[:, 0]
        a[:] = a * 0.9 + np.diag(np.abs(b))
    return b.sum()


def principal(x: Any, y: Any) -> Any:
    centred = x - x.mean(axis=0)
    u, s, v = np.linalg.svd(centred, full_matrices=False)
    weights = np.linalg.lstsq(centred, y, rcond=None)[0]
    return u[:, :3] * s[:3], v[:3], weights


def test_principal_components_and_least_squares_move_triangles() -> None:
    m, n, ranks = 200_000, 40, 4
    rng = np.random.default_rng(0)
    sdfg = numpy_program(principal, rng.random((m, n)), rng.random(m), host="refuse")
    lowering = distspmd.lower(sdfg, ranks=ranks, machine=Machine())
    distspmd.verify(lowering)
    assert [call.is_split for call in lowering.matrices] == [True, True]
    assert all(call.expected_bytes == 2 * 3 * n * n * 8 for call in lowering.matrices)
    assert lowering.whole < 0.05
