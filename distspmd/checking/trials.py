"""Trials: ranks run a lowered program and its original together, on the same inputs."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.checking.compare import Comparison, compare
from distspmd.codegen.build_record import Build
from distspmd.execution.program import Program
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import Lowering
from distspmd.runtime.calls.missing_result import MissingResult

Arguments = dict[str, Any]
Tile = NDArray[Any]
Sets = Iterator[tuple[Arguments, Arguments | None]]
"""Arguments, and what is wanted; None for what the original makes of them."""


@dataclass(frozen=True)
class Trial:
    """A lowered program and its original, both compiled, for ranks to run."""

    build: Build
    lowering: Lowering
    original: str | None
    """Folder of the original's build, if it is compared with."""
    tolerance: float | None
    seed: int
    oracle: str
    """What is compared with, in words."""


@dataclass(frozen=True)
class Run:
    """What became of one set of inputs."""

    seed: int
    comparisons: tuple[Comparison, ...]
    seconds: float
    received_bytes: int
    """Bytes that all ranks received."""


def call_with_copies(function: Callable[..., Any], given: Arguments) -> Arguments:
    """Arguments and results, by name, after a call with copies of the arguments."""
    arguments = copy.deepcopy(given)
    results = function(**arguments)
    return {**arguments, **_results(results)}


def _results(results: Any) -> Arguments:
    """Those of this rank by name."""
    if results is None:
        return {}
    named = {"__return": results}
    if isinstance(results, tuple):
        named = {f"__return_{n}": result for n, result in enumerate(results)}
    return {name: each for name, each in named.items() if not isinstance(each, MissingResult)}


def perform(trial: Trial, comm: Any, sets: Sets, runs: int) -> tuple[Run, ...]:
    """Run both programs and compare, together on all ranks; what became of it, on rank 0.

    Args:
        trial: on all ranks.
        comm: of mpi4py.
        sets: on rank 0, inputs of the runs.
        runs: how many sets.
    """
    first = comm.Get_rank() == 0
    original = _load(trial.original) if first and trial.original else None
    found = []
    with Program(trial.build, trial.lowering, comm) as program:
        for number in range(runs):
            given, wanted = next(sets) if first else ({}, None)
            have, seconds = _timed(program, comm, given)
            comparisons = tuple[Comparison, ...]()
            if first:
                want = (
                    call_with_copies(original, given)
                    if wanted is None and original
                    else wanted or {}
                )
                comparisons = tuple(
                    compare(n, have[n], value, trial.tolerance) for n, value in want.items()
                )
            received = sum(counted.received_bytes for _, counted in program.statistics())
            program.reset_statistics()
            total = comm.reduce(received)
            found.append(Run(trial.seed + number, comparisons, seconds, total or 0))
    return tuple(found)


def perform_served(
    server: Any, trial: Trial, sets: list[tuple[Arguments, Arguments | None]], runs: int
) -> tuple[Run, ...]:
    """The same on ranks that serve another process."""
    return perform(trial, server.comm, iter(sets), runs)


def _timed(program: Program, comm: Any, given: Arguments) -> tuple[Arguments, float]:
    """Arguments and results after a call, whole on rank 0, and the seconds that it took."""
    held, mine = program.lowering.argument_layouts, copy.deepcopy(given)
    shared: Arguments = comm.bcast({n: value for n, value in given.items() if n in held})
    for name, value in shared.items():
        if program.rank < held[name].ranks:
            mine[name] = program.tile(name, value) if np.ndim(value) else value
        else:
            mine.pop(name, None)
    start = time.perf_counter()
    results = program(**mine)
    seconds = time.perf_counter() - start
    have = {**mine, **_results(results)}
    for name, layout in held.items():
        if np.ndim(shared.get(name, [])):
            have[name] = _whole(layout, have.get(name), shared.get(name), comm)
    return have, seconds


def _whole(layout: Layout, tile: Tile | None, before: Tile | None, comm: Any) -> Tile | None:
    """An array put together from the tiles of all ranks, on rank 0."""
    tiles: list[Tile | None] | None = comm.gather(tile)
    if tiles is None:
        return None
    kind = next(tile.dtype for tile in tiles if tile is not None)
    whole = np.zeros(layout.extents, kind) if before is None else before.copy()
    for box, part in zip(layout.boxes, tiles, strict=False):
        if part is not None and not intervals.is_empty(box):
            whole[intervals.slices(box)] = part
    return whole


def _load(folder: str) -> Callable[..., Any]:
    """A compiled SDFG as a function; rank 0 alone imports what it needs."""
    from dace.codegen.compiler import load_precompiled_sdfg

    from distspmd import nodes

    for module in pkgutil.iter_modules(nodes.__path__, f"{nodes.__name__}."):
        importlib.import_module(module.name)  # whose classes may be nodes of the SDFG
    loaded: Callable[..., Any] = load_precompiled_sdfg(folder)
    return loaded


def write_object(file: Path, content: Any) -> None:
    """Write an object for another process of the same check."""
    with file.open("wb") as out:
        pickle.dump(content, out, protocol=5)


def read(file: Path) -> Any:
    """Read what another process of the same check wrote."""
    with file.open("rb") as held:
        return pickle.load(held)  # what this process, or a rank of it, wrote


def run_trial(folder: str, runs: str) -> None:
    """One rank of a check."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    place = Path(folder)

    sets = (read(place / f"set{number}") for number in range(int(runs)))
    found = perform(read(place / "trial"), comm, sets, int(runs))
    if comm.Get_rank() == 0:
        write_object(place / "runs", found)


if __name__ == "__main__":
    # What it reads and writes are classes of the module, not of __main__.
    from distspmd.checking import trials

    trials.run_trial(*sys.argv[1:])
