"""Whole numbers of small arrays that are computed of known ones: they may be lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def boxes_of_several_sizes(x):
    z = np.arange(64.0).reshape(8, 8) > 20
    sizes = 2 ** np.arange(3, 0, -1)
    counts = []
    for size in sizes:
        sums = np.add.reduceat(z, np.arange(0, z.shape[0], size), axis=0)
        counts.append(sums.sum())
    return np.array(counts) + x[0]


def sizes_that_change(x):
    sizes = np.arange(4) * 2
    total = 0.0
    for _ in range(3):
        total += np.ones(sizes[1]).sum()
        sizes = sizes + 1
    for _ in range(2):
        for size in sizes:
            total += size * x[0]
        sizes[1] += 5
    return total, sizes


def written_before_they_are_lengths(x):
    sizes = np.arange(1, 4) * 2
    sizes[1] = 7
    return [np.ones(n).sum() * x[0] for n in sizes]


def numbers_of_python(x):
    sizes = (np.arange(1, 4) * 2).tolist()
    chosen = x[x > 0.5].tolist()
    chosen.append(3)
    return [np.ones(n).sum() for n in sizes], sizes[0], chosen


@pytest.mark.parametrize(
    "function",
    [
        *(boxes_of_several_sizes, sizes_that_change, written_before_they_are_lengths),
        numbers_of_python,
    ],
)
def test_lengths_are_those_of_numpy(function: Any) -> None:
    x = np.array([0.3, 0.7])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x], ()))
    assert outcome.kind == "right", outcome.reason
