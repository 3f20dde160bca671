"""Random programs on random numbers, on communicators of several sizes: each run has the same bits.

Usage: run_deterministic.py FOLDER SEED COUNT

A schedule for three ranks runs on as many as it needs, and on all larger communicators. By default
a program repeats its own bits on one communicator; if it is deterministic, those of all of them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.frontend import numpy_program
from torture.programs import Program, count_of, random_program, random_schedule

SCHEDULED = 3


def main(folder: str, seed: int, count: int) -> None:
    warnings.simplefilter("ignore")
    world = MPI.COMM_WORLD
    at = Path(folder) / f"rank{world.rank}"
    at.mkdir(exist_ok=True)
    right = refused = 0
    for number in range(seed, seed + count):
        program = random_program(number)
        lowered = {strict: _lowered(program, strict, at, world) for strict in (False, True)}
        if None in lowered.values():
            refused += 1
            continue
        for strict, each in lowered.items():
            bits = list(_runs(program, each, world))
            kept = bits if strict else bits[:2]
            if world.rank == 0 and any(one != kept[0] for one in kept):
                print(f"WRONG: seed {number}, deterministic={strict}:\n{program.text}", flush=True)
                world.Abort(3)
        right += 1
    if world.rank == 0:
        print(f"{right} right, {refused} refused", flush=True)


def _lowered(program: Program, strict: bool, folder: Path, world: Any) -> Any:
    """The lowered program on rank 0, and something on others; None where it is refused."""
    found = None
    if world.rank == 0:
        try:
            sdfg = numpy_program(program.written(folder, f"_{int(strict)}"))
            spaces = {s.name: count_of(s.ranges) for s in distspmd.iteration_spaces(sdfg)}
            schedule = random_schedule(program.seed, SCHEDULED, spaces)
            found = distspmd.lower(sdfg, schedule, deterministic=strict)
        except DistSPMDError:
            found = None
    ranks = world.bcast(found and found.ranks)
    return found if world.rank == 0 else ranks


def _runs(program: Program, lowered: Any, world: Any) -> Iterator[list[bytes]]:
    """What rank 0 gets, as bytes: two runs on each size of a communicator, the smallest first."""
    needed = world.bcast(lowered.ranks if world.rank == 0 else None)
    for size in range(needed, world.size + 1):
        part = world.Split(0 if world.rank < size else MPI.UNDEFINED, world.rank)
        if part == MPI.COMM_NULL:
            continue
        with distspmd.compile(lowered if world.rank == 0 else None, part) as compiled:
            for _ in range(2):
                given = _noisy(program)
                found = compiled(**given) if part.rank == 0 else compiled()
                results = found if isinstance(found, tuple) else (found,)
                arrays = [
                    *(r for r in results if r is not None and part.rank == 0),
                    *given.values(),
                ]
                yield [np.asarray(each).tobytes() for each in arrays]
        part.Free()


def _noisy(program: Program) -> dict[str, Any]:
    """Arguments of which sums depend on the order."""
    rng = np.random.default_rng(program.seed)
    found = program.drawn(1)
    for name, values in found.items():
        if values.dtype.kind in "fc":
            found[name] = (values * rng.random(values.shape)).astype(values.dtype)
    return found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
