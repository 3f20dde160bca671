"""How good and how fast plans are, over seeded random problems.

    python benchmarks/planning.py [--problems 10000] [--ranks 64] [--optimal 300]

Every plan of every solver is proved and simulated, and compared with slices of NumPy. Prints the
share of problems in which the search meets the exhaustive optimum, the times of planning, and the
times of redistributions among 4,096 ranks.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import distspmd
from distspmd import Layout, Mesh
from distspmd.collectives import Price, Seconds, Transfers, sequences
from distspmd.machine import Machine
from distspmd.plans import Plan, StepKind
from distspmd.problems import random_problem
from distspmd.simulator import simulate
from distspmd.solvers import SOLVERS
from distspmd.solvers.collectives import best, padded, problem_of
from distspmd.verifier import verify

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


def check(problems: int, ranks: int) -> None:
    """Prove and simulate all plans."""
    plans: Counter[str] = Counter()
    equal = values = 0
    for seed in range(problems):
        move = random_problem(seed, ranks, most_elements=1 << 12)
        content = None
        for solver in SOLVERS:
            plan = solver.plan(move)
            if not isinstance(plan, Plan):
                continue
            verify(plan)
            content = content or Content(move, seed)
            found = simulate(plan, content.sources, content.before)
            for rank, wanted in enumerate(content.after):
                assert (found[rank] == wanted).all(), f"seed {seed}, rank {rank} of {plan}"
            plans[solver.name] += 1
            if solver.name == "exchange" and move.source.partial is None:
                values += 1
                equal += all(plan.received(r) == move.bound.received(r) for r in range(move.ranks))
    print(f"{problems} problems of up to {ranks} ranks: all plans proved and equal to NumPy")
    print("  plans:", ", ".join(f"{name} {count}" for name, count in plans.items()))
    print(f"  exchange receives exactly the bound in {equal} of {values} problems of values")


def optimality(problems: int, price: Price, name: str) -> None:
    """Compare the search with looking at everything."""
    weak = same = within = count = 0
    for seed in range(problems):
        move = random_problem(seed, 16, most_dimensions=3)
        if not all(padded(move, dimension) for dimension in range(len(move.source.extents))):
            continue
        problem = problem_of(move)
        tile = price.of(StepKind.PERMUTE, 1, problem.tile(problem.target))
        answer = best(move, problem, price)
        assert answer is not None
        least = optimum(move, problem, price) * (1 + 1e-6) + 1e-6 * tile
        first = next(sequences(problem, price))[0]
        weak += first <= weak_optimum(problem, price) * (1 + 1e-6) + 1e-6 * tile
        same += answer.cost <= least
        within += answer.cost <= least + tile
        count += 1
    print(f"optimum of {name}, {count} problems of up to 16 ranks:")
    print(f"  weak types {weak}, with the permutation {same}, within one target tile {within}")


def planning(problems: int, ranks: int) -> None:
    """Times of distspmd.plan, layouts made anew each time."""
    seconds = []
    winners: Counter[str] = Counter()
    for seed in range(problems):
        move = random_problem(seed, ranks)
        start = time.perf_counter()
        plan = distspmd.plan(move.source, move.target, move.dtype)
        seconds.append(time.perf_counter() - start)
        winners[plan.solver] += 1
    low, high, most = np.percentile(1e3 * np.array(seconds), [50, 99, 100])
    print(f"planning, {problems} problems of up to {ranks} ranks:")
    print(f"  median {low:.1f} ms, 99 of 100 within {high:.1f} ms, all within {most:.1f} ms")
    print("  chosen:", ", ".join(f"{name} {count}" for name, count in winners.items()))


def large() -> None:
    """Times of plans among 4,096 ranks."""
    print("planning for 4,096 ranks:")
    for sizes, source, target in LARGE:
        start = time.perf_counter()
        mesh = Mesh.parse(sizes)
        plan = distspmd.plan(Layout.parse(source, mesh), Layout.parse(target, mesh))
        print(f"  {time.perf_counter() - start:.2f} s  {plan}")


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--ranks", type=int, default=64, help="of the problems that are simulated")
    parser.add_argument("--optimal", type=int, default=2000, help="problems to search exhaustively")
    options = parser.parse_args()
    large()
    planning(options.problems, 256)
    planning(max(1, options.problems // 10), 4096)
    optimality(options.optimal, Transfers(), "elements transferred")
    optimality(options.optimal, Seconds(Machine(), 4), "seconds")
    check(options.problems, options.ranks)


if __name__ == "__main__":
    main()
