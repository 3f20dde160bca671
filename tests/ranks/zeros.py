"""Signs of zeros in compiled programs, beside NumPy: on them depend angles and infinities."""

from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD
ROWS = np.linspace(-1, 1, 5).repeat(3)
X, Y = np.tile(ROWS, (7, 1)), np.tile(np.sign(ROWS[::-1].round()), (7, 1))


def signs(x: Any, y: Any) -> Any:
    with np.errstate(divide="ignore"):
        less, more = 0.0 - y, y * -1.0 + 0.0
        return np.arctan2(less, x), np.arctan2(more, x), 1 / less, np.copysign(1.0, more), -y


for dtype in (np.float64, np.float32):
    given = {"x": X.astype(dtype), "y": Y.astype(dtype)}

    def lowered(given: dict[str, Any] = given) -> distspmd.lowering.Lowering:
        program = distspmd.frontend.numpy_program(signs, **given)
        spaces = distspmd.iteration_spaces(program)
        return distspmd.lower(program, {space.name: (comm.size, 1) for space in spaces})

    for arithmetic in ("vector", "strict"):
        with distspmd.compile(lowered, comm, arithmetic=arithmetic) as compiled:
            found = compiled(**given) if comm.rank == 0 else compiled()
            if comm.rank == 0:
                for mine, wanted in zip(found, signs(**given), strict=True):
                    assert np.allclose(mine, wanted), (arithmetic, mine, wanted)
                    assert np.array_equal(np.signbit(mine), np.signbit(wanted)), arithmetic
if comm.rank == 0:
    print("all is right")
