"""Programs over more than 2^31 elements: indices have 64 bits where they need them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import dace
import pytest

from distspmd.codegen.device_maps import run_on_device
from distspmd.dace_compat.device_code import for_cuda
from distspmd.dace_compat.wide_indices import has_large_arrays, wide_indices

NEEDED = 14 * 2**30
"""Bytes: of the arguments, of the copies that two ranks hold, and of the program's results."""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_more_elements_than_an_int_counts(launch: Any, ranks: int) -> None:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < NEEDED:
        pytest.skip(f"{NEEDED >> 30} GB of free memory are needed, and {free >> 30} are there")
    program = Path(__file__).parents[1] / "ranks" / "large.py"
    assert "all right" in launch(program, ranks=ranks, timeout=900).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "transport"), [(1, "pulls"), (2, "pulls"), (2, "staged"), (2, "nccl")]
)
def test_more_elements_than_an_int_counts_lie_on_devices(
    launch: Any, monkeypatch: pytest.MonkeyPatch, ranks: int, transport: str
) -> None:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < 8 * 2**30:
        pytest.skip(f"8 GB of free memory are needed, and {free >> 30} are there")
    monkeypatch.setenv("DISTSPMD_DEVICE_TRANSPORT", transport)
    program = Path(__file__).parents[1] / "ranks" / "device_large.py"
    assert "right" in launch(program, ranks=ranks, timeout=1800).stdout


def code_of(rows: int) -> str:
    sdfg = dace.SDFG("rows")
    sdfg.add_array("x", [rows, 4096], dace.int8)
    state = sdfg.add_state()
    ends = {"i": f"0:{rows}", "j": "0:4096"}
    written = {"o": dace.Memlet("x[i, j]")}
    state.add_mapped_tasklet("one", ends, {}, "o = 1", written, external_edges=True)
    assert has_large_arrays(sdfg) == (rows * 4096 >= 2**31)
    with wide_indices(sdfg):
        return str(sdfg.generate_code()[0].clean_code)


def test_parameters_of_maps_are_as_wide_as_the_places_of_elements() -> None:
    assert "int64_t i = 0" in code_of(2**19)
    assert "int i = 0" in code_of(2**19 - 1)


def test_kernels_of_dace_have_threads_and_loops_as_wide_as_the_places_of_elements() -> None:
    sdfg = dace.SDFG("sums")
    for name, shape in (("x", [2**20, 4096]), ("y", [2**20])):
        sdfg.add_array(name, shape, dace.int8, dace.StorageType.GPU_Global)
    state = sdfg.add_state()
    ends = {"i": f"0:{2**20}", "j": "0:4096"}
    read, written = dace.Memlet("x[i, j]"), dace.Memlet("y[i]", wcr="lambda a, b: a + b")
    _, entry, _ = state.add_mapped_tasklet(
        "sum", ends, {"v": read}, "o = v", {"o": written}, external_edges=True
    )
    with for_cuda():
        assert run_on_device(state, entry) == ("j",)
        with wide_indices(sdfg):
            (code,) = (one.clean_code for one in sdfg.generate_code() if one.language == "cu")
    kernel = code.partition("__global__")[2].partition("DACE_EXPORTED")[0]
    for name in ("__element", "i", "j"):
        declared = re.findall(rf"\b(\w+) {name} =", kernel)
        assert declared, kernel
        assert set(declared) == {"int64_t"}, kernel
