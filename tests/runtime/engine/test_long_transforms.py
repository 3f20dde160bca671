"""Fourier transforms of lines in parts: what they move, and the runtime on ranks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runtime.engine.test_sample_sorts import library_of

from distspmd.plans.long_transform import LongTransform, matrix_of

HERE = Path(__file__).parent
SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=SLOW) for n in (1, 2, 4, 5, 6))])
def test_random_transforms_are_those_of_scipy(launch: Any, tmp_path: Path, ranks: int) -> None:
    library = library_of(HERE / "transforms_in_parts.cpp", tmp_path)
    done = launch(HERE / "random_transforms.py", library, "60", ranks=ranks)
    assert f"60 transforms agree on {ranks} ranks" in done.stdout


def even(length: int, ranks: int) -> tuple[tuple[int, int], ...]:
    return tuple(itertools.pairwise(length * r // ranks for r in range(ranks + 1)))


def test_a_transform_moves_three_times_what_is_not_there_yet() -> None:
    transform = LongTransform("x", 16, even(1 << 20, 4))
    assert transform.expected_bytes == 3 * 16 * (1 << 20) * 3 // 4
    assert (transform.rounds, transform.convolves) == (3, False)


def test_a_prime_length_is_a_convolution_of_a_longer_line() -> None:
    transform = LongTransform("x", 16, even(10_007, 2))
    assert matrix_of(10_007) == (128, 256)
    turned = 128 * 256 // 2
    apart = 10_007 // 2  # of each part half the columns
    assert transform.convolves
    assert abs(transform.expected_bytes - 16 * 2 * (turned + apart)) < 16 * 2 * 256


@given(st.integers(1, 3000), st.integers(1, 6), st.data())
def test_moves_are_counted_as_elements_are(length: int, ranks: int, data: Any) -> None:
    cuts = sorted(
        data.draw(st.lists(st.integers(0, length), min_size=ranks - 1, max_size=ranks - 1))
    )
    parts = tuple(itertools.pairwise([0, *cuts, length]))
    transform = LongTransform("x", 1, parts)
    rows, columns = matrix_of(length)
    holders = [p for p in parts if p[0] < p[1]]
    owner = np.repeat(np.arange(len(holders)), [b - a for a, b in holders])
    own_row = np.repeat(np.arange(len(holders)), [b - a for a, b in even(rows, len(holders))])
    own_column = np.repeat(np.arange(len(holders)), [b - a for a, b in even(columns, len(holders))])
    place = np.arange(length)
    first = int((owner != own_column[place % columns]).sum())
    turned = int((own_row[:, None] != own_column[None]).sum())
    last = first + turned if transform.convolves else int((owner != own_row[place % rows]).sum())
    assert transform.expected_bytes == (first + turned + last if len(holders) > 1 else 0)
