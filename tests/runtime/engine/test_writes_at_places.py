"""Writes at places that data choose: what goes where, what moves, and the runtime on ranks."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.plans.scattered_write import ScatteredWrite
from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.engine.compile_runtime import INCLUDE

HERE = Path(__file__).parent
SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [4, *(pytest.param(n, marks=SLOW) for n in (1, 2, 3, 5, 6))])
def test_random_writes_are_those_of_numpy(launch: Any, tmp_path: Path, ranks: int) -> None:
    library = tmp_path / "writes.so"
    options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Werror", "-Wall", f"-I{INCLUDE}"]
    command = [*find_compiler().command, *options, HERE / "writes_at_places.cpp", "-o", library]
    subprocess.run(command, check=True)
    done = launch(HERE / "random_writes.py", str(library), "150", ranks=ranks)
    assert f"writes agree on {ranks} ranks" in done.stdout


def a_write(extent: int, parts: Any, boxes: Any) -> ScatteredWrite:
    return ScatteredWrite("y", 8, parts, picked=(0,), extents=(extent,), place_bytes=4, boxes=boxes)


def test_each_value_goes_once_to_the_owner_of_its_place() -> None:
    parts, boxes = ((0, 3), (3, 6), (6, 8)), (((0, 4),), ((4, 8),), ((8, 10),))
    write = a_write(10, parts, boxes)
    index = np.array([0, 5, 9, -10, 4, 4, 8, 9])
    assert write.received_bytes([index]) == (4 + 8) * 3
    assert write.received_bytes([index], places=False) == 8 * 3
    assert write.senders(1) == [0, 1, 2]
    assert write.expected_bytes == round((4 + 8) * (0.4 * 5 + 0.4 * 5 + 0.2 * 6))


def test_ranks_with_the_same_tile_take_turns_to_be_served() -> None:
    parts = ((0, 4), (4, 8)) * 2
    boxes = (((0, 4),), ((4, 8),)) * 2
    write = a_write(8, parts, boxes)
    assert [write.senders(rank) for rank in range(4)] == [[0, 1], [0, 1], [2, 3], [2, 3]]


def test_indices_that_all_ranks_have_do_not_move() -> None:
    write = a_write(8, ((0, 3), (0, 3)), (((0, 4),), ((4, 8),)))
    assert not write.is_split
    assert write.received_bytes([np.array([1, 2, 7])]) == write.expected_bytes == 0
