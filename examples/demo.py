"""A two-layer perceptron in NumPy, partitioned over 4 ranks.

Nothing in the program says how it runs. At first nothing else does, and a schedule is searched for.
Then a schedule by hand gives two iteration spaces a process grid, by batch and by hidden units, and
the rest follows. Either way nothing is communicated between the layers, because the tile of the
hidden layer that a rank makes is the tile that it reads.

Run it with ``python examples/demo.py``: it starts its own ranks.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import distspmd
from distspmd import launch
from distspmd.runtime import launched_ranks

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    import dace

BATCH, INPUTS, HIDDEN, OUTPUTS = 2000, 784, 1500, 10

SCHEDULE = {
    "hidden": {"i": 2, "j": 2},  # by batch and by hidden unit
    "__return": {"i": 2, "k": 2},  # by batch and by summand: hidden units again
}


def perceptron(
    x: dace.float32[BATCH, INPUTS],
    w1: dace.float32[INPUTS, HIDDEN],
    b1: dace.float32[HIDDEN],
    w2: dace.float32[HIDDEN, OUTPUTS],
):
    hidden = x @ w1
    active = np.maximum(hidden + b1, 0)
    return active @ w2


def in_numpy(x, w1, b1, w2):
    return np.maximum(x @ w1 + b1, 0) @ w2


def main() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank != 0:  # only rank 0 needs the program as Python; the others get what it compiles
        for _ in range(2):
            program = distspmd.compile(None, comm)
            for _ in range(2):
                program()
        return

    print("The iteration spaces of the program:\n", distspmd.iteration_spaces(perceptron), sep="\n")
    print("\nNothing is named:")
    compared(distspmd.lower(perceptron, ranks=comm.size), comm)
    print(f"\nBy hand, {SCHEDULE}:")
    compared(distspmd.lower(perceptron, SCHEDULE), comm)


def compared(lowering, comm) -> None:
    """Compile, run twice and print, on rank 0."""
    start = time.perf_counter()
    program = distspmd.compile(lowering, comm)
    compiled = time.perf_counter() - start

    rng = np.random.default_rng(0)
    shapes = [(BATCH, INPUTS), (INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, OUTPUTS)]
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    program(*arrays)
    program.reset_statistics()
    start = time.perf_counter()
    result = program(*arrays)
    ran = time.perf_counter() - start
    in_numpy(*arrays)
    start = time.perf_counter()
    expected = in_numpy(*arrays)
    ran_numpy = time.perf_counter() - start

    print(lowering)
    moving = sum(statistics.seconds for _, statistics in program.statistics())
    difference = np.abs(result - expected).max() / np.abs(expected).max()
    print(f"largest difference from NumPy, relative to the largest value: {difference:.1e}")
    print(f"compiled (or found) in {compiled:.2f} s")
    print(
        f"one run on {comm.size} ranks: {ran * 1e3:.1f} ms, of which rank 0 communicated "
        f"{moving * 1e3:.1f} ms; NumPy in one process: {ran_numpy * 1e3:.1f} ms"
    )
    if not difference < 1e-5:
        sys.exit("the result is wrong")


if __name__ == "__main__":
    if launched_ranks() is None:
        from showing import on_device

        sys.exit(
            launch([Path(__file__).resolve()], ranks=4, env=on_device(), timeout=300).returncode
        )
    main()
