from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from distspmd.wcsp.iopddl import read
from distspmd.wcsp.solver import solve

CUT = Path(__file__).parent / "data/cut.json.gz"
"""A part of an instance; ``cut_instance.py`` has made it."""


def evaluate(problem: dict, choices: list[int]) -> tuple[float, int]:
    """Cost and peak as the contest defines them, one addition after the other."""
    nodes, edges = problem["nodes"], problem["edges"]
    cost = sum(costs[choice] for costs, choice in zip(nodes["costs"], choices, strict=True))
    for (first, second), table in zip(edges["nodes"], edges["costs"], strict=True):
        cost += table[choices[first] * len(nodes["costs"][second]) + choices[second]]
    taken = dict.fromkeys(range(1000), 0)
    for node, (begin, end) in enumerate(nodes["intervals"]):
        for time in range(begin, end):
            taken[time] += nodes["usages"][node][choices[node]]
    return cost, max(taken.values())


def test_costs_and_peaks_are_those_of_the_contest() -> None:
    written = json.loads(gzip.decompress(CUT.read_bytes()))["problem"]
    problem = read(CUT)
    (limit,) = problem.limits
    random = np.random.default_rng(0)
    assert limit.capacity == written["usage_limit"]
    for _ in range(50):
        choices = random.integers(0, problem.sizes)
        cost, peak = evaluate(written, choices.tolist())
        assert problem.overrun(choices) == max(0, peak - limit.capacity)
        expected = np.inf if cost >= 1e17 or peak > limit.capacity else cost
        assert problem.cost(choices) == expected


def test_the_example_of_the_contest_has_its_optimum(tmp_path: Path) -> None:
    nodes = {
        "intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
        "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
        "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]],
    }
    edges = {
        "nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
        "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]],
    }
    written = {"name": "example", "nodes": nodes, "edges": edges, "usage_limit": 50}
    path = tmp_path / "example.json"
    path.write_text(json.dumps({"problem": written}))
    found = solve(read(path), seconds=60)
    everything = itertools.product(*(range(len(costs)) for costs in nodes["costs"]))
    tried = [evaluate(written, list(choices)) for choices in everything]
    assert found.cost == min(cost for cost, peak in tried if peak <= 50)
    assert found.cost > min(cost for cost, _ in tried)
    assert found.gap == 0


def test_a_part_of_an_instance_is_solved_within_its_limit() -> None:
    problem = read(CUT)
    found = solve(problem, seconds=60, solver="toulbar2")
    assert problem.overrun(found.choices) == 0
    assert found.gap == 0


def test_what_is_no_instance_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"problem": {"nodes": {}}}')
    with pytest.raises(ValueError, match=r"other.json is no instance of the contest: KeyError"):
        read(path)
