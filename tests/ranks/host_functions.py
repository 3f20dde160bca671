"""Run under mpiexec: functions of Python inside of compiled programs, on several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program

comm = MPI.COMM_WORLD
RNG = np.random.default_rng()  # another one on each rank
SHOWN: list[tuple[int, float]] = []
ASKED: list[int] = []


class TooLarge(Exception):
    """An error of the user's."""


@distspmd.host(like=lambda: np.zeros(3))
def drawn():
    return RNG.random(3)


@distspmd.host
def shown(step, total) -> None:
    SHOWN.append((int(step), float(total)))


@distspmd.host(like=float, where="all")
def doubled(x):
    ASKED.append(comm.rank)
    return 2.0 * x.item()


@distspmd.host(signature="()->()")
def small(x):
    if (x > 100.0).any():
        raise TooLarge(f"{x.max()} is too large")
    return x + 1.0


@distspmd.host
def told(x) -> float:
    if x[0, 0] > 1.0:
        raise ValueError("more than one")
    return 3.0


@distspmd.host
def changed(x) -> float:
    x[0, 0] = 0.0
    return 1.0


def noisy(x):
    for k in range(4):
        x = x + drawn()
        shown(k, np.sum(x))
    return x * doubled(x[0, 0])


def refusing(x):
    x = small(x * 2.0)
    for _ in range(3):
        x = small(x)
    return x


def handling(x):
    try:
        y = told(x)
    except ValueError:
        y = -1.0
    return x * y


def run(function: Any, x: Any, splits: tuple[int, ...]) -> Any:
    """The result of a program, on all ranks."""

    def lowered() -> distspmd.lowering.Lowering:
        spaces = distspmd.iteration_spaces(numpy_program(function, x))
        names = {s.name: splits for s in spaces if len(s.parameters) == 2}
        return distspmd.lower(numpy_program(function, x), names, results="replicated")

    return distspmd.compile(lowered() if comm.rank == 0 else None, comm)(x)


x = np.ones((5, 3))
found = run(noisy, x, (comm.size, 1))
assert np.ptp(found, axis=0).max() == 0.0  # all rows got the same numbers
assert len(set(comm.allgather(found.tobytes()))) == 1
assert [comm.rank] == ASKED
assert [k for k, _ in SHOWN] == ([0, 1, 2, 3] if comm.rank == 0 else [])

assert (run(refusing, x, (comm.size, 1)) == 6.0).all()
x[4, 1] = 400.0  # which the last rank has
for _ in range(2):
    with pytest.raises(TooLarge, match=r"800\.0 is too large"):
        run(refusing, x, (comm.size, 1))

with pytest.raises(ValueError, match="read-only"):
    run(lambda x: x * changed(x), x, (comm.size, 1))

assert (run(handling, np.ones((5, 3)), (comm.size, 1)) == 3.0).all()
assert (run(handling, np.full((5, 3), 2.0), (comm.size, 1)) == -2.0).all()
comm.Barrier()
if comm.rank == 0:
    print("all is as in Python")
