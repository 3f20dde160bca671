"""Measures the machine model on ranks of this host: messages, copies, transports, and computing.

Each rank runs ``python -m distspmd.runtime.measure.hosts``; rank 0 prints the machine as JSON.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.machine import Machine
from distspmd.runtime.launch.mpiexec import launch
from distspmd.runtime.measure.library_calls import build_lines, measure_calls
from distspmd.runtime.redistribution.redistribute import allocate, redistribute

NEVER = 1 << 62
"""A number of bytes from which on nothing is done."""

_LARGE = 1 << 24
_RUNS, _RUN = 1 << 12, 1 << 8
"""Runs of memory that are copied, and bytes of each."""
_SIZES = tuple(1 << power for power in range(12, 25, 2))
_REPEAT = 15
_FEW_TIMES = 5
"""How often library calls are measured, each of the longest of which take a tenth of a second."""
_EDGE, _THIN = 512, 64
"""Rows, columns and depth of the product that is measured, and rows of one that has few."""
_FEW, _CACHED, _SWEEPS = 1 << 7, 1 << 11, 64
"""Elements of two loops, and how often they are run."""
EXPONENTIAL = 15
"""Additions that an exponential counts as, in the work of a loop."""
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
"""Where the system tells of the caches of a core."""
_HELD = tuple(3 << power for power in range(20, 26))
"""Bytes that a rank reads and writes again and again: more than the caches of a core alone."""


def measure(ranks: int | None = None, timeout: float = 120) -> Machine:
    """Start ranks that measure, as many as there are cores, but 2 to 8.

    Raises:
        LaunchError: the ranks failed.
        ToolchainError: there is no MPI.
    """
    cores = os.cpu_count() or 1
    chosen = ranks or max(2, min(8, cores))
    argv = ["-m", "distspmd.runtime.measure.hosts", str(build_lines())]
    done = launch(argv, ranks=chosen, threads=1, capture=True, timeout=timeout).check()
    return Machine(**json.loads(done.stdout.splitlines()[-1]))


def measured_on(comm: Any, library: Path | None = None) -> Machine:
    """The machine as all ranks of a communicator find it together.

    Args:
        library: routines that :func:`build_lines` has compiled; without it, library calls are not
            measured.
    """
    alpha = _exchange(comm, 8)
    here, there = np.zeros(_LARGE, np.uint8), np.zeros(_LARGE, np.uint8)
    copy = _least(comm, lambda: np.copyto(there, here)) / _LARGE
    # A message is copied once at least, however long others kept ranks from the short ones.
    beta = max(copy, (_exchange(comm, _LARGE) - alpha) / _LARGE)
    alone = _least(comm, lambda: np.copyto(there, here) if comm.rank == 0 else None) / _LARGE
    copies, runs = (_threshold(comm, wins) for wins in (_single_copy_wins, _run_wins))
    speeds: dict[str, Any] = {**_computing(comm), **_reading(comm), "near": nearest()}
    speeds["lone"] = min(1.0, alone / copy)  # noise is no faster copy of all
    if library is not None:
        least = functools.partial(_least_of_each, comm, repeat=_FEW_TIMES)
        calls = measure_calls(library, least)
        speeds["rates"] = tuple((kind.name, *rate) for kind, rate in calls.items())
    return Machine(alpha, beta, copy, copies, runs, _beginning(comm), **speeds)


def _beginning(comm: Any) -> float:
    """Seconds to begin a run: for rows that lie apart, longer than for as many that do not."""
    apart, together, out = (
        np.zeros((_RUNS, width), np.uint8)[:, :_RUN] for width in (9 * _RUN, _RUN, _RUN)
    )
    seconds = [_least(comm, functools.partial(np.copyto, out, each)) for each in (apart, together)]
    return max(0.0, seconds[0] - seconds[1]) / _RUNS  # noise is no negative time


def _computing(comm: Any) -> dict[str, float]:
    """Speeds of a rank, while all compute: of products, of loops, and of functions in these.

    Products are of square matrices by BLAS, and of one with few rows, which takes longer for its
    bytes; a loop has its elements in the first cache.
    """
    products = []
    for rows, dtype in ((_EDGE, np.float64), (_THIN, np.float64), (_EDGE, np.float32)):
        a, b, c = (np.full((n, _EDGE), 0.5, dtype) for n in (rows, _EDGE, rows))
        products.append(_least(comm, functools.partial(np.matmul, a, b, out=c)))
    added, raised = (_each(comm, call) for call in (functools.partial(np.add, 0.5), np.exp))
    square, thin, single = products
    found = parted([_product_of(_EDGE), _product_of(_THIN)], [square, thin])
    function = max(1.0, raised / EXPONENTIAL / added)
    return {**found, "single": single / square, "operation": added, "function": function}


def _each(comm: Any, call: Callable[..., Any]) -> float:
    """Seconds of a rank for an element, without what NumPy takes for each call."""
    seconds = []
    for count in (_FEW, _CACHED):
        x, y = np.full(count, 0.5), np.full(count, 0.5)

        def swept(x: Any = x, y: Any = y) -> None:
            for _ in range(_SWEEPS):
                call(x, out=y)

        seconds.append(_least_of_each(comm, swept) / _SWEEPS)
    few, many = seconds
    return max(many - few, many / 100) / (_CACHED - _FEW)  # noise is no negative time


def _product_of(rows: int) -> tuple[int, int]:
    """Operations and bytes of the product of so many rows."""
    return 2 * rows * _EDGE**2, 8 * (2 * rows * _EDGE + _EDGE**2)


def parted(works: Sequence[tuple[int, int]], seconds: Sequence[float]) -> dict[str, float]:
    """The parameters of products, of what two of them take: for an operation, and for a byte.

    Args:
        works: operations and bytes of each.
        seconds: that each takes.
    """
    (operations, nbytes), (few, many) = works
    packing = (seconds[1] * operations - seconds[0] * few) / (many * operations - nbytes * few)
    packing = min(max(0.0, packing), seconds[0] / nbytes / 2)  # noise is no product for nothing
    return {"product": (seconds[0] - packing * nbytes) / operations, "packing": packing}


def _reading(comm: Any) -> dict[str, float]:
    """Seconds of a rank for a byte of memory, and of a cache, and bytes that a cache holds.

    They are those of three arrays, of growing sizes, while all ranks read and write theirs.
    """
    costs = {}
    for nbytes in _HELD:
        a, b, c = (np.zeros(nbytes // 24) for _ in range(3))
        again = max(1, _HELD[-1] // nbytes // 8)

        def swept(a: Any = a, b: Any = b, c: Any = c, again: int = again) -> None:
            for _ in range(again):
                np.add(a, b, out=c)

        costs[nbytes] = _least(comm, swept) / (again * nbytes)
    return caches(costs)


def nearest(told: Path = _CACHES) -> int:
    """Bytes that the nearest cache of a core holds, as the system says; 0 where it does not.

    Args:
        told: the folder in which the system does.
    """
    for cache in told.glob("index*"):
        try:
            level, kind, size = ((cache / n).read_text().strip() for n in ("level", "type", "size"))
        except OSError:
            continue
        if level == "1" and kind == "Data" and size.endswith("K") and size[:-1].isdigit():
            return int(size[:-1]) << 10
    return 0


def caches(costs: Mapping[int, float]) -> dict[str, float]:
    """The parameters of caches, of seconds for a byte by how many are read again and again."""
    sizes = sorted(costs)
    cached, stream = min(costs.values()), costs[sizes[-1]]
    midway = (cached + stream) / 2
    held = [0, *itertools.takewhile(lambda nbytes: costs[nbytes] < midway, sizes)]
    is_flat = stream < 1.1 * cached  # memory is as fast
    return {"stream": stream, "cached": cached / stream, "cache": 0 if is_flat else held[-1]}


def _exchange(comm: Any, nbytes: int) -> float:
    """Seconds in which a rank sends a message to its neighbour and gets one."""
    sent, received = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    return _least(comm, lambda: comm.Sendrecv(sent, right, 0, received, left))


def _threshold(comm: Any, wins: Callable[[Any, int], bool]) -> int:
    """Bytes that a rank receives, from which on a transport wins."""
    return threshold(_SIZES, [wins(comm, nbytes) for nbytes in _SIZES])


def threshold(sizes: Sequence[int], wins: Sequence[bool]) -> int:
    """The least of the sizes that win together with all larger ones."""
    found = NEVER
    for size, won in zip(reversed(sizes), reversed(wins), strict=True):
        if not won:
            break
        found = size
    return found


def _single_copy_wins(comm: Any, nbytes: int) -> bool:
    """Whether rows become columns faster by single copies than without; the same on all ranks."""
    n = max(comm.size, round((nbytes * comm.size / 4) ** 0.5) // comm.size * comm.size)
    part, mesh = n // comm.size, Mesh(x=comm.size)
    rows = Layout.parse(f"[{part}{{x}}{n}, {n}]", mesh)
    columns = Layout.parse(f"[{n}, {part}{{x}}{n}]", mesh)
    tile = allocate(comm, (part, n), np.float32)
    out = allocate(comm, (n, part), np.float32)
    machines = [Machine(single_copy_bytes=least) for least in (0, NEVER)]
    return _first_wins(comm, tile, out, rows, columns, machines)


def _run_wins(comm: Any, nbytes: int) -> bool:
    """Whether the next rank's row comes faster by a message than by copy-in/copy-out."""
    mesh, n = Mesh(x=comm.size), max(1, nbytes // 4)
    rows = Layout.parse(f"[1{{x}}{comm.size}, {n}]", mesh)
    turned = tuple(rows.box((rank + 1) % comm.size) for rank in mesh)
    tile, out = np.zeros((1, n), np.float32), np.zeros((1, n), np.float32)
    machines = [Machine(run_bytes=least) for least in (0, NEVER)]
    next_rows = Layout(mesh, rows.extents, explicit=turned)
    return _first_wins(comm, tile, out, rows, next_rows, machines)


def _first_wins(
    comm: Any, tile: Any, out: Any, source: Layout, target: Layout, machines: Sequence[Machine]
) -> bool:
    """Whether a redistribution takes no longer on the first of two machines."""

    def seconds(machine: Machine) -> Callable[[], Any]:
        return lambda: redistribute(comm, tile, source, target, out=out, machine=machine)

    ways = [seconds(machine) for machine in machines]
    best = [float("inf")] * 2
    for _ in range(3):  # the two alternate
        for at, way in enumerate(ways):
            best[at] = min(best[at], _least(comm, way, _REPEAT // 3 + 1))
    return best[0] <= best[1]


def _least(comm: Any, run: Callable[[], Any], repeat: int = _REPEAT) -> float:
    """The smallest time from the first start to the last finish; the clock is that of the host."""
    from mpi4py import MPI

    run()
    found = []
    for _ in range(repeat):
        comm.Barrier()
        start = time.perf_counter()
        run()
        ends = np.array([-start, time.perf_counter()])
        comm.Allreduce(MPI.IN_PLACE, ends, op=MPI.MAX)
        found.append(float(ends.sum()))
    return min(found)


def _least_of_each(comm: Any, run: Callable[[], Any], repeat: int = _REPEAT) -> float:
    """The smallest time that each rank takes by itself, of the slowest rank.

    For what shares nothing with other ranks: when they start and end does not matter, which other
    processes of a busy machine decide.
    """
    from mpi4py import MPI

    run()
    found = []
    for _ in range(repeat):
        comm.Barrier()
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return float(comm.allreduce(min(found), op=MPI.MAX))


def measure_and_print() -> None:
    """Measure on all ranks of the launch; rank 0 prints."""
    from mpi4py import MPI

    found = measured_on(MPI.COMM_WORLD, Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    measure_and_print()
