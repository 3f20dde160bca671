"""Assignments of the contest on intra-operator parallelism: ``python benchmarks/iopddl.py FILES``.

Each file is an instance (github.com/google/iopddl/tree/main/benchmarks). Beside ours stand the
results of XLA and the best of the contest's teams, and the lower bounds that were known
(github.com/ti2-group/iopddl_experiments). Seconds are those of all processes on processors, which
is what one idle core would take; ``--seconds`` is the budget on the clock.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from distspmd.wcsp import iopddl
from distspmd.wcsp.solver import solve

KNOWN = {  # XLA, best of the contest, lower bound
    "B": (990_205, 532_843, 532_843),
    "G": (1_264_777, 217_039, 216_931),
    "V": (None, 1_632_051, 1_617_084),
}

HEAD = [
    "instance",
    "nodes",
    "solver",
    "cost",
    "bound",
    "gap",
    "limit kept",
    "s",
    "XLA",
    "best",
    "known bound",
]


def processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--solver")
    parser.add_argument("--progress", action="store_true")
    given = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for path in given.files:
        problem = iopddl.read(path)
        begin = processor_seconds()
        found = solve(
            problem,
            seconds=given.seconds,
            solver=given.solver,
            progress=(lambda *step: print(*step)) if given.progress else None,
        )
        name = path.name.split(".")[0].removeprefix("asplos-2025-iopddl-")
        cells = [
            name,
            problem.variables,
            found.solver,
            f"{found.cost:,.0f}",
            f"{found.bound:,.0f}",
            f"{found.gap:.2%}",
            problem.overrun(found.choices) == 0,
            f"{processor_seconds() - begin:.1f}",
            *KNOWN.get(name, ("", "", "")),
        ]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
