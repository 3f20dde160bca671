"""What the examples share: start ranks, lower, print the communication, run, compare with NumPy."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import distspmd
from distspmd import launch
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering
from distspmd.runtime import launched_ranks

SMALL = "--small" in sys.argv
"""Whether sizes that take no time were asked for."""


def on_device() -> dict[str, str]:
    """What ranks get in their environment for ``--device KIND``: on what programs run."""
    if "--device" not in sys.argv:
        return {}
    kinds = sys.argv[sys.argv.index("--device") + 1 :]
    if not kinds:
        sys.exit("--device needs the kind of a device: cuda or emulated")
    return {"DISTSPMD_DEVICE": kinds[0]}


@dataclass(frozen=True)
class Example:
    """A program under one schedule.

    Attributes:
        program: a function, or a ``@dace.program``.
        schedule: iteration space -> parts along each parameter; None for one that is searched for.
        communication: what moves, in words.
        draw: random arguments, by name.
        reference: the same in NumPy, where plain Python cannot run the program.
        lower: more for ``distspmd.lower``.
        frontend: what reads the program.
    """

    program: Callable[..., Any]
    schedule: Mapping[str, Any] | None
    communication: str
    draw: Callable[[np.random.Generator], dict[str, Any]]
    reference: Callable[..., Any] | None = None
    lower: Mapping[str, Any] = field(default_factory=dict)
    frontend: str = "numpy"

    @property
    def name(self) -> str:
        """Of the program."""
        return getattr(self.program, "f", self.program).__name__

    def lowered(self, ranks: int = 4) -> tuple[Any, Lowering]:
        """The program, parsed and lowered."""
        sdfg = numpy_program(self.program, frontend=self.frontend)
        more = dict(self.lower) if self.schedule is not None else {**self.lower, "ranks": ranks}
        lowering = distspmd.lower(sdfg, self.schedule, **more)
        return lowering.sdfg, lowering


def searched(examples: Sequence[Example]) -> list[Example]:
    """Each program once for each way of holding its arguments, with no schedule."""
    found: dict[Any, Example] = {}
    for example in examples:
        key = example.program, repr(example.lower)
        found.setdefault(key, replace(example, schedule=None, communication=""))
    return list(found.values())


def inside(lowering: Lowering) -> list[Any]:
    """Distributed memlets between ranks: all but those that carry arguments and results."""
    return [m for m in lowering.memlets if not (m.from_caller or m.to_caller)]


def received(memlets: Sequence[Any]) -> int:
    """Bytes that all ranks receive, each time."""
    return sum(memlet.solution.cost.nbytes for memlet in memlets)


def show(example: Example, comm: Any) -> bool:
    """Lower, compile and run an example; every rank compares what it has with NumPy.

    Rank 0 prints. Each rank passes and gets what the program's layouts say, so that arguments may
    live on rank 0, on every rank, or in tiles.
    """
    given, wanted = {}, {}
    if comm.rank == 0 or "arguments" in example.lower:
        given, wanted = _drawn(example)
    with distspmd.compile(lambda: _lowered_and_printed(example, comm.size), comm) as program:
        mine = {name: program.tile(name, array) for name, array in given.items()}
        comm.Barrier()
        start = time.perf_counter()
        result = program(**mine)
        seconds = time.perf_counter() - start
        if result is not None and not isinstance(result, distspmd.runtime.MissingResult):
            mine["__return"] = result
        differences = [
            _difference(mine[name], tile, np.abs(array).max() or 1)
            for name, array in wanted.items()
            for tile in (program.tile(name, array),)
            if tile.size
        ]
        explained = distspmd.explain(program)
        planned, more = explained.nbytes, explained.more_by_pulls
        counted = comm.allreduce(sum(s.received_bytes for _, s in program.statistics()))
    difference = max(comm.allgather(max(differences, default=0.0)))
    if comm.rank == 0:
        print(f"  {seconds * 1e3:.1f} ms, {counted:,} bytes received, planned {planned:,}")
        if counted > planned:
            print("  (devices read all operands of a small reduction)")
        print(f"  largest difference from NumPy {difference:.1e}")
    return difference < 1e-4 and 0 <= counted - planned <= more


def _lowered_and_printed(example: Example, ranks: int) -> Any:
    sdfg, lowering = example.lowered(ranks)
    asked = example.schedule or {}
    grids = ", ".join(f"{name}={tuple(parts)}" for name, parts in asked.items())
    said = example.communication or lowering.remarks[-1]
    print(f"\n{example.name} [{grids or 'nothing is named'}]\n  {said}")
    for memlet in lowering.memlets:
        ends = memlet.from_caller or memlet.to_caller
        nbytes = f"{memlet.solution.cost.nbytes:,} bytes"
        print(f"  {'argument' if ends else 'between '} {memlet.data}: {memlet.steps}, {nbytes}")
    return sdfg


def _drawn(example: Example) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments, and what NumPy makes of them: the result, or the arguments after the call."""
    given = example.draw(np.random.default_rng(0))
    after = copy.deepcopy(given)
    result = (example.reference or example.program)(**after)
    return given, after if result is None else {"__return": result}


def _difference(found: Any, wanted: Any, scale: Any) -> float:
    return float(np.abs(np.asarray(found) - wanted).max() / scale)


def main(file: str, examples: Sequence[Example], ranks: int = 4) -> None:
    """Run all programs as a search would, and all examples, on ranks that this process starts.

    It ends with an error if a result is wrong.
    """
    if launched_ranks() is None:
        sys.exit(
            launch([Path(file).resolve(), *sys.argv[1:]], ranks=ranks, env=on_device()).returncode
        )
    from mpi4py import MPI

    every = [*searched(examples), *examples]
    right = [show(example, MPI.COMM_WORLD) for example in every]
    if not all(right):
        sys.exit("a result is wrong")
