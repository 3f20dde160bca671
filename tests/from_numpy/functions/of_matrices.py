"""Functions of matrices by ``scipy.linalg``."""

import numpy as np
from scipy import linalg

from from_numpy.functions.registry import program


def _square(rng):
    return rng.normal(size=(5, 5)), rng.normal(size=5)


@program(_square)
def exponentials(a, b):
    kinds = linalg.expm(a), linalg.expm(20 * a), linalg.expm(a * 1j), linalg.expm(np.zeros((3, 3)))
    more = linalg.expm(a.astype(np.float32)), linalg.expm((a * 3).astype(int))
    return kinds, more, linalg.expm(np.stack([a, 3 * a])), linalg.expm(a[:1, :1])


@program(_square)
def factors_of_matrices(a, b):
    made = linalg.lu(a), linalg.lu(a[:, :3]), linalg.lu(a[:3]), linalg.lu(a, permute_l=True)
    orthogonal = linalg.qr(a[:, :3]), linalg.qr(a[:, :3], mode="economic")
    upper = linalg.qr(a[:, :3], mode="r")[0]
    return made, orthogonal, upper, linalg.polar(a), linalg.polar(a, side="left")


@program(_square)
def roots_and_values(a, b):
    symmetric = a + a.T
    some = linalg.eigh(symmetric, eigvals_only=True, subset_by_index=[0, 1])
    return linalg.sqrtm(a @ a.T + np.eye(5)), linalg.eigh(symmetric, eigvals_only=True), some


@program(_square)
def matrices_of_structure(a, b):
    made = linalg.hankel(b), linalg.hankel(b, a[0]), linalg.circulant(b), linalg.companion(b)
    return made, linalg.hilbert(3) * 2 + a[0, 0]


@program(_square)
def bands(a, b):
    wide = np.stack([b * 0.1, np.abs(a[0]) + 2])
    return (
        linalg.solve_banded((1, 1), a[:3], b),
        linalg.solve_banded((1, 1), a[:3], a),
        linalg.solve_banded((2, 1), a[:4], b),
        linalg.solveh_banded(wide, b),
        linalg.solveh_banded(wide[::-1], b, lower=True),
    )
