"""Products of packed blocks, for each width of vectors that the machine has, beside NumPy."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.engine.compile_runtime import INCLUDE

Loop: TypeAlias = tuple[int, ...]
"""An extent, and how far operands move."""

SETS = {"avx512f": ["-mavx512f", "-mavx512dq", "-mfma"], "avx2": ["-mavx2", "-mfma"], "": []}
"""Flags of the compiler, by what the processor needs for them."""


@pytest.fixture(scope="module", params=SETS, ids=lambda name: name or "baseline")
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    flags = Path("/proc/cpuinfo").read_text() if request.param else ""
    if request.param not in flags:
        pytest.skip(f"the processor has no {request.param}")
    made = tmp_path_factory.mktemp("packed") / "packed.so"
    command = [*find_compiler().command, "-std=c++17", "-O2", "-fopenmp", "-shared", "-fPIC"]
    command += ["-Wall", "-Wextra", "-Werror", *SETS[request.param], f"-I{INCLUDE}"]
    source = Path(__file__).with_name("packed_products.cpp")
    subprocess.run([*command, str(source), "-o", str(made)], check=True)
    return ctypes.CDLL(str(made))


def places(loops: Sequence[Loop], number: int) -> np.ndarray:
    """Where an operand is at all indices of loops, in order."""
    found = np.zeros(1, int)
    for extent, *steps in loops:
        found = (found[:, None] + np.arange(extent) * steps[number]).ravel()
    return found


def compare(
    library: Any, rows: Sequence[Loop], columns: Sequence[Loop], depth: Sequence[Loop],
    batch: Sequence[Loop], dtype: Any,
) -> None:  # fmt: skip
    """Multiply numbers whose sums are exact, and compare all of the result's memory."""
    rng = np.random.default_rng(0)
    at = [places(batch, n) for n in range(3)]
    a = at[0][:, None, None] + places(rows, 0)[:, None] + places(depth, 0)
    b = at[1][:, None, None] + places(depth, 1)[:, None] + places(columns, 0)
    c = at[2][:, None, None] + places(rows, 1)[:, None] + places(columns, 1)
    memories = [
        rng.integers(-9, 9, max(1, at.max(initial=-1) + 1)).astype(dtype) for at in (a, b, c)
    ]
    wanted = memories[2].copy()
    wanted[c] = memories[0][a] @ memories[1][b]
    runs = (rows, columns, depth, batch)
    numbers = np.array([n for run in runs for loop in run for n in loop] or [0], np.int64)
    counts, sizes = (np.array(list(map(len, which)), np.int64) for which in (runs, memories))
    name = "multiply_float" if dtype == np.float32 else "multiply_double"
    arguments = (numbers, counts, *memories, sizes)
    getattr(library, name)(*(array.ctypes.data_as(ctypes.c_void_p) for array in arguments))
    np.testing.assert_array_equal(memories[2], wanted)


@st.composite
def products(draw: st.DrawFn) -> list[list[Loop]]:
    """Loops of rows, columns, depth and a batch; elements of the result lie apart."""
    extents = [
        [draw(st.integers(1, most)) for most in draw(st.sampled_from(kinds))]
        for kinds in (
            [(40,), (5, 6), (3, 3, 3)],
            [(80,), (5, 9), (2, 3, 9)],
            [(40,), (6, 4), (500,), (2, 3, 3)],
            [(), (3,), (2, 2)],
        )
    ]
    kept = [(run, n) for run in (0, 1, 3) for n in range(len(extents[run]))]
    order = draw(st.permutations(kept))
    steps, step = {}, 1
    for run, n in order:
        steps[run, n] = step
        step *= extents[run][n] + draw(st.integers(0, 1))
    operand = st.sampled_from([0, 1, 1, 1, 2, 3, 7, 30])
    return [
        [
            (
                extent,
                *(draw(operand) for _ in range(2 if run > 1 else 1)),
                *((steps[run, n],) if run != 2 else ()),
            )
            for n, extent in enumerate(extents[run])
        ]
        for run in range(4)
    ]


@given(products(), st.sampled_from([np.float32, np.float64]))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_products_of_any_strides_are_those_of_numpy(
    library: Any, loops: list[list[Loop]], dtype: Any
) -> None:
    compare(library, *loops, dtype)


def test_an_empty_depth_gives_zeros(library: Any) -> None:
    compare(library, [(3, 1, 4)], [(4, 1, 1)], [(0, 1, 1)], [(2, 0, 0, 12)], np.float32)


@pytest.mark.parametrize("empty", range(4))
def test_of_an_empty_product_nothing_is_written(library: Any, empty: int) -> None:
    loops = [[(3, 1, 4)], [(4, 1, 1)], [(2, 1, 1)], [(2, 0, 0, 12)]]
    loops[empty] = [(0, *loops[empty][0][1:])]
    if empty != 2:
        compare(library, *loops, np.float64)


def test_windows_of_an_image_by_both_operands(library: Any) -> None:
    """Forward, as torch stores images and channels last; the gradient of the weights."""
    n, c, o, out, k = 2, 5, 31, 13, 3
    for stride, last in itertools.product((1, 2), (False, True)):
        size = (out - 1) * stride + k
        image, line, element, channel = (
            (c * size * size, size * c, c, 1) if last else (c * size * size, size, 1, size * size)
        )
        rows = [(o, c * k * k, 1 if last else out * out)]
        own = (o * out * out, out * o, o) if last else (o * out * out, out, 1)
        steps = (image, stride * line, stride * element)
        columns = list(zip((n, out, out), steps, own, strict=True))
        depth = [(c, k * k, channel), (k, k, line), (k, 1, element)]
        compare(library, rows, columns, depth, [], np.float32)
        weights = [(e, s, w) for e, w, s in depth]
        along = [(e, g, s) for e, s, g in columns]
        compare(library, [(o, rows[0][2], c * k * k)], weights, along, [], np.float64)
