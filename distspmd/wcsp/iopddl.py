"""Reader of the format of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism.

Its nodes are variables, its strategies choices, its edges pairs, and its usage limit one limit over
time: intervals are half-open. Costs from 10**17 on stand for what is forbidden
(github.com/google/iopddl).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from distspmd.wcsp.problem import Costs, Limit, Pair, Problem, Usage

_FORBIDDEN = 1e17


def read(path: str | Path) -> Problem:
    """Read an instance, which may be compressed by gzip.

    Raises:
        ValueError: The file is no instance; says what is missing.
    """
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    try:
        return _problem(json.loads(raw)["problem"])
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is no instance of the contest: {error!r}") from error


def _problem(written: dict[str, dict[str, list[list[int]]]]) -> Problem:
    nodes, edges = written["nodes"], written["edges"]
    unary = tuple(map(_costs, nodes["costs"]))
    pairs = tuple(
        Pair(first, second, _costs(costs).reshape(len(unary[first]), len(unary[second])))
        for (first, second), costs in zip(edges["nodes"], edges["costs"], strict=True)
    )
    limits: tuple[Limit, ...] = ()
    if "usage_limit" in written:
        usages = tuple(
            Usage(node, np.array(amounts, np.float64), begin, end)
            for node, (amounts, (begin, end)) in enumerate(
                zip(nodes["usages"], nodes["intervals"], strict=True)
            )
        )
        limits = (Limit(float(str(written["usage_limit"])), usages, "the usage limit"),)
    return Problem(unary, pairs, limits)


def _costs(written: Sequence[int]) -> Costs:
    costs = np.array(written, np.float64)
    costs[costs >= _FORBIDDEN] = np.inf
    return costs
