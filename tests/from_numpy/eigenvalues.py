"""Programs with eigenvalues of real matrices, for :mod:`from_numpy.test_eigenvalues`.

Each gets a matrix with real eigenvalues, and one with complex ones, and returns what NumPy returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def as_they_are(a: Any) -> Any:
    values, vectors = np.linalg.eig(a)
    return values, vectors, np.linalg.eig(a).eigenvalues, np.iscomplexobj(values)


def spectral_radius(a: Any) -> Any:
    values = np.linalg.eigvals(a)
    stable = values.real.max() < 0
    return np.max(np.abs(values)), stable, np.all(values > 0), max(abs(v) for v in values)


def stationary_distribution(a: Any) -> Any:
    values, vectors = np.linalg.eig(a.T)
    k = np.argmin(np.abs(values - 1.0))
    found = np.real(vectors[:, k])
    found /= found.sum()
    return found, values.imag


def sorted_by_size(a: Any) -> Any:
    values, vectors = np.linalg.eig(a)
    order = np.argsort(values)[::-1]
    values = values[order]
    vectors = vectors[:, order]
    again = vectors @ np.diag(values) @ np.linalg.inv(vectors)
    return values, vectors, again.real, values[0], values.sum(), again


def functions_of_values(a: Any) -> Any:
    values = np.linalg.eigvals(a)
    out = np.zeros(len(values), complex)
    out[:] = values
    positive = 0
    for value in values:
        if value.real > 0:
            positive += 1
    kinds = np.isreal(values), np.isrealobj(values), np.angle(-values)
    return out, positive, np.sqrt(values), kinds, values.conj(), values.astype(complex), 1 / values


def changed_in_place(a: Any) -> Any:
    values, vectors = np.linalg.eig(a)
    first = vectors[:, 0]
    for i in range(3):
        vectors[:, i] = vectors[:, i] / np.linalg.norm(vectors[:, i])
    vectors *= 2
    values **= 2
    return values, vectors, first, np.exp(values), np.prod(values), np.mean(values)


def decisions(a: Any) -> Any:
    values, _ = np.linalg.eig(a)
    factor = 1.0 if np.any(np.iscomplex(values)) else 2.0
    sizes = np.zeros(3)
    for k in range(3):
        sizes[k] = abs(values[k]) * factor
    if np.iscomplexobj(values):
        values = values.real
    return sizes, sorted([abs(v) for v in values]), values


def stacks(a: Any) -> Any:
    several = np.stack([a, a.T, a @ a])
    return np.linalg.eigvals(several), np.linalg.eig(several.astype(np.float32)).eigenvalues


PROGRAMS = [
    as_they_are,
    spectral_radius,
    stationary_distribution,
    sorted_by_size,
    functions_of_values,
    changed_in_place,
    decisions,
    stacks,
]
MATRICES = {
    "real": np.array([[2.0, 1, 0], [1, 3, 1], [0.5, 1, 4]]),
    "complex": np.array([[0.0, 1, 0], [-1, 0, 0.5], [0, 0, 3]]),
}
CASES = [
    Case(f"{f.__name__}-{kind}", f, "", "NumPy", lambda _, m=matrix: (m.copy(),), (), warns=True)
    for f in PROGRAMS
    for kind, matrix in MATRICES.items()
]
