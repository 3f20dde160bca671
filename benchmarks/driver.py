"""What a call by a driver costs beside a call by all ranks, of the same program on the same ranks.

    python benchmarks/driver.py [--ranks 1 2 4] [--rounds 30]

The two are measured in turn. With fewer cores than ranks and driver, processes wait for cores,
and the figures are those of the scheduler.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import dace
import numpy as np

import distspmd

CALLS = 200


def add_one(x: dace.float64[64]):
    return x + 1.0


def seconds_of(call) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def lowered(ranks: int):
    return distspmd.lower(add_one, {"__return": (ranks,)})


def by_all_ranks(ranks: int, rounds: int, file: str) -> None:
    from mpi4py import MPI

    comm, x = MPI.COMM_WORLD, np.zeros(64)
    program = distspmd.compile(lambda: lowered(ranks), comm)
    call = (lambda: program(x=x)) if comm.rank == 0 else program
    found = [seconds_of(call) for _ in range(rounds)]
    if comm.rank == 0:
        Path(file).write_text(json.dumps(found))


def by_a_driver(ranks: int, rounds: int) -> list[float]:
    x = np.zeros(64)
    with distspmd.ranks(ranks) as there:
        program = distspmd.compile(lowered(ranks), there)
        return [seconds_of(lambda: program(x=x)) for _ in range(rounds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--of-rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.of_rank:
        by_all_ranks(options.ranks[0], options.rounds, options.of_rank)
        return
    print(f"{'ranks':>5} {'all ranks':>12} {'driver':>12} {'more':>8}   (us, best and median)")
    for ranks in options.ranks:
        every: dict[str, list[float]] = {"all ranks": [], "driver": []}
        for _ in range(2):
            with tempfile.NamedTemporaryFile() as file:
                argv = [__file__, "--ranks", str(ranks), "--rounds", str(options.rounds)]
                argv += ["--of-rank", file.name]
                distspmd.launch(argv, ranks=ranks).check()
                every["all ranks"] += json.loads(Path(file.name).read_text())
            every["driver"] += by_a_driver(ranks, options.rounds)
        best = {name: 1e6 * min(found) for name, found in every.items()}
        middle = {name: 1e6 * statistics.median(found) for name, found in every.items()}
        cells = [f"{best[name]:.1f} {middle[name]:.1f}" for name in every]
        more = best["driver"] - best["all ranks"]
        print(f"{ranks:>5} {cells[0]:>12} {cells[1]:>12} {more:>8.1f}")


if __name__ == "__main__":
    sys.exit(main())
