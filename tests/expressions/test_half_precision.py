"""Conversions of numbers of 16 bits, in C++ and by NumPy: all of them, against torch."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distspmd.expressions.evaluation import evaluate
from distspmd.expressions.ir import Argument, apply
from distspmd.expressions.operations import FLOAT32, UINT16
from distspmd.runtime.compilers import toolchain
from distspmd.runtime.engine.compile_runtime import INCLUDE

HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
HEADER = INCLUDE / "distspmd" / "kernels" / "half_precision.hpp"
ALL = np.arange(2**16, dtype=np.uint16)


def singles() -> Any:
    """Numbers of all sizes, ties among them."""
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    exact = (ALL.astype(np.uint32) << 16).view(np.float32)
    ties = ((ALL.astype(np.uint32) << 16) | 0x8000).view(np.float32)
    halves = torch.from_numpy(ALL.copy()).view(torch.float16).float().numpy()
    between = np.nextafter(halves, np.float32(0)) / 2 + halves / 2
    sizes = [rng.normal(0, size, 50_000).astype(np.float32) for size in (1e-8, 1e-5, 1, 3e4)]
    return np.concatenate([anything, exact, ties, halves, between, *sizes])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("half_precision")
    lines = [HEADER.read_text()]
    for half in HALVES:
        for form, given, made in (("bits", "float", "uint16_t"), ("value", "uint16_t", "float")):
            name = f"{half}_{form}"
            lines.append(
                f'extern "C" void {name}(const {given} *a, {made} *b, int64_t n) {{\n'
                f"for (int64_t i = 0; i < n; ++i) b[i] = distspmd_{name}(a[i]);\n}}"
            )
    (folder / "f.cpp").write_text("\n".join(lines))
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC"]
    command = [*toolchain.find_compiler().command, *flags, "f.cpp", "-o", "f.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "f.so"))


def in_cpp(library: Any, name: str, given: Any, dtype: Any) -> Any:
    made = np.zeros(given.shape, dtype)
    given = np.ascontiguousarray(given)
    library[name](
        given.ctypes.data_as(ctypes.c_void_p),
        made.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(given.size),
    )
    return made


@pytest.mark.parametrize("half", HALVES)
def test_all_values_are_those_of_torch(half: str, compiled: Any) -> None:
    wanted = torch.from_numpy(ALL.copy()).view(HALVES[half]).float().numpy()
    meant = evaluate(apply(f"{half}_value", Argument("n", UINT16)), {"n": ALL})
    for found in (meant, in_cpp(compiled, f"{half}_value", ALL, np.float32)):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("half", HALVES)
def test_numbers_are_rounded_as_in_torch(half: str, compiled: Any) -> None:
    given = singles()
    wanted = torch.from_numpy(given).to(HALVES[half]).view(torch.uint16).numpy()
    meant = evaluate(apply(f"{half}_bits", Argument("a", FLOAT32)), {"a": given})
    is_number = ~np.isnan(given)
    for found in (meant, in_cpp(compiled, f"{half}_bits", given, np.uint16)):
        np.testing.assert_array_equal(found[is_number], wanted[is_number])
        nans = torch.from_numpy(found[~is_number].copy()).view(HALVES[half])
        assert bool(nans.isnan().all())
