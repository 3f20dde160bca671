"""Arguments that few programs give, and attributes that are assigned to."""

import numpy as np

from from_numpy.functions.registry import program


def _of_types(rng):
    z = rng.normal(size=(4, 3)) + 1j * rng.normal(size=(4, 3))
    z[0, 0], z[1, 1], z[2, 2] = complex(np.inf, np.nan), np.nan, complex(1, -np.inf)
    return rng.normal(size=(6, 4)), rng.integers(-99, 99, (5, 6)), z


@program(_of_types)
def diagonals_that_are_filled(x, n, z):
    cube, tall, wide = np.zeros((3, 3, 3)), np.zeros((7, 3)), np.zeros((3, 7), int)
    np.fill_diagonal(cube, 4)
    np.fill_diagonal(tall, [1.0, 2.0], wrap=True)
    np.fill_diagonal(wide, n[0])
    np.fill_diagonal(x, x[1:3, 1] * 2, wrap=False)
    return cube, tall, wide


@program(_of_types)
def numbers_that_are_rounded(x, n, z):
    w = np.where(np.isfinite(z), z, 0.5)
    kinds = np.isfinite(z), np.isinf(z), np.isnan(z), np.isfinite(z * 1e200 * 1e108)
    return kinds, np.round(n, -1), n.round(2), np.around(w, 1), np.round(w), np.round(x * 100, -1)


@program(_of_types)
def numbers_in_place_of_nan(x, n, z):
    y = np.log(np.abs(x) - 0.5)
    kept = np.nan_to_num(y, copy=False, nan=7.0)
    return np.nan_to_num(z), np.nan_to_num(z, nan=1.0, posinf=9.0, neginf=-9.0), y, kept


@program(_of_types)
def borders_that_are_turned(x, n, z):
    return (
        np.pad(n, 2, "reflect", reflect_type="odd"),
        np.pad(x[0], (1, 2), "symmetric", reflect_type="odd"),
        np.pad(x, ((1, 0), (2, 3)), mode="reflect", reflect_type="odd"),
    )


@program(_of_types)
def places_by_several_modes(x, n, z):
    return (
        np.ravel_multi_index((n[0], n[1]), (4, 5), mode=("clip", "wrap")),
        np.ravel_multi_index((n[0], n[1]), (4, 5), mode="wrap", order="F"),
        np.size(x, (0, 1)),
        np.linspace(0, 1, 5, retstep=True)[1],
    )


@program(_of_types)
def parts_that_are_assigned(x, n, z):
    w = np.zeros((4, 6), complex)
    w.real = x.T
    w.imag[...]
    w[1:].imag = x[:, 1:].T * 2
    z.imag = 3
    z[1:3].real = x[1:3, :3]
    x.real = 1
    np.einsum("ii->i", x[:4])[:] = 5
    np.einsum("ij->ji", n)[0] = 8
    return w


@program(_of_types)
def products_of_vectors_of_two_and_three(x, n, z):
    return np.cross(x[:, :3], x[:, 2:]), np.cross(n[:, :2], n[:, 3:]), np.cross(z[:, :2], z)
