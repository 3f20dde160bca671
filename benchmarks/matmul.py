"""Matrix product over ranks, beside NumPy with the same number of threads in the same run.

``python benchmarks/matmul.py`` starts its own ranks, 1 and then 2, of one thread each. Per schedule
it prints the time of the local product (all of the call but the distributed memlets), the time in
communication, the time of the call, NumPy's time for the same local products, done by all ranks at
once, and the bytes that each rank received, beside the fewest that any plan could do with.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import dace
import numpy as np

import distspmd
from distspmd.frontend import numpy_program
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch.mpiexec import launch

SCHEMES = {1: [(1, 1, 1)], 2: [(2, 1, 1), (1, 2, 1), (1, 1, 2)]}


def program_of(size: int) -> dace.SDFG:
    @dace.program
    def matmul(a: dace.float32[size, size], b: dace.float32[size, size]):
        return a @ b

    return numpy_program(matmul)


def best(runs: list[dict[str, float]]) -> dict[str, float]:
    return min(runs, key=lambda run: run["all"])


def measure(size: int, parts: tuple[int, int, int], repeat: int) -> list[dict]:
    """Figures of each rank, on rank 0."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    sdfg = program_of(size)
    sdfg = distspmd.lower(sdfg, {"__return": parts}).sdfg
    program = distspmd.compile(sdfg, comm)
    rng = np.random.default_rng(0)
    given = [rng.random((size, size), dtype=np.float32) for _ in "ab"] if comm.rank == 0 else []
    runs, result = [], None
    for _ in range(repeat + 1):  # the first touches the memory
        program.reset_statistics()
        comm.Barrier()
        start = time.perf_counter()
        result = program(*given)
        seconds = time.perf_counter() - start
        moving = sum(statistics.seconds for _, statistics in program.statistics())
        runs.append({"all": seconds, "communication": moving, "product": seconds - moving})
    found = best(runs[1:])
    found["product"] = min(run["product"] for run in runs[1:])
    found["received"] = sum(s.received_bytes for _, s in program.statistics())
    found["bound"] = sum(
        memlet.solution.plan.bound.received(comm.rank) for memlet in program.lowering.memlets
    )
    found["numpy"] = numpy_product(comm, size, parts, repeat)
    if comm.rank == 0:
        check(result, *given)
    program.close()
    return comm.gather(found)


def numpy_product(comm, size: int, parts: tuple[int, int, int], repeat: int) -> float:
    """NumPy's time for the local product of the schedule, with all ranks at work."""
    rows, columns, inner = (-(-size // count) for count in parts)
    a, b = np.ones((rows, inner), np.float32), np.ones((inner, columns), np.float32)
    out, seconds = np.zeros((rows, columns), np.float32), []
    for _ in range(repeat + 1):
        comm.Barrier()
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def check(result, a, b) -> None:
    rows = slice(0, None, max(1, len(a) // 64))
    np.testing.assert_allclose(result[rows], a[rows] @ b, rtol=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    options = parser.parse_args()
    if launched_ranks() is None:
        for ranks in options.ranks:
            arguments = [f"--size={options.size}", f"--repeat={options.repeat}"]
            done = launch([Path(__file__).resolve(), *arguments], ranks=ranks, threads=1)
            if done.returncode:
                sys.exit(done.returncode)
        return
    flops = 2 * options.size**3
    for parts in SCHEMES.get(launched_ranks(), [(launched_ranks(), 1, 1)]):
        figures = measure(options.size, parts, options.repeat)
        if figures is None:
            continue
        product = max(figure["product"] for figure in figures)
        numpy = max(figure["numpy"] for figure in figures)
        print(
            f"{options.size}^3 float32, {len(figures)} rank(s) of one thread, grid {parts}:\n"
            f"  product       {product * 1e3:8.1f} ms  {flops / product * 1e-9:6.0f} GFLOP/s\n"
            f"  NumPy's       {numpy * 1e3:8.1f} ms  ratio {product / numpy:.3f}\n"
            f"  communication {max(f['communication'] for f in figures) * 1e3:8.1f} ms\n"
            f"  all           {figures[0]['all'] * 1e3:8.1f} ms"
        )
        for rank, figure in enumerate(figures):
            print(f"  rank {rank} received {figure['received']:,} bytes, bound {figure['bound']:,}")
        print(json.dumps({"grid": parts, "size": options.size, "ranks": figures}), flush=True)


if __name__ == "__main__":
    main()
