"""What benchmarks of programs share: ranks of one thread, the least time, bytes of a step."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any


def best_of(call: Callable[[], object], runs: int) -> float:
    """The least of some times, in seconds."""
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def bytes_of_a_step(lowering: Any, steps: int) -> int:
    """Bytes that all ranks receive in a step, in what moves in each of them."""
    moves = [move for move in lowering.memlets if (move.times or 0) >= steps]
    received = (
        move.times * move.solution.plan.received(rank)
        for move in moves
        for rank in range(lowering.ranks)
    )
    return int(sum(received)) // steps


def measure_on_ranks(
    file: str, text: str | None, measure: Callable[..., None], ranks: Sequence[int]
) -> None:
    """Launch numbers of ranks of one thread, each of which measures; or be one of these ranks.

    Args:
        file: the benchmark, which the ranks run.
        text: what it says of itself.
        measure: prints a line for each program, of those that are named if any are.
        ranks: their numbers, where the command line has none.
    """
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--ranks", type=int, nargs="+", default=[*ranks])
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measure(options.programs)
        return
    for count in options.ranks:
        command = [sys.executable, "-m", "distspmd", "run", "-n", str(count), file, "--here"]
        command += options.programs
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
