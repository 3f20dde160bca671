"""Copies of boxes between storages: short runs, loops in another order, and what they cost."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counted import instructions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.engine.compile_runtime import FLAGS, INCLUDE

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[ctypes.CDLL, Path]:
    """The copies as a library, and as a program."""
    folder = tmp_path_factory.mktemp("copies")
    source = HERE / "strided_copies.cpp"
    command = [*find_compiler().command, *FLAGS, "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{HERE / 'without_mpi'}", f"-I{INCLUDE}", str(source), "-o"]
    subprocess.run([*command, str(folder / "copies.so"), "-shared"], check=True)
    subprocess.run([*command, str(folder / "copies")], check=True)
    return ctypes.CDLL(str(folder / "copies.so")), folder / "copies"


@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_boxes_are_copied_whatever_their_runs_and_orders(built: Any, data: Any) -> None:
    itemsize = data.draw(st.sampled_from((1, 2, 3, 4, 8, 12, 16, 24)))
    shape = data.draw(st.lists(st.sampled_from((1, 2, 3, 5, 8, 9, 17, 40)), min_size=1, max_size=4))
    sides = []
    for _ in range(2):
        order = data.draw(st.permutations(range(len(shape))))
        wider = data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape)))
        stored = np.zeros([shape[d] + wider[d] for d in order], f"V{itemsize}")
        sides.append(stored.transpose(np.argsort(order))[tuple(slice(n) for n in shape)])
    source, target = sides
    rng = np.random.default_rng(0)
    whole = source.base
    while whole.base is not None:
        whole = whole.base
    whole.view(np.uint8)[...] = rng.integers(0, 256, whole.view(np.uint8).shape, np.uint8)
    numbers = [np.array(shape, np.int64)]
    numbers += [np.array([s // itemsize for s in side.strides], np.int64) for side in sides]
    pointers = [ctypes.c_void_p(n.ctypes.data) for n in numbers]
    ends = [ctypes.c_void_p(side.__array_interface__["data"][0]) for side in sides]
    library, _ = built
    library.copy_box(ctypes.c_int64(len(shape)), *pointers, ctypes.c_int64(itemsize), *ends)
    assert target.tobytes() == source.tobytes()


@pytest.mark.parametrize("run", [4, 8, 16, 20, 32, 64, 160])
def test_a_short_run_costs_few_instructions(built: Any, run: int) -> None:
    _, program = built
    few, many = (instructions([program, str(run), str(times)]) for times in (10, 60))
    most = 16 + run / 3  # a loop around, and about five instructions for 16 bytes
    assert (many - few) / (50 * 64 * 16) < most
