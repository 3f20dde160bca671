"""Python's ``random``, and draws that come first in a loop, on 1 rank and on all: the same."""

from __future__ import annotations

import random
from random import choice, randint
from typing import Any

import numpy as np
from draws import results
from mpi4py import MPI

COMM = MPI.COMM_WORLD
STEPS = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def drawn(n: int) -> Any:
    numbers, whole, steps, normal = np.zeros(n), np.zeros(n), np.zeros((n, 2)), np.zeros(n)
    for i in range(n):
        numbers[i] = random.uniform(2, 4)
        whole[i] = randint(3, 5)
        dx, dy = choice(STEPS)
        steps[i] = dx, dy
        normal[i] = np.random.randn()  # noqa: NPY002
    cards = list(range(9))
    random.shuffle(cards)
    hand = random.sample(cards, 4)
    mine, other = random.Random(7), np.random.default_rng(7)
    few = random.choices([3, 4], [1, 0], k=2)
    return (
        numbers,
        whole,
        steps,
        normal,
        np.array(cards),
        np.array(hand),
        mine.random(),
        other.random(),
        few,
    )


def main() -> None:
    """All comparisons."""
    n = 400
    whole = results(drawn, COMM, 0, n)
    alone = COMM.Split(COMM.rank)
    if COMM.rank != 0:
        return
    one = results(drawn, alone, 0, n)
    for a, b in zip(one, whole, strict=True):
        assert np.array_equal(a, b), (a, b)
    numbers, integers, steps, normal, cards, hand, mine, other, few = one
    assert abs(np.mean(numbers) - 3) < 5 * np.sqrt(1 / 3 / n)
    assert set(integers) == {3, 4, 5}
    assert {tuple(step) for step in steps} == set(STEPS)
    assert abs(np.mean(normal)) < 5 / np.sqrt(n)
    assert len(set(normal)) == n
    assert sorted(cards) == list(range(9))
    assert cards.tolist() != sorted(cards)
    assert len(set(hand) & set(cards)) == 4
    assert mine != other, "a generator of Python draws other numbers than one of NumPy"
    assert list(few) == [3, 3]
    print("all as drawn", flush=True)


if __name__ == "__main__":
    main()
