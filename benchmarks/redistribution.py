"""Redistributions beside the limit, raw MPI and the peers, in one run.

    python benchmarks/redistribution.py [--megabytes 64] [--ranks 2 4 8] [--sample 100 [--skip 50]]
        [--repeat 7] [--methods distspmd Alltoallw] [--named 0] [--bind] [--keep rows]
        [--plot file.png]

Starts its own ranks, of one thread each. The limit is one process that has all tiles and copies the
same boxes with ``numpy.copyto`` (of a sum: adds them) while the other ranks sleep. Calls of all
methods alternate; a figure is the smallest makespan, from the first start to the last finish, in
milliseconds. Each method's result is checked. Peers come with ``pip install distspmd[bench]``, and
JAX, HeAT and torch from their own packages; those that are not installed are named and left out.
With ``--keep`` the figures are added to a file, and the summary and the plot are of all in it: so a
long run can be made in portions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, cases, factor, operand, sample, values

from distspmd.layouts import intervals
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch.mpiexec import launch

Row = dict[str, Any]  # case, ranks, megabytes, and milliseconds by method
OURS = ("distspmd", "shared tiles")
CORES = os.sched_getaffinity(0)


# --- on the ranks ---


def measure(comm: Any, case: Case, names: Iterable[str], repeat: int, bound: bool) -> Row:
    """The smallest makespan of each method that suits a case, in milliseconds."""
    from methods import METHODS, Unsuited

    tiles = [operand(case.layouts[0], comm.rank)]
    tiles += [
        np.zeros(intervals.shape(layout.box(comm.rank)), np.float32) for layout in case.layouts[1:]
    ]
    ready = {}
    for name in names:
        with suppress(Unsuited):
            ready[name] = METHODS[name](comm, case, tiles)
        if comm.allreduce(name not in ready):
            ready.pop(name, None)
            continue
        tiles[-1][...] = -1
        timed(comm, ready[name])
        check(comm, case, name, ready[name])
    best = dict.fromkeys(ready, math.inf)
    turns = list(ready)
    for _ in range(repeat):
        for name in turns:
            best[name] = min(best[name], timed(comm, ready[name], bound))
        turns.append(turns.pop(0))  # none always follows one that let the ranks sleep
    return {"case": case.name, "ranks": comm.size, "megabytes": case.megabytes, "ms": best}


def timed(comm: Any, prepared: Any, bound: bool = False) -> float:
    """Milliseconds from the first start to the last finish; the clock is that of the node.

    Bound to a core each, in turn, are the ranks of what is not run by one process alone.
    """
    from mpi4py import MPI

    from distspmd.runtime.watch.errors_together import wait_quietly

    if prepared.alone:
        seconds = 0.0
        comm.Barrier()
        if comm.rank == 0:
            time.sleep(0.002)  # until the others sleep
            start = time.perf_counter()
            prepared.run()
            seconds = time.perf_counter() - start
        wait_quietly(comm)
        return 1e3 * float(comm.bcast(seconds))
    if bound:
        os.sched_setaffinity(0, {sorted(CORES)[comm.rank % len(CORES)]})
    comm.Barrier()
    start = time.perf_counter()
    prepared.run()
    finish = time.perf_counter()
    ends = np.array([-start, finish])
    comm.Allreduce(MPI.IN_PLACE, ends, op=MPI.MAX)
    if bound:
        os.sched_setaffinity(0, CORES)
    return 1e3 * float(ends.sum())


def check(comm: Any, case: Case, name: str, prepared: Any) -> None:
    found = prepared.result()
    wrong = False
    if found is not None:
        box, tile = found
        wrong = not np.array_equal(tile, values(box, factor(case)))
    if comm.allreduce(wrong):
        raise SystemExit(f"{name} is wrong: {case.name} on {comm.size} ranks")


def installed(comm: Any, names: Iterable[str]) -> list[str]:
    """The methods whose libraries are there; the others are named."""
    from methods import METHODS, Unsuited

    found = []
    probe = next(iter(cases(comm.size, 0.01)))
    tiles = [
        operand(probe.layouts[0], comm.rank),
        np.zeros(intervals.shape(probe.layouts[1].box(comm.rank)), np.float32),
    ]
    for name in names:
        missing = ""
        try:
            METHODS[name](comm, probe, tiles)
        except ImportError as error:
            missing = str(error)
        except Unsuited:
            pass
        missing = max(comm.allgather(missing))
        if not missing:
            found.append(name)
        elif comm.rank == 0:
            print(f"skipped: {name} ({missing})", flush=True)
    return found


def on_ranks(options: argparse.Namespace) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    names = installed(comm, options.methods)
    chosen = list(cases(comm.size, options.megabytes)) if options.named else []
    if comm.size == 8:
        chosen += islice(sample(options.sample, options.megabytes), options.skip, None)
    chosen = [case for case in chosen if options.only is None or case.name in options.only]
    header = f"{'ms':<22}{'MB':>6}" + "".join(f"{name:>15}" for name in names)
    if comm.rank == 0:
        print(f"{comm.size} ranks\n{header}  limit/ours", flush=True)
    rows = []
    for case in chosen:
        rows.append(measure(comm, case, names, options.repeat, options.bind))
        if comm.rank == 0:
            print(line(rows[-1], names), flush=True)
            with Path(options.results).open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")


def line(row: Row, names: Iterable[str]) -> str:
    figures = [f"{row['ms'][name]:15.2f}" if name in row["ms"] else f"{'-':>15}" for name in names]
    ratios = [
        f"{row['ms']['limit'] / row['ms'][ours]:9.2f}"
        for ours in OURS
        if {"limit", ours} <= row["ms"].keys()
    ]
    return f"{row['case']:<22}{row['megabytes']:6.0f}" + "".join([*figures, *ratios])


# --- afterwards ---


def summary(rows: list[Row]) -> str:
    """Ratios of the times of all other methods to each of ours, over the cases that both have."""
    lines = []
    groups = {
        "named cases": [row for row in rows if not row["case"].startswith("sample")],
        "random sample": [row for row in rows if row["case"].startswith("sample")],
    }
    for ours in OURS:
        lines.append(
            f"{'time / ' + ours:<24}{'cases':>6}{'geomean':>9}{'least':>8}{'ahead in':>10}"
        )
        for title, held in groups.items():
            names = dict.fromkeys(name for row in held for name in row["ms"] if name not in OURS)
            lines += [f" {title}"] if names else []
            lines += [f"  {name:<22}{_compared(held, name, ours)}" for name in names]
    return "\n".join(lines)


def _compared(rows: list[Row], name: str, ours: str) -> str:
    both = [row["ms"] for row in rows if name in row["ms"] and ours in row["ms"]]
    ratios = [ms[name] / ms[ours] for ms in both]
    if not ratios:
        return f"{0:6}"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{len(ratios):6}{mean:9.2f}{min(ratios):8.2f}{sum(r > 1 for r in ratios):10}"


def plot(rows: list[Row], file: str) -> None:
    """The ratio of the limit to each method, one dot a case."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = dict.fromkeys(name for row in rows for name in row["ms"] if name != "limit")
    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    for at, name in enumerate(names):
        ratios = [row["ms"]["limit"] / row["ms"][name] for row in rows if name in row["ms"]]
        shifts = np.linspace(-0.3, 0.3, len(ratios))
        axes.scatter(at + shifts, ratios, s=14, color="tab:red" if name in OURS else "tab:gray")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(
        yscale="log", ylabel="time of the limit / time", title="one dot a case; higher is faster"
    )
    axes.set_xticks(range(len(names)), list(names))
    figure.savefig(file)
    print(f"wrote {file}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=64, help="of an array (default 64)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--sample", type=int, default=100, help="random problems, at 8 ranks")
    parser.add_argument("--skip", type=int, default=0, help="of the random problems the first ones")
    parser.add_argument("--repeat", type=int, default=7, help="calls of each method (default 7)")
    parser.add_argument("--methods", nargs="+", help="some methods only")
    parser.add_argument("--plot", default="redistribution.png", help="file of the plot")
    parser.add_argument("--keep", help="file of figures, to which those of this run are added")
    parser.add_argument("--named", type=int, default=1, help="0: without the named cases")
    parser.add_argument("--bind", action="store_true", help="each rank to a core, in turn")
    parser.add_argument("--only", nargs="+", help="some cases only")
    parser.add_argument("--results", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if launched_ranks() is not None:
        from methods import METHODS

        options.methods = options.methods or list(METHODS)
        on_ranks(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        results = Path(options.keep or Path(folder) / "results").resolve()
        for ranks in options.ranks:
            arguments = [*sys.argv[1:], "--results", str(results)]
            done = launch([Path(__file__).resolve(), *arguments], ranks=ranks, threads=1)
            if done.returncode:
                sys.exit(done.returncode)
        rows = [json.loads(row) for row in results.read_text().splitlines()]
    print(summary(rows))
    if all("limit" in row["ms"] for row in rows):
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
