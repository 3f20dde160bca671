"""Random problems for Hypothesis, and their optimum by one assignment after the other."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from distspmd.wcsp.problem import Limit, Pair, Problem, Usage


def costs(random: np.random.Generator, shape: tuple[int, ...], forbidden: float) -> np.ndarray:
    """Costs of very different sizes, negative and equal ones among them."""
    table = np.round(random.normal(size=shape) * 10.0 ** random.integers(-1, 3), 2)
    table[random.random(shape) < forbidden] = np.inf
    return table


@st.composite
def problems(draw: st.DrawFn, variables: int = 6, choices: int = 4) -> Problem:
    """Problems with pairs, some forbidden, limits over time and ties; some allow nothing."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    number = draw(st.integers(1, variables))
    sizes = random.integers(1, choices + 1, number)
    forbidden = draw(st.sampled_from([0.0, 0.1, 0.3]))
    unary = tuple(costs(random, (size,), forbidden / 3) for size in sizes)
    pairs = []
    for _ in range(draw(st.integers(0, 2 * number)) if number > 1 else 0):
        first, second = (int(one) for one in random.choice(number, 2, replace=False))
        shape = int(sizes[first]), int(sizes[second])
        pairs.append(Pair(first, second, costs(random, shape, forbidden)))
    limits = tuple(_limit(random, sizes) for _ in range(draw(st.integers(0, 2))))
    problem = Problem(unary, tuple(pairs), limits)
    if draw(st.booleans()):
        groups = [np.flatnonzero(sizes == size) for size in range(1, choices + 1)]
        tied = [group[: random.integers(2, 4)] for group in groups if len(group) > 1]
        problem = replace(problem, ties=tuple(tuple(group.tolist()) for group in tied[:1]))
    return problem


def _limit(random: np.random.Generator, sizes: np.ndarray) -> Limit:
    usages = []
    for variable, size in enumerate(sizes):
        begin = int(random.integers(0, 5))
        amounts = random.integers(0, 10, int(size)).astype(float)
        usages.append(Usage(variable, amounts, begin, begin + int(random.integers(0, 5))))
    return Limit(float(random.integers(1, 1 + 5 * len(sizes))), tuple(usages), "memory")


def optimum(problem: Problem) -> float:
    """The least cost of all assignments; infinite if none is allowed."""
    return min(map(problem.cost, itertools.product(*map(range, problem.sizes))))
