"""Transforms of many lines at once, dense and with steps, beside NumPy."""

from __future__ import annotations

import ctypes
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counted import instructions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runtime.engine.test_sample_sorts import library_of

from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.engine.compile_runtime import FLAGS, INCLUDE

HERE = Path(__file__).parent
LENGTHS = (1, 2, 3, 4, 7, 8, 13, 16, 30, 61, 64, 74, 121, 128, 509, 4096, 6000, 8191, 8192)
"""Of small and of large factors, even and odd, and lines that are taken as matrices."""
SCALE = 0.25
MOST = 10.0
"""Instructions for each element and each doubling of a length, at most."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return ctypes.CDLL(
        library_of(HERE / "fourier_lines.cpp", tmp_path_factory.mktemp("transforms"))
    )


def called(library: ctypes.CDLL, kind: str, x: Any, out: Any, axis: int, inverse: bool) -> None:
    """Transform the lines of an array along a dimension into those of another."""
    have, n = x.shape[axis], out.shape[axis]
    if kind == "real":
        n = 2 * (n - 1) + have % 2 if have // 2 + 1 == n else 2 * (n - 1)
    steps = [[s // a.itemsize for s in a.strides] for a in (x, out)]
    others = [d for d in range(x.ndim) if d != axis]
    batch = [(x.shape[d], steps[0][d], steps[1][d]) for d in others]
    flat = np.array(batch or [(1, 0, 0)], np.int64)
    along = np.array([steps[0][axis], steps[1][axis]], np.int64)
    function = getattr(library, f"{kind}_{'float32' if x.real.itemsize == 4 else 'float64'}")
    whole, pointer = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = [whole, pointer, pointer, pointer, whole, pointer, whole]
    function.argtypes += [ctypes.c_bool, ctypes.c_double]
    function.restype = None
    first = (a.__array_interface__["data"][0] for a in (x, out))
    x_at, out_at = first
    function(len(flat), flat.ctypes.data, along.ctypes.data, x_at, have, out_at, n, inverse, SCALE)


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_lines_are_transformed_wherever_they_lie(library: ctypes.CDLL, data: Any) -> None:
    kind = data.draw(st.sampled_from(("complex", "widened", "real", "back")))
    real = data.draw(st.sampled_from((np.float32, np.float64)))
    n = data.draw(st.sampled_from(LENGTHS))
    rest = data.draw(st.lists(st.integers(0, 5 if n > 1000 else 19), min_size=0, max_size=2))
    axis, inverse = data.draw(st.integers(0, len(rest))), data.draw(st.booleans())
    have = n // 2 + 1 if kind == "back" else n
    if kind != "real":
        have = max(1, have + data.draw(st.sampled_from((0, 0, -1, 2))))
    wide = np.dtype(np.result_type(real, np.complex64))
    rng = np.random.default_rng(0)

    def array(length: int, dtype: Any, order: tuple[int, ...]) -> Any:
        shape = [*rest[:axis], length, *rest[axis:]]
        stored = np.zeros([shape[d] for d in order], dtype)
        return stored.transpose(np.argsort(order))

    orders = [tuple(data.draw(st.permutations(range(len(rest) + 1)))) for _ in range(2)]
    x = array(have, wide if kind in ("complex", "back") else real, orders[0])
    x[...] = rng.normal(size=x.shape)
    if x.dtype.kind == "c":
        x += (1j * rng.normal(size=x.shape)).astype(x.dtype)
    length = n // 2 + 1 if kind == "real" else n
    out = array(length, real if kind == "back" else wide, orders[1])
    called(library, kind, x, out, axis, inverse)
    exact = x.astype(complex if x.dtype.kind == "c" else float)
    wanted = {
        "complex": lambda: (
            np.fft.ifft(exact, n, axis) * n if inverse else np.fft.fft(exact, n, axis)
        ),
        "real": lambda: np.fft.rfft(exact, n, axis),
        "back": lambda: np.fft.irfft(exact, n, axis) * n,
    }["complex" if kind == "widened" else kind]() * SCALE
    unit = np.finfo(real).eps * max(1.0, np.abs(wanted).max(initial=0))
    assert np.abs(out - wanted).max(initial=0) < 20 * unit, (kind, real, n, rest, axis)


@pytest.mark.parametrize("kind", ["complex", "real", "back"])
def test_lines_of_no_elements_and_no_lines_are_nothing(library: ctypes.CDLL, kind: str) -> None:
    x, out = np.ones((3, 4), complex), np.ones((3, 4), complex)
    batch, steps = np.array([[3, 4, 4]]), np.array([1, 1])
    whole, at = ctypes.c_int64, ctypes.c_void_p
    for count, n in ((3, 0), (0, 4), (0, 0)):
        batch[0, 0] = count
        getattr(library, f"{kind}_float64")(
            *(whole(1), at(batch.ctypes.data), at(steps.ctypes.data), at(x.ctypes.data), whole(4)),
            *(at(out.ctypes.data), whole(n), ctypes.c_bool(False), ctypes.c_double(1.0)),
        )
    assert (out == 1).all()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("counted") / "transforms"
    command = [*find_compiler().command, *FLAGS, f"-I{INCLUDE}", HERE / "fourier_lines.cpp"]
    subprocess.run([*command, "-o", made], check=True)
    return made


@pytest.mark.parametrize("beside", [False, True])
def test_lines_side_by_side_share_their_instructions(program: Path, beside: bool) -> None:
    n = 512
    few, many = (instructions([program, str(n), str(t), str(int(beside))]) for t in (5, 25))
    each = (many - few) / (20 * 16 * n * math.log2(n))
    assert each < MOST  # of vectors of two doubles, which every processor of this kind has
