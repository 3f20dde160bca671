"""Matrices that the ranks of the launch factorise together: results, bytes as said, and errors."""

import sys
from functools import partial

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.frontend.from_numpy.numpy import lapack_calls
from distspmd.plans.dealt_matrix import TOGETHER
from distspmd.plans.library_matrix import LibraryMatrix
from distspmd.runtime.compilers.scalapack import find_scalapack

comm = MPI.COMM_WORLD
P = comm.size
lapack_calls.LARGE = 2
rng = np.random.default_rng(5)


def matrix(n, dtype, m=None):
    found = rng.standard_normal((m or n, n))
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.standard_normal(found.shape)
    return found.astype(dtype)


def definite(n, dtype):
    a = matrix(n, dtype)
    return (a @ a.conj().T + n * np.eye(n)).astype(dtype)


def cholesky(a):
    return np.linalg.cholesky(a)


def cholesky_upper(a):
    return np.linalg.cholesky(a, upper=True)


def solved(a, b, c):
    x, y = np.linalg.solve(a, b), np.linalg.solve(a, c)
    return x, y


def inverted(a):
    return np.linalg.inv(a), *np.linalg.slogdet(a), np.linalg.det(a / 3)


def triangular(a, b, c):
    from scipy.linalg import solve_triangular

    lower = solve_triangular(a, b, lower=True)
    upper = solve_triangular(a, b, trans=1)
    return lower, upper, solve_triangular(a, c, lower=True, trans=2, unit_diagonal=True)


def orthogonal(a):
    return *np.linalg.qr(a), np.linalg.qr(a * 2, mode="r")


def reflected(a):
    return *np.linalg.qr(a), np.linalg.qr(a * 2, mode="r")


def symmetric(a):
    w, v = np.linalg.eigh(a)
    return w, np.linalg.eigvalsh(a, "U"), np.abs(v), v * w @ v.conj().T


def square(a):
    u, s, v = np.linalg.svd(a)
    return np.abs(u), s, np.abs(v), u * s @ v, np.linalg.svd(a / 3, compute_uv=False)


def decomposed(a):
    return *np.linalg.svd(a, full_matrices=False), np.linalg.svd(a, compute_uv=False)


def fitted(a, b, c):
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond=None)
    return x, residuals, rank, s, np.linalg.lstsq(a, c, rcond=None)[0]


HAS_LIBRARY = find_scalapack() is not None
GRIDS = [(P,)] if P < 3 else [(P,), (P - 1,)]
CASES = [
    *((cholesky, (grid,), (definite(n, t),)) for grid in GRIDS for n, t in ((13, "d"), (150, "f"))),
    (cholesky_upper, ((P,),), (definite(70, "D"),)),
    (cholesky, ((P,),), (definite(2, "d"),)),
    (solved, ((P,), (P, 1)), (matrix(150, "d"), matrix(1, "d", 150)[:, 0], matrix(70, "d", 150))),
    (solved, (GRIDS[-1], (1, P)), (matrix(37, "F"), matrix(1, "F", 37)[:, 0], matrix(5, "F", 37))),
    (inverted, ((P,), (P,), GRIDS[-1]), (matrix(131, "d"),)),
    (inverted, ((P,), (P,), GRIDS[-1]), (matrix(16, "D"),)),
    (inverted, ((P,), (P,), GRIDS[-1]), (matrix(67, "f"),)),
]


def lowered(function, grids, arrays):
    """On rank 0 alone."""
    from distspmd.frontend import numpy_program

    sdfg = numpy_program(function, *arrays, host="refuse")
    spaces = [s for s in distspmd.iteration_spaces(sdfg) if hasattr(s.node, "block")]
    talks = [s.name for s in spaces if is_meant(function, s.node.function)]
    return distspmd.lower(sdfg, dict(zip(talks, grids, strict=True)), search=False)


def run(function, grids, arrays):
    with distspmd.compile(partial(lowered, function, grids, arrays), comm) as program:
        if comm.rank == 0:
            found = program(*[array.copy() for array in arrays])
            wanted = function(*arrays)
            single = np.dtype(arrays[0].dtype).char in "fF"
            for one, other in zip(*map(results, (found, wanted)), strict=True):
                assert np.asarray(one).dtype == np.asarray(other).dtype
                scale = max(1.0, float(np.abs(other).max(initial=0)))
                np.testing.assert_allclose(
                    one, other, rtol=0, atol=scale * (2e-3 if single else 1e-9)
                )
        else:
            program()
        calls = [(m, s) for m, s in program.statistics() if hasattr(m, "textbook")]
        counted = [(m, s) for m, s in calls if is_meant(function, m.function)]
        assert counted, function.__name__
        for grid, (call, counts) in zip(grids, counted, strict=True):
            received = comm.allreduce(counts.received_bytes)
            told = f"{function.__name__} {grid}: {call.layouts}: {received} bytes"
            ends_early = function is determinant and received < call.expected_bytes
            own = call.ends if isinstance(call, LibraryMatrix) and call.is_split else None
            wanted = (
                call.expected_bytes if own is None else own
            )  # what a library moves is not counted
            assert ends_early or received == wanted, (told, wanted)
            assert call.is_split == (min(grid[0], call.rows[-1][1] or 2) > 1), told


