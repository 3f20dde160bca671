"""Loops over many known numbers stay loops, and read the numbers from tables."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from dace.sdfg.state import LoopRegion
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program

X = np.linspace(0.0, 5.0, 30)


def distances(x):
    total = 0.0
    for a, b in itertools.combinations(range(len(x)), 2):
        if b == 17:
            continue
        total += abs(x[a] - x[b]) * (a / b) ** 2
        if total > 300:
            break
    return total, a, b


def steps(x):
    y = np.zeros_like(x)
    for number, step in enumerate([0.1 * k for k in range(100)]):
        y = y + x * step * number
    return y


def of_lists(x):
    total = 0.0
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    for i, j in pairs:
        total += x[i] * (i - j)
    for k in [k * k % 97 for k in range(300)]:
        total += x[k % len(x)]
    return total, k


def lengths(x):
    total = 0.0
    for n in [k % 5 + 1 for k in range(70)]:
        total += np.zeros(n).sum() + n
    return total * x


def grown(x):
    places = list(range(70))
    for place in places:
        if place < 3:
            places.append(100)
        x = x + place
    return x, len(places)


@pytest.mark.parametrize("function", [distances, steps, of_lists, lengths, grown])
def test_loops_over_many_known_numbers_give_what_python_gives(function: Any) -> None:
    found, expected = distspmd.program(function, comm=MPI.COMM_SELF)(X), function(X)
    assert type(found) is type(expected)
    pairs = zip(found, expected, strict=True) if type(found) is tuple else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(("function", "loops"), [(distances, 1), (steps, 1), (of_lists, 2)])
def test_they_are_as_many_loops_as_are_written(function: Any, loops: int) -> None:
    regions = numpy_program(function, X).all_control_flow_regions()
    assert sum(isinstance(region, LoopRegion) for region in regions) == loops
