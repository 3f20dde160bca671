"""Panels that loops choose, on the ranks of the launch: results, and bytes as predicted."""

from functools import partial

import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD
N, P = 13, comm.size


def cholesky(a):
    for k in range(N):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k + 1 :, k])


def factors(a):
    for k in range(N - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def triangular(a, b):
    for k in range(N - 1, -1, -1):
        b[k, :] = b[k, :] / a[k, k]
        b[:k, :] -= np.outer(a[:k, k], b[k, :])


def orthogonal(a, q):
    for k in range(N):
        q[:, k] = a[:, k] / np.sqrt(a[:, k] @ a[:, k])
        a[:, k + 1 :] -= np.outer(q[:, k], q[:, k] @ a[:, k + 1 :])


def reflected(a):
    for k in range(N - 1):
        v = np.copy(a[k:, k])
        v[0] += np.sign(v[0]) * np.sqrt(v @ v)
        v /= np.sqrt(v @ v)
        a[k:, k:] -= 2 * np.outer(v, v @ a[k:, k:])


def shortest(p):
    for k in range(N):
        p[:] = np.minimum(p, np.add.outer(p[:, k], p[k, :]))


def smoothed(x):
    for t in range(3):
        for k in range(1, N - t - 1):
            x[k, :] = x[k - 1, :] + x[k + 1, :] + x[N - k - 1, :]


rng = np.random.default_rng(5)
square = rng.random((N, N))
definite = square @ square.T + N * np.eye(N)
CASES = [
    (cholesky, {"a.3": (P, 1)}, (definite,)),
    (cholesky, {"a.3": (1, P)}, (definite,)),
    (factors, {"a.2": (P // 2, 2)}, (definite,)),
    (triangular, {"b.2": (P, 1)}, (definite, square)),
    (shortest, {"p": (P // 2, 2)}, (square,)),
    (smoothed, {"x": {"__k0": P}}, (square,)),
    (orthogonal, {"q": (P,), "q_slice_matmul_a_slice": (P, 1), "a": (P, 1)}, (square, square)),
    (orthogonal, {"q": (P,), "q_slice_matmul_a_slice": (1, P), "a": (1, P)}, (square, square)),
    (reflected, {"v_matmul_a_slice": (P // 2, 2), "a": (P, 1)}, (square,)),
    (reflected, {"v_matmul_a_slice": (1, P), "a": (1, P)}, (square,)),
]


def lowered(function, schedule, arrays):
    """On rank 0 alone."""
    if any(isinstance(asked, dict) for asked in schedule.values()):
        mesh = distspmd.layouts.Mesh(x=P)
        schedule = {
            name: distspmd.schedule.OnMesh(mesh, dict.fromkeys(asked, "x"))
            for name, asked in schedule.items()
        }
    from distspmd.frontend import numpy_program

    return distspmd.lower(numpy_program(function, *arrays), schedule)


for function, schedule, arrays in CASES:
    make = partial(lowered, function, schedule, arrays)
    with distspmd.compile(make, comm) as program:
        given = [array.copy() for array in arrays]
        if comm.rank == 0:
            program(*given)
            wanted = [array.copy() for array in arrays]
            function(*wanted)
            for found, expected in zip(given, wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        else:
            program()
        counted = [(m, s) for m, s in program.statistics() if m.asked]
        assert counted, function.__name__
        for memlet, found in counted:
            asked, received = (comm.allreduce(n) for n in (found.asked_bytes, found.received_bytes))
            told = f"{function.__name__} {schedule}: {memlet.steps}: {received} bytes"
            assert asked == 0, f"{told}, and {asked} of requests"
            assert received == memlet.received, f"{told}, not {memlet.received}"
            if comm.rank == 0:
                print(told)
if comm.rank == 0:
    print("all right")
