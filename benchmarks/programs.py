"""Whole programs over ranks, beside C, NumPy, plain DaCe, JAX and Devito in the same run.

``python benchmarks/programs.py [jacobi softmax attention matmul] [--ranks 1 2] [--peers ...]``
starts its own ranks, of one thread each. Arguments are distributed: each rank passes its tiles, so
that a call is the program and the communication between its steps. Per program it prints the best
time of a call and the share of communication in it; then that of each peer on as many threads,
devices or ranks (`peers.py`), one after the other. Peers that are not installed are named.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from array_programs import LEFT, PROGRAMS, SMALL, drawn, wanted
from peers import PEERS, milliseconds

import distspmd
from distspmd.frontend import numpy_program
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch.mpiexec import launch


def ours(name: str, repeat: int) -> tuple[float, float] | None:
    """Seconds of a call, the slowest rank's, and of communication in it; on rank 0."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    program = PROGRAMS[name]
    sdfg = numpy_program(program.program)
    sdfg = distspmd.lower(sdfg, program.schedule(comm.size), arguments=program.arguments).sdfg
    given, runs = drawn(name), []
    with distspmd.compile(sdfg, comm) as compiled:
        mine = {n: compiled.tile(n, array) for n, array in given.items()}
        for turn in range(repeat + 1):
            comm.Barrier()
            compiled.reset_statistics()
            start = time.perf_counter()
            result = compiled(**mine)
            seconds = time.perf_counter() - start
            moving = sum(counted.seconds for _, counted in compiled.statistics())
            runs.append((comm.allreduce(seconds, MPI.MAX), comm.allreduce(moving, MPI.MIN)))
            if turn == 0:
                left = LEFT.get(name, "__return")
                expected = compiled.tile(left, wanted(name, given))
                found = mine.get(left, result)
                np.testing.assert_allclose(found, expected, atol=2e-3, err_msg=name)
    return min(runs[1:]) if comm.rank == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="program", choices=[*PROGRAMS, []])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="sizes that take no time")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=[*PEERS, []])
    options = parser.parse_args()
    names = options.programs or list(PROGRAMS)
    if launched_ranks() is not None:
        (name,) = names
        figures = ours(name, options.repeat)
        if figures is not None:
            seconds, moving = figures
            line = f"{name:10} {launched_ranks()} rank(s): {seconds * 1e3:8.1f} ms"
            print(f"{line}, {moving / seconds:5.1%} of it communication", flush=True)
        return
    for name in names:
        for ranks in options.ranks:
            arguments = [name, f"--repeat={options.repeat}", *SMALL * ["--small"]]
            done = launch([Path(__file__).resolve(), *arguments], ranks=ranks, threads=1)
            if done.returncode:
                sys.exit(done.returncode)
            for peer in options.peers:
                figure = milliseconds(peer, name, ranks, options.repeat)
                if figure:
                    print(f"    {peer:12} {figure}", flush=True)


if __name__ == "__main__":
    main()
