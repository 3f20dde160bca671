"""The frame of `peers.py` as one command: rows, each beside its peers in one run.

A row is one function, registered by :func:`row`. It runs on the row's ranks, of one thread each. It
gets their communicator, and whether sizes shall be small, and returns calls: ours, and those of
peers by name. A peer that is not installed is an entry of ``missing``. Calls of all methods
alternate; a figure is the smallest makespan. STREAM's copy is measured in the same launch, on the
same ranks, and a row that is bound by memory says how many bytes it has to move at least.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

STORED = Path(__file__).with_name("peers.json")
TOLERANCE = 0.2
"""Of a ratio that is stored: two runs of one machine differ by so much."""

Call = Callable[[], Any]


@dataclass
class Calls:
    """What a row measures.

    Attributes:
        ours: what is compared with the best of the peers.
        peers: by name.
        nbytes: that a call reads and writes at least, on all ranks; 0 where memory is no bound.
        missing: peers that are not installed, and why.
        fresh: brings the arguments back before each call.
    """

    ours: Call
    peers: dict[str, Call]
    nbytes: float = 0.0
    missing: dict[str, str] = field(default_factory=dict)
    fresh: Call = lambda: None


@dataclass(frozen=True)
class Row:
    """A row of the table: ranks, and the ratio of the best peer's time to ours that is wanted."""

    name: str
    make: Callable[[Any, bool], Calls]
    ranks: int
    wanted: float


@dataclass(frozen=True)
class Measured:
    """A row that was measured: milliseconds, and gigabytes a second of STREAM's copy."""

    row: str
    ours: float
    peers: dict[str, float]
    missing: dict[str, str]
    nbytes: float
    stream: float

    @property
    def ratio(self) -> float | None:
        """The best peer's time to ours, if there is a peer."""
        return min(self.peers.values()) / self.ours if self.peers else None

    def line(self, wanted: float) -> str:
        """As it is printed."""
        peers = [f"{name} {ms:.2f}" for name, ms in self.peers.items()]
        peers += [f"{name} not installed ({why})" for name, why in self.missing.items()]
        ratio = "no peer" if self.ratio is None else f"{self.ratio:.2f} (wanted {wanted:.2f})"
        rate = ""
        if self.nbytes:
            reached = self.nbytes / self.ours / 1e6
            rate = f"; {reached:.1f} GB/s, STREAM {self.stream:.1f}"
        return f"{self.row:32} {self.ours:9.2f} ms, ratio {ratio}{rate}; {', '.join(peers)}"


ROWS: dict[str, Row] = {}


def row(
    name: str, ranks: int = 2, wanted: float = 1.0
) -> Callable[[Callable[[Any, bool], Calls]], Callable[[Any, bool], Calls]]:
    """Register the function below as a row of the table."""

    def register(make: Callable[[Any, bool], Calls]) -> Callable[[Any, bool], Calls]:
        assert name not in ROWS, name
        ROWS[name] = Row(name, make, ranks, wanted)
        return make

    return register


# -- on the ranks ---------------------------------------------------------------------------------


def makespan(comm: Any, call: Call, fresh: Call) -> float:
    """Milliseconds from the first start to the last finish; the clock is that of the node.

    Ranks that have nothing to do sleep, so that a peer of one process has all cores.
    """
    from mpi4py import MPI

    from distspmd.runtime.watch.errors_together import wait_quietly

    fresh()
    comm.Barrier()
    start = time.perf_counter()
    call()
    ends = np.array([-start, time.perf_counter()])
    wait_quietly(comm)
    comm.Allreduce(MPI.IN_PLACE, ends, op=MPI.MAX)
    return 1e3 * float(ends.sum())


def measure(comm: Any, of: Row, small: bool, repeat: int) -> Measured:
    """Measure a row on the ranks that it has."""
    calls = of.make(comm, small)
    every = {"": calls.ours, **calls.peers}
    best = dict.fromkeys(every, math.inf)
    names = list(every)
    for turn in range(repeat + 1):
        for name in names:
            spent = makespan(comm, every[name], calls.fresh)
            if turn:  # the first call warms up
                best[name] = min(best[name], spent)
        names.append(names.pop(0))
    ours = best.pop("")
    return Measured(of.name, ours, best, calls.missing, calls.nbytes, stream(comm, small))


def stream(comm: Any, small: bool) -> float:
    """Gigabytes a second that the ranks read and write together, in copies past the cache."""
    size = (1 << 20) if small else (1 << 26)
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    spent = min(makespan(comm, lambda: np.copyto(target, source), lambda: None) for _ in range(4))
    return 2 * size * comm.size / spent / 1e6


# -- afterwards -----------------------------------------------------------------------------------


def losses(found: Sequence[Measured], stored: Mapping[str, Any]) -> list[str]:
    """Rows whose ratio is below what is stored by more than its tolerance, in words."""
    said = []
    for each in found:
        known = stored.get(each.row)
        if known is None or each.ratio is None:
            continue
        least = known["ratio"] * (1 - known["tolerance"])
        absent = sorted(set(known["peers"]) - set(each.peers))
        if absent:
            said.append(f"{each.row}: the peers {', '.join(absent)} were not measured")
        elif each.ratio < least:
            said.append(
                f"{each.row}: the best peer takes {each.ratio:.2f} of our time, "
                f"and {known['ratio']:.2f} were stored, of which {least:.2f} must be left"
            )
    return said


def to_store(found: Sequence[Measured], stored: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of these rows, and of others before."""
    added = {
        each.row: {
            "ratio": round(each.ratio, 3),
            "tolerance": stored.get(each.row, {}).get("tolerance", TOLERANCE),
            "peers": sorted(each.peers),
        }
        for each in found
        if each.ratio is not None
    }
    return dict(sorted({**stored, **added}.items()))


def run_rows(names: Sequence[str], arguments: Sequence[str]) -> list[Measured]:
    """Measure rows, each in a launch of its own."""
    from distspmd.runtime.launch.mpiexec import launch

    found = []
    for name in names:
        file = Path(__file__).with_name("peers.py")
        done = launch(
            [file, "--row", name, *arguments], ranks=ROWS[name].ranks, threads=1, capture=True
        )
        text = done.check().stdout.splitlines()[-1]
        found.append(Measured(**json.loads(text)))
        print(found[-1].line(ROWS[name].wanted), flush=True)
    return found


def said_by_rank(measured: Measured) -> str:
    """What a launch of a row prints."""
    return json.dumps(asdict(measured))


def known() -> dict[str, Any]:
    """What is stored."""
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def single_threaded() -> None:
    """Let libraries of peers have one thread in each rank, as we have."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
