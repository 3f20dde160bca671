"""Sorts of lines in parts: what they mean, what they move, and the runtime on ranks."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.plans.sample_sort import SampleSort
from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.engine.compile_runtime import INCLUDE

HERE = Path(__file__).parent
SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=SLOW) for n in (1, 2, 4, 5, 6))])
def test_random_sorts_are_those_of_numpy(launch: Any, tmp_path: Path, ranks: int) -> None:
    library = library_of(HERE / "parts_in_order.cpp", tmp_path)
    done = launch(HERE / "random_sorts.py", library, "60", ranks=ranks)
    assert f"60 sorts agree on {ranks} ranks" in done.stdout


def library_of(source: Path, folder: Path) -> str:
    """The file of kernels that a program calls."""
    library = folder / f"{source.stem}.so"
    options = ["-std=c++17", "-O1", "-fopenmp", "-shared", "-fPIC", "-Werror", "-Wall"]
    options += [f"-I{INCLUDE}"]
    subprocess.run([*find_compiler().command, *options, source, "-o", library], check=True)
    return str(library)


def even(length: int, ranks: int) -> tuple[tuple[int, int], ...]:
    cuts = [length * r // ranks for r in range(ranks + 1)]
    return tuple(itertools.pairwise(cuts))


def test_a_rank_receives_what_others_had_of_its_part_of_the_result() -> None:
    sort = SampleSort("x", 8, even(12, 4))
    assert sort.received_bytes(np.arange(12)) == 0
    assert sort.received_bytes(np.arange(12)[::-1]) == sort.most_bytes == 12 * 8
    assert sort.received_bytes(np.zeros(12)) == 0  # equal elements stay in their order
    assert sort.expected_bytes == 12 * 8 * 3 / 4


def test_ranks_with_the_same_part_get_its_result() -> None:
    sort = SampleSort("x", 4, ((4, 8), (0, 4), (4, 8), (0, 0)))
    assert sort.workers == (1, 0)
    assert sort.most_bytes == 8 * 4 + 4 * 4
    assert sort.received_bytes(np.arange(8)) == 4 * 4


def test_one_part_does_not_move() -> None:
    for parts in (((0, 9), (0, 9)), ((0, 9), (0, 0)), ((0, 0),)):
        sort = SampleSort("x", 8, parts)
        assert not sort.is_split
        assert (
            sort.most_bytes == sort.expected_bytes == sort.received_bytes(np.arange(9)[::-1]) == 0
        )


LINES = st.lists(st.sampled_from([0.0, 1.0, -2.0, float("nan"), float("inf")]), max_size=30)


@given(LINES, st.integers(1, 6))
def test_a_sort_moves_no_more_than_it_says(line: list[float], ranks: int) -> None:
    sort = SampleSort("x", 8, even(len(line), ranks))
    array = np.array(line)
    assert sort.received_bytes(array) <= sort.most_bytes
    tiles = sort.simulate([array[lo:hi] for lo, hi in sort.parts])
    np.testing.assert_array_equal(np.concatenate(tiles), np.sort(array))
