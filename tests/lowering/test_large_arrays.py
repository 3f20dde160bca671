"""Programs over more than 2^31 elements: indices have 64 bits where they need them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dace
import pytest

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
