"""What a call of a host function costs, on this rank or under ``distspmd run -n 2``."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd

CALLS = 1000


@distspmd.host(like=lambda x: 0.0)
def one(x: Any) -> Any:
    """Nothing but a number."""
    return 1.0


def program(x: Any) -> Any:
    """So many calls, whose results all ranks need for their parts of an array."""
    for _ in range(CALLS):
        x = x + one(x)
    return x


def main() -> None:
    """Print seconds of a call, the best and the median of 15 runs."""
    comm, x = MPI.COMM_WORLD, np.ones(8)

    def lowered() -> distspmd.lowering.Lowering:
        spaces = distspmd.iteration_spaces(distspmd.frontend.numpy_program(program, x))
        split = {s.name: (comm.size,) for s in spaces if s.parameters[0] != "__once"}
        schedule = split if comm.size > 1 else {}
        return distspmd.lower(distspmd.frontend.numpy_program(program, x), schedule)

    with distspmd.compile(lowered() if comm.rank == 0 else None, comm) as compiled:
        compiled(x)
        seconds = []
        for _ in range(15):
            begin = time.perf_counter()
            compiled(x)
            seconds.append((time.perf_counter() - begin) / CALLS)
    if comm.rank == 0:
        best, median = min(seconds), float(np.median(seconds))
        print(f"{comm.size} ranks: {best * 1e6:.1f} us a call, median {median * 1e6:.1f}")


if __name__ == "__main__":
    main()
