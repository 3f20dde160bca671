"""How good and how fast plans are, over seeded random problems.

    python benchmarks/planning.py [--problems 10000] [--minutes 5] [--keep rows] [--times]

Every plan of every solver is proved and simulated, and compared with slices of NumPy; what the
exchange receives is compared with the bound; of problems of up to 16 ranks the search is compared
with looking at everything; a plan is damaged, and the proof has to find it; and planning is timed,
in seconds of the processor. With ``--keep`` what was found is added to a file, and a further call
goes on where the last one stopped: so a long run can be made in portions. The summary is of all in
the file, and ends with the times of redistributions among 4,096 ranks. ``--times`` plans only: what
else runs on a machine makes planning up to twice as slow.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import distspmd
from distspmd.errors import PlanError
from distspmd.layouts import Layout, Mesh
from distspmd.planning.random_problems import random_problem
from distspmd.plans.collectives import StepKind
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.simulator import simulate
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS
from distspmd.solvers.collectives.search import Price, Seconds, Transfers, sequences
from distspmd.solvers.collectives.solver import best, padded_extent, problem_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from exhaustive import optimum, weak_optimum
from strategies import Content

LARGE = [
    ("x=4096", "[1{x}4096, 4096]", "[4096, 1{x}4096]"),
    ("x=64,y=64", "[64{x}4096, 64{y}4096]", "[64{y}4096, 64{x}4096]"),
    ("x=64,y=64", "[64{x}4096, 4096]", "[4096, 64{x}4096]"),
    ("x=64,y=64", "[16{x}1001, 64{y}4096]", "[1001, 1{y,x}4096]"),
    ("x=16,y=16,z=16", "[64{x}1024, 64{y}1024, 1024]", "[64{x}1024, 1024, 64{z}1024]"),
    ("x=16,y=16,z=16", "[64{x}1024, 64{y}1024, 64{z}1024]", "[64{y}1024, 64{z}1024, 64{x}1024]"),
]
PRICES: dict[str, Price] = {"elements": Transfers(), "seconds": Seconds(Machine(), 4)}
SIMULATED_RANKS, TIMED_RANKS, SEARCHED_RANKS = 64, 256, 16

Row = dict[str, Any]


def problem(seed: int) -> Row:
    """All that is found out about the problems of one number."""
    move = random_problem(seed, SIMULATED_RANKS, most_elements=1 << 12)
    plans = [plan for solver in SOLVERS if isinstance(plan := solver.plan(move), Plan)]
    small = random_problem(seed, SEARCHED_RANKS, most_dimensions=3)
    return {
        "seed": seed,
        "plans": _checked(move, plans, seed),
        "bound": _meets_bound(move, plans),
        "optimum": {name: _against_all(small, price) for name, price in PRICES.items()},
        "damage": _damaged(plans, seed),
        "ms": _planned(random_problem(seed, TIMED_RANKS)),
    }


def _checked(move: Redistribution, plans: list[Plan], seed: int) -> list[str]:
    """Prove and simulate the plans; the names of their solvers."""
    content = Content(move, seed)
    for plan in plans:
        verify(plan)
        found = simulate(plan, content.sources, content.before)
        for rank, wanted in enumerate(content.after):
            assert (found[rank] == wanted).all(), f"seed {seed}, rank {rank} of {plan}"
    return [plan.solver for plan in plans]


def _meets_bound(move: Redistribution, plans: list[Plan]) -> bool | None:
    """Whether each rank receives in the exchange exactly what it must; None for sums."""
    if move.source.partial:
        return None
    (plan,) = (plan for plan in plans if plan.solver == "exchange")
    return all(plan.received(rank) == move.bound.received(rank) for rank in range(move.ranks))


def _against_all(move: Redistribution, price: Price) -> list[bool] | None:
    """Whether the search finds the least cost on weak types, in all, and within a target tile."""
    if not all(padded_extent(move, dimension) for dimension in range(len(move.source.extents))):
        return None
    held = problem_of(move)
    tile = price.of(StepKind.PERMUTE, 1, held.tile(held.target))
    slack = 1e-6 * tile
    answer = best(move, held, price)
    assert answer is not None
    least = optimum(move, held, price) * (1 + 1e-6) + slack
    first = next(sequences(held, price))[0]
    weak = first <= weak_optimum(held, price) * (1 + 1e-6) + slack
    return [weak, answer.cost <= least, answer.cost <= least + tile]


def _damaged(plans: list[Plan], seed: int) -> str | None:
    """What is damaged in one of the plans, if the proof finds it; None where none has a message."""
    draw = Random(seed)
    chosen = [plan for plan in plans if plan.steps and len(plan.steps[0].messages)]
    if not chosen:
        return None
    plan = draw.choice(chosen)
    step = plan.steps[number := draw.randrange(len(plan.steps))]
    messages = [*step.messages]
    if not messages:
        return None
    at = draw.randrange(len(messages))
    what = draw.choice(["a wrong box", "a missing message", "a message twice"])
    if what == "a wrong box":
        d = draw.randrange(len(messages[at].box))
        box = [*messages[at].box]
        by = draw.choice([-1, 1]) * draw.randint(1, 3)
        box[d] = (box[d][0] + by, box[d][1] + by)
        messages[at] = replace(messages[at], box=tuple(box))
    elif what == "a missing message":
        del messages[at]
    else:
        messages.insert(at, messages[at])
    steps = [*plan.steps]
    steps[number] = replace(step, messages=messages)
    try:
        verify(replace(plan, steps=tuple(steps)))
    except PlanError:
        return what
    raise AssertionError(f"seed {seed}: {what} is not found in step {number} of {plan}")


def _planned(move: Redistribution) -> float:
    """Milliseconds of the processor that planning takes, with layouts that know nothing yet."""
    fresh = [replace(side) for side in (move.source, move.target)]
    start = time.process_time()
    distspmd.plan(*fresh, move.dtype)
    return 1e3 * (time.process_time() - start)


def summary(rows: list[Row]) -> str:
    """What was found, in lines."""
    names = Counter(name for row in rows for name in row["plans"])
    bounds = [row["bound"] for row in rows if row["bound"] is not None]
    damages = Counter(row["damage"] for row in rows if row["damage"])
    lines = [
        f"{len(rows)} problems of up to {SIMULATED_RANKS} ranks: all plans proved, equal to NumPy",
        "  plans: " + ", ".join(f"{name} {count}" for name, count in names.items()),
        f"  exchange receives exactly the bound in {sum(bounds)} of {len(bounds)} of values",
        "  damage, all of it found: " + ", ".join(f"{what} {n}" for what, n in damages.items()),
        times([row["ms"] for row in rows]),
    ]
    for name in PRICES:
        found = [row["optimum"][name] for row in rows if row["optimum"][name]]
        weak, same, within = (sum(column) for column in zip(*found, strict=True))
        lines.append(
            f"optimum of {name}, {len(found)} problems of up to {SEARCHED_RANKS} ranks: weak types "
            f"{weak}, with the permutation {same}, within one target tile {within}"
        )
    return "\n".join(lines)


def times(ms: list[float]) -> str:
    """Percentiles in a line."""
    middle, high, most = np.percentile(ms, [50, 99, 100])
    return (
        f"planning for up to {TIMED_RANKS} ranks: median {middle:.1f} ms, 99 of 100 within "
        f"{high:.1f} ms, all within {most:.1f} ms"
    )


def large() -> None:
    """Times of plans among 4,096 ranks."""
    print("planning for 4,096 ranks:")
    for sizes, source, target in LARGE:
        start = time.process_time()
        mesh = Mesh.parse(sizes)
        plan = distspmd.plan(Layout.parse(source, mesh), Layout.parse(target, mesh))
        print(f"  {time.process_time() - start:.2f} s  {plan}")


def main() -> None:
    """Go on where the file of results ends, for so many minutes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--keep", help="file of results, to which those of this run are added")
    parser.add_argument("--times", action="store_true", help="plan, and check nothing")
    options = parser.parse_args()
    if options.times:
        numbers = range(options.problems)
        print(times([_planned(random_problem(seed, TIMED_RANKS)) for seed in numbers]))
        return large()
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        results = Path(options.keep or Path(folder) / "results")
        results.touch()
        with results.open("r+") as file:
            rows = [json.loads(line) for line in file]
            while len(rows) < options.problems and time.monotonic() < end:
                rows.append(problem(len(rows)))
                file.write(json.dumps(rows[-1]) + "\n")
    print(summary(rows))
    return large()


if __name__ == "__main__":
    main()