def is_meant(function, called):
    """Whether a case is about a call: those of triangles of tall matrices stay whole."""
    by_library = called in TOGETHER and TOGETHER[called].library
    return not by_library or function in (symmetric, square, eigen, singular)


def results(found):
    return found if isinstance(found, tuple) else (found,)


def ends_alike(function, grids, arrays):
    """The error of NumPy, on all ranks."""
    with distspmd.compile(partial(lowered, function, grids, arrays), comm) as program:
        wanted = error_of(lambda: function(*arrays))
        own = [array.copy() for array in arrays] if comm.rank == 0 else []
        told = error_of(lambda: program(*own))
        assert wanted
        assert wanted.partition(":")[0] in told, (function.__name__, comm.rank, told)


def error_of(call):
    try:
        call()
    except np.linalg.LinAlgError as error:
        return str(error)
    return ""


bad = definite(90, "d")
bad[57, 57] = -1


def inverse(a):
    return np.linalg.inv(a)


def solution(a):
    return np.linalg.solve(a, a[:, 0])


def determinant(a):
    return np.linalg.slogdet(a)


EVEN = np.where(np.arange(90) == 3, 0, np.eye(90))
CASES += [(determinant, ((P,),), (EVEN,))]
FAULTS = [
    (cholesky, ((P,),), (bad,)),
    (inverse, ((P,),), (np.zeros((90, 90)),)),
    (solution, ((P,),), (EVEN,)),
]

NARROW = rng.standard_normal((4 * P + 1, P))
TALL = [matrix(7, "d", 83), matrix(5, "F", 61), matrix(30, "f", 130), matrix(1, "d", 9), NARROW]
TALL += [matrix(3, "d", 100_003)]  # in pieces
CASES += [(orthogonal, (GRIDS[n % len(GRIDS)], (P,)), (a,)) for n, a in enumerate(TALL)]
CASES += [
    (decomposed, ((P,), (P,)), (TALL[0],)),
    (fitted, ((P,), (P,)), (TALL[0], matrix(3, "d", 83), matrix(1, "d", 83)[:, 0])),
]

CASES += [  # square, of more rows, and of fewer
    (reflected, (GRIDS[n % len(GRIDS)], (P,)), (matrix(columns, t, rows),))
    for n, (rows, columns, t) in enumerate(
        [
            (150, 150, "d"),
            (37, 37, "F"),
            (131, 70, "D"),
            (300, 280, "f"),
            (70, 131, "d"),
            (20, 67, "D"),
        ]
    )
]

LIBRARY = [
    (symmetric, (grid, (P,)), (definite(n, t) - n * np.eye(n, dtype=t),))
    for n, t, grid in (
        (150, "d", (P,)),
        (67, "D", GRIDS[-1]),
        (130, "f", (P,)),
        (37, "F", (P,)),
        (max(2, P), "d", (P,)),
    )
]
LIBRARY += [
    (square, (grid, (P,)), (matrix(n, t) / n + np.diag(np.arange(1, n + 1)).astype(t),))
    for n, t, grid in (
        (150, "d", (P,)),
        (67, "D", GRIDS[-1]),
        (130, "f", (P,)),
        (37, "F", (P,)),
        (max(2, P), "d", (P,)),
    )
]

EDGE = [(matrix(n, t) / n + 2 * np.eye(n)).astype(t) for n, t in ((150, "d"), (45, "F"))]
CASES += [
    (triangular, ((P, 1), GRIDS[-1] + (1,), (P,)), (a, matrix(9 * P, a.dtype, len(a)), a[:, 0]))
    for a in EDGE
]


def backward(a):
    from scipy.linalg import solve_triangular

    return solve_triangular(a, a[:, 0])


FAULTS += [(backward, ((P,),), (EVEN,))]
UNKNOWN = np.full((64, 64), np.nan)


def eigen(a):
    return np.linalg.eigvalsh(a, "U")


def singular(a):
    return np.linalg.svd(a)


if HAS_LIBRARY:
    CASES += LIBRARY
    FAULTS += [(each, (GRIDS[-1],), (UNKNOWN,)) for each in (eigen, singular)]
names = sys.argv[1:]
for case in CASES:
    if not names or case[0].__name__ in names:
        run(*case)
for case in FAULTS:
    if not names or case[0].__name__ in names:
        ends_alike(*case)
if comm.rank == 0:
    print("all right")
