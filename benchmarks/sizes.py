"""How long the first call with new sizes takes: ``distspmd run benchmarks/sizes.py -n 2``.

A symbolic program is lowered, compiled and loaded when it is called with sizes for the first time.
The second part asks a new program for the same sizes, which the cache on disk has then.
"""

from __future__ import annotations

import time

import dace
import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program

N, H = dace.symbol("N"), dace.symbol("H")


@dace.program
def heat(x: dace.float64[N, N], y: dace.float64[N, N]):
    for _ in range(10):
        for i, j in dace.map[1 : N - 1, 1 : N - 1]:
            y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
        for i, j in dace.map[1 : N - 1, 1 : N - 1]:
            x[i, j] = y[i, j]


@dace.program
def perceptron(x: dace.float32[N, H], a: dace.float32[H, H], b: dace.float32[H, N]):
    hidden = np.maximum(x @ a, 0)
    return hidden @ b


def drawn(*shapes: tuple[int, ...], dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random(shape).astype(dtype) for shape in shapes]


def main() -> None:
    comm = MPI.COMM_WORLD
    programs = [
        (heat, {"y": (comm.size, 1), "x": (comm.size, 1)}, "float64", [(100, 0), (333, 0)]),
        (perceptron, {"hidden": (comm.size, 1)}, "float32", [(64, 32), (100, 77)]),
    ]
    for program, schedule, dtype, sizes in programs:
        for cache in ("first", "on disk"):
            start = time.perf_counter()
            lowering = distspmd.lower(numpy_program(program), schedule)
            parsed = time.perf_counter() - start
            with distspmd.compile(lowering, comm) as ready:
                for n, h in sizes:
                    shapes = [(n, n)] * 2 if program is heat else [(n, h), (h, h), (h, n)]
                    given = drawn(*shapes, dtype=dtype) if comm.rank == 0 else []
                    ready(*given)
                    start = time.perf_counter()
                    ready(*given)
                    again = time.perf_counter() - start
                    made = list(ready.seconds.values())[-1]
                    if comm.rank == 0:
                        print(
                            f"{program.name:12} n={n:4} {cache:8} parse and check {parsed:.2f} s, "
                            f"specialise {made:.2f} s, then {again * 1e3:.2f} ms a call"
                        )


if __name__ == "__main__":
    main()
