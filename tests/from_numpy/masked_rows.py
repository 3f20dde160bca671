"""Rows that a mask chooses: kept, picked from, and written back where the same mask chooses."""

import numpy as np

from from_numpy.corpus.registry import Case

N, M = 9, 7


def turned_around(f, m):
    """Rows that a mask of two dimensions chooses are kept, picked from, and written back later."""
    for t in range(3):
        kept = f[m, :]
        kept = kept[:, [2, 0, 1, 3]]
        f += t
        f *= np.roll(f, 1, axis=0)
        f[m, :] = kept
    return kept


def columns_of_rows(f, m):
    g = f[m]
    cols = np.array([1, -1])
    h = g[:, 1:3] * 2
    f[m, 1:3] = h
    f[m, 0] = g[:, -1]
    back = g[:, cols]
    f[m, :2] += back
    return g[:, 1].sum(), g[:, [0, 3]].mean(axis=0), g[:, ::-1], g[1:, [0, 1]], back.shape[1]


def two_choices(f, m):
    a, b = f[m], f[m] * 2
    c = f[:, :, 0][m]
    f -= 1
    f[m] = a * b
    f[m, 1] = c
    return c.sum()


def mask_changes(f, m):
    """What was kept by a mask is not what it chooses after a change of it."""
    kept = f[m]
    m[:] = m[::-1].copy()
    f[m] = kept
    m[0] = ~m[0]
    m[0] = ~m[0]
    f[m] += kept
    return f


def mask_changes_in_loops(f, m):
    kept = f[m]
    for _ in range(3):
        f[m] = kept * 2
        m[:] = np.roll(m, 1, axis=0)
    return f


def mask_changes_in_branches(f, m):
    kept = f[m]
    if f[0, 0, 0] > -1:
        m[:] = np.roll(m, 2, axis=0)
    f[m] = kept + 1
    return f


def mask_of_a_row(f, m):
    row = m[2]
    kept = f[:, 0, :][row[:4].sum() :][0]
    x = f[0, :, 0].copy()
    k = x[row]
    row[0] = not row[0]
    row[0] = not row[0]
    x[row] = k + 1
    return x, kept


def picked_apart(f, m):
    g = f.reshape(N, M, 2, 2)[m]
    h = f.reshape(N, M, 2, 2, 1)[m]
    return g[:, 1, [0, 1]], g[:, [0, 1], 1], h[:, [0, 1], :, [0, 0]], g[:, None, 0]


def kept_for_the_next_iteration(f, m):
    kept = f[m]
    last = kept[:, 0]
    for _ in range(4):
        f[m] = kept + 1
        m[:] = np.roll(m, 1, axis=0)
        kept = f[m]
        f *= 0.5
        f[m, 0] += last
        last = kept[:, 1]
    return kept, last


BY_MASKS = [
    kept_for_the_next_iteration,
    turned_around,
    columns_of_rows,
    two_choices,
    mask_changes,
    mask_changes_in_loops,
    mask_changes_in_branches,
    mask_of_a_row,
    picked_apart,
]


def _case(function):
    def arguments(_):
        rng = np.random.default_rng(4)
        return rng.random((N, M, 4)), rng.random((N, M)) < 0.4

    return Case(function.__name__, function, "truth", "own", arguments, ())


CASES = [_case(function) for function in BY_MASKS]
