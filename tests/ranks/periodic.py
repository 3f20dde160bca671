"""Programs with periodic, reflecting and padded boundaries, on any number of ranks beside NumPy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 3
SHIFTS = np.array([0, 1, -1, 2, -3])
AXES = np.array([0, 1, 0, 1, 1])


def rolled(u):
    for _ in range(STEPS):
        u = (np.roll(u, 1) + np.roll(u, -1)) / 2
    return u


def rolled_in_place(u):
    for _ in range(STEPS):
        u[:] = (np.roll(u, 1) + np.roll(u, -1)) / 2


def rolled_far(u):
    return np.roll(u, 13) - 2 * np.roll(u, -40) + np.roll(u, 3 * len(u))


def heat(u):
    for _ in range(STEPS):
        u = u + 0.1 * (
            np.roll(u, 1, axis=0)
            + np.roll(u, -1, axis=0)
            + np.roll(u, 1, axis=1)
            + np.roll(u, -1, axis=1)
            - 4 * u
        )
    return u


def shallow_water(h):
    u, v = np.zeros_like(h), 0.1 * h
    for _ in range(STEPS):
        hx = (np.roll(h, -1, 0) - np.roll(h, 1, 0)) / 2
        u -= 0.1 * hx
        v -= 0.1 * (np.roll(h, -1, 1) - np.roll(h, 1, 1)) / 2
        along = (np.roll(u, -1, 0) - np.roll(u, 1, 0)) / 2
        h -= 0.1 * (along + (np.roll(v, -1, 1) - np.roll(v, 1, 1)) / 2)
    return u, v


def advected(h):
    u = h * 0.5
    for _ in range(STEPS):
        du = u * (np.roll(u, -1, 1) - np.roll(u, (1, 2), axis=(0, 1)))
        h = h - np.roll(h * u, 1, 0) + np.roll(np.roll(h, -2, 0), -40, 1)
        u = u + 0.1 * du
    return h, u


def by_remainders(u):
    n = len(u)
    i = np.arange(n)
    after, before = (i + 1) % n, (i - 1) % n
    for _ in range(STEPS):
        u = (u[after] + u[before] + u[i - 2]) / 3
    return u


def by_changing_indices(u):
    i = np.arange(len(u))
    for _ in range(STEPS):
        u = u + u[i]
        i = (i + 1) % len(u)
    return u


def rims(u):
    for _ in range(STEPS):
        v = np.empty_like(u)
        v[1:-1] = (u[:-2] + u[2:]) / 2
        v[0] = (u[-1] + u[1]) / 2
        v[-1] = (u[-2] + u[0]) / 2
        u = v
    return u


def rims_of_rows(u):
    for _ in range(STEPS):
        v = u.copy()
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
        v[0, :] = u[-1, :]
        v[-1, :] = u[0, :]
        v[:, 0] = v[:, 1]
        u[:] = v


def wrapped(u):
    for _ in range(STEPS):
        p = np.pad(u, 1, mode="wrap")
        u = (p[:-2] + p[2:]) / 2
    return u


def reflected(u):
    for _ in range(STEPS):
        p = np.pad(u, 2, mode="reflect")
        u = (p[:-4] + p[4:]) / 2
    return u


def padded_at_edges(u):
    for _ in range(STEPS):
        p = np.pad(u, 1, mode="edge")
        u = (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]) / 4
    return u


def joined(u):
    for _ in range(STEPS):
        p = np.concatenate([u[-1:], u, u[:1]])
        u = (p[:-2] + p[2:]) / 2
    return u


def by_tables(f):
    for _ in range(2):
        for i, by, axis in zip(np.arange(5), SHIFTS, AXES, strict=True):
            f[:, :, i] = np.roll(f[:, :, i], by, axis=axis)
    return f


def streamed(f):
    """As lattice Boltzmann methods are often written: each array is rolled along both axes."""
    for _ in range(STEPS):
        for i, by, other in zip(np.arange(5), SHIFTS, AXES, strict=True):
            f[:, :, i] = np.roll(f[:, :, i], by, axis=0)
            f[:, :, i] = np.roll(f[:, :, i], other, axis=1)
        f *= 0.9


def written_over_unless_it_ends(f):
    for t in range(STEPS):
        f[1:-1] = f[1:-1] + f[:-2] - f[2:]
        if f[0, 0, t] > 0.5:
            continue
        f[:] = f * 0.9


LINES = (
    rolled,
    rolled_in_place,
    rolled_far,
    by_remainders,
    by_changing_indices,
    rims,
    wrapped,
    reflected,
    joined,
)
GRIDS = (heat, shallow_water, advected, rims_of_rows, padded_at_edges)


def cases() -> dict[Callable[..., Any], Any]:
    """Each program with its argument; extents that most numbers of ranks do not divide."""
    rng = np.random.default_rng(0)
    found: dict[Callable[..., Any], Any] = {program: rng.random(23) for program in LINES}
    found |= {program: rng.random((13, 11)) for program in GRIDS}
    streams = (by_tables, streamed, written_over_unless_it_ends)
    found |= {program: rng.random((11, 7, 5)) for program in streams}
    return {**found, rolled_of_singles: singles(rng)}


def rolled_of_singles(u):
    for _ in range(STEPS):
        u = np.roll(u, 2) - u
    return u


def singles(rng: np.random.Generator) -> Any:
    """Complex numbers of single precision."""
    return (rng.random(17) + 1j * rng.random(17)).astype(np.complex64)


def schedule_of(lowering: Any, ranks: int) -> dict[str, tuple[int, ...]]:
    """All spaces cut along their first parameter."""
    return {
        space.name: (ranks,) + (1,) * (len(space.parts) - 1)
        for space in lowering.spaces
        if space.iterates
    }


def main() -> None:
    """Compare all programs with NumPy on the ranks that run this."""
    from mpi4py import MPI

    import distspmd
    from distspmd.frontend import numpy_program
    from distspmd.plans import Machine

    comm = MPI.COMM_WORLD
    slow = {"operation": 1e-6, "stream": 1e-6}  # so that small arrays are split, too
    cheap = Machine(alpha=1e-12, beta=1e-16, launch=0, **slow)
    for function, given in cases().items():
        lowering = None
        if comm.rank == 0:
            program = numpy_program(function, given, host="refuse")
            lowering = distspmd.lower(program, ranks=comm.size, machine=cheap)
            assert lowering.ranks == comm.size, f"{function.__name__}: {lowering}"
        own, wanted = copy.deepcopy(given), copy.deepcopy(given)
        result = function(wanted)
        with distspmd.compile(lowering, comm) as compiled:
            found = compiled(own)
        if comm.rank == 0:
            tolerance = 1e-5 if given.dtype.itemsize == 8 and given.dtype.kind == "c" else 1e-12
            if result is not None:
                np.testing.assert_allclose(found, result, tolerance, err_msg=function.__name__)
            np.testing.assert_allclose(own, wanted, tolerance, err_msg=function.__name__)
    if comm.rank == 0:
        print("all alike")


if __name__ == "__main__":
    main()
