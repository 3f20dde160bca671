"""Sparse matrices as objects of programs, beside ``scipy.sparse``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.library import sparse as library
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")


def laplacian(x, a, p):
    n = len(x)
    d = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(n, n))
    whole = sparse.kron(sparse.eye(2), d) + sparse.kron(d.tocsr()[:2, :2], sparse.identity(n))
    two = np.concatenate((x, x * p))
    return d @ x, d.dot(x), d.toarray() * p, (2 * d - d.T / 3) @ x, x @ d, d * x, whole @ two


def steps_of_heat(x, a, p):
    n = len(x)
    d = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(n, n))
    forward = (sparse.eye(n) - 0.1 * p * d).tocsc()
    solve, u = linalg.factorized(forward), x
    for _ in range(3):
        u = linalg.spsolve(forward, u)
    return u, solve(x), linalg.splu(forward).solve(x), linalg.spsolve(sparse.csr_matrix(a), x[:4])


def bands_of_the_run(x, a, p):
    m = sparse.diags([x[:-1], -2 * x - 1, x[1:]], [-1, 0, 1]).tocsc()
    lines = sparse.spdiags(np.array([x, x + 1, x + 2]), [0, -1, 1], 6, 6)
    return linalg.spsolve(m, x), m.diagonal(), lines.toarray(), lines * x, (m @ lines).toarray()


def entries(x, a, p):
    i, j = np.array([0, 1, 2, 3, 0, 1]), np.array([0, 1, 2, 3, 2, 1])
    m = sparse.coo_matrix((x, (i, j)), shape=(4, 4)).tocsr()
    n = sparse.csr_array(a)
    told = sparse.issparse(m), m.shape, m.sum()
    return m @ x[:4], m.toarray(), m[1, 1], n.T @ x[:4], (n * 2 + m).toarray(), n[1:3] @ a, told


def written_one_by_one(x, a, p):
    m = sparse.lil_matrix((6, 6))
    for i in range(6):
        m[i, i] = 2 * p
        if i > 0:
            m[i, i - 1] = -x[i]
    n = m.tocsr()
    m[0, 0] = 9.0
    n.setdiag(x)
    return m.tocsr() @ x, n @ x, m.multiply(n).toarray()


def by_conjugate_gradients(x, a, p):
    found, info = linalg.cg(sparse.csr_matrix(a + a.T), x[:4], rtol=1e-8)
    return found, info, linalg.cg(a + a.T, x[:4], x0=np.ones(4))[0]


def beside_dense_ones(x, a, p):
    m, d = sparse.csr_matrix(a), sparse.dia_matrix((np.array([x[:4], x[:4] + 1]), [0, 1]), (4, 4))
    sums = m.sum(0), m.sum(1), m.mean(axis=0), m.sum(), sparse.csr_array(a).sum(axis=1), m.max()
    mixed = m + a, a - d, d - a, a + m, (m + a) * a, -1.0 * (p / 2) * a - d, sparse.eye(4) - a
    parts = m[:, 1].toarray(), m[1].toarray(), m[2, 1:3].toarray(), m.getcol(0).toarray(), m[1, 2]
    chosen = m[np.array([0, 1]), np.array([2, 3])]
    powers = (
        (m**2).toarray(),
        m.power(2).toarray(),
        abs(-m).toarray(),
        (sparse.csr_array(a) ** 2).toarray(),
    )
    return sums, mixed, parts, chosen, powers, m.todense() * a, linalg.norm(m)


def of_blocks(x, a, p):
    m, e = sparse.csr_matrix(a), sparse.eye(4) * p
    whole = sparse.bmat([[m, None], [e, m.T]])
    line, column = sparse.hstack([m, e]), sparse.vstack((m, sparse.diags([x[:4]], [0])))
    corners = sparse.block_diag([a, m, np.ones((1, 2))])
    halves = sparse.tril(m).toarray(), sparse.triu(m, 1).toarray()
    return (
        whole.toarray(),
        line @ np.ones(8),
        column.toarray(),
        corners.toarray(),
        halves,
        whole.shape,
    )


def some_eigenvalues(x, a, p):
    m = sparse.diags([x[1:], -2 * x, x[1:]], [-1, 0, 1])
    both = m + m.T
    low = linalg.eigsh(both, k=2, which="SA", return_eigenvectors=False)
    values, vectors = linalg.eigsh(both, k=3, which="LM")
    near = linalg.eigsh(both.tocsc(), k=2, sigma=0.0, return_eigenvectors=False)
    return low, values, np.abs(vectors), near


def _given(rng: Any) -> Any:
    return rng.random(6) + 0.1, rng.random((4, 4)) + 4 * np.eye(4), 1.5


CASES = [
    Case(f.__name__, f, "own", "", _given, ())
    for f in (
        *(laplacian, steps_of_heat, bands_of_the_run, written_one_by_one),
        *(by_conjugate_gradients, of_blocks, some_eigenvalues),
    )
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_programs_have_sparse_matrices(case: Case) -> None:
    outcome = on_paper(case)
    assert outcome.kind == RIGHT, outcome


def _leaves(value: Any) -> list[Any]:
    parts = value if isinstance(value, tuple) else ()
    return [leaf for part in parts for leaf in _leaves(part)] if parts else [np.asarray(value)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [entries, beside_dense_ones])
def test_python_computes_what_scipy_gives_as_np_matrix(
    unoptimised: None, function: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(0)
    program = distspmd.program(function, host="allow")
    given = _given(rng)
    found, wanted = map(_leaves, (program(*given), function(*given)))
    program.close()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_programs_have_sparse_matrices(case: Case) -> None:
    outcome = run_here(case)
    assert outcome.kind == RIGHT, outcome


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("np.linalg", lambda x: linalg.eigs(sparse.csr_matrix(x))),
    ("shape=", lambda x: sparse.coo_matrix((x[0], (x[0].astype(int), np.arange(2))))),
    ("nnz", lambda x: (sparse.csr_matrix(x) + sparse.csr_matrix(x)).nnz + x),
    ("Sparse", lambda x: sparse.csr_matrix(x)),
]


@pytest.mark.parametrize(("said", "program"), REFUSED, ids=[said for said, _ in REFUSED])
def test_what_is_not_covered_is_said(said: str, program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(program, np.ones((2, 2)))


def test_a_singular_system_has_the_shortest_solution_or_none() -> None:
    ring = library.matrix(np.array([[1.0, -1, 0], [0, 1, -1], [-1, 0, 1]]), None, None, False)
    found = library.solve(ring, np.array([1.0, 1, -2]))
    np.testing.assert_allclose(found, [1, 0, -1], atol=1e-12)
    assert np.isnan(library.solve(ring, np.ones(3))).all()
