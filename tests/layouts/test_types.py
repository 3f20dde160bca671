"""Types are named as NumPy names them, and as ml_dtypes does where it is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import Launch

import distspmd

BY_NAME = """
import sys
import distspmd

mesh = distspmd.layouts.Mesh(x=4)
rows, whole = (distspmd.layouts.Layout.parse(text, mesh) for text in ("[3{x}12]", "[12]"))
plan = distspmd.plan(rows, whole, "bfloat16")
assert (str(plan.redistribution.dtype), plan.received(0)) == ("bfloat16", 18)
assert distspmd.plan(rows, whole, "float8_e4m3fn").received(0) == 9
summed = distspmd.layouts.Layout.parse("[12] + partial(sum){x}", mesh)
try:
    distspmd.plan(summed, whole, "bfloat16")
except distspmd.errors.LayoutError as error:
    assert "no sum of bfloat16 values" in str(error)
else:
    raise AssertionError("it was taken")
"""
HIDDEN = """
import sys
sys.modules["ml_dtypes"] = None
import distspmd

layout = distspmd.layouts.Layout.parse("[12]", distspmd.layouts.Mesh(x=4))
try:
    distspmd.plan(layout, layout, "bfloat16")
except distspmd.errors.LayoutError as error:
    assert "no dtype 'bfloat16'" in str(error) and "ml_dtypes" in str(error), error
else:
    raise AssertionError("it was taken")
"""
ON_RANKS = """
import distspmd
from mpi4py.MPI import COMM_WORLD as comm

mesh = distspmd.layouts.Mesh(x=comm.size)
root, rows = distspmd.layouts.Layout.root((11,)), distspmd.layouts.Layout.parse(f"[6{{x}}11]", mesh)
tile = None
if comm.rank == 0:
    import ml_dtypes, numpy as np
    tile = np.arange(11).astype(ml_dtypes.bfloat16)
found = distspmd.redistribute(comm, tile, root, rows, dtype="bfloat16")
assert (found.dtype.name, found.nbytes) == ("bfloat16", 2 * len(found))
assert [*found.astype(float)] == [*range(11)][6 * comm.rank:][:6]
zeros = distspmd.runtime.allocate(comm, 3, "bfloat16")
assert zeros.dtype.name == "bfloat16" and not zeros.any()
if comm.rank == 0:
    print("bytes arrived")
"""


@pytest.mark.parametrize("code", [BY_NAME, HIDDEN])
def test_a_plan_takes_types_of_ml_dtypes_by_name_or_says_that_it_is_missing(code: str) -> None:
    if code is BY_NAME:
        pytest.importorskip("ml_dtypes")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_no_type_is_refused_as_before() -> None:
    layout = distspmd.layouts.Layout.parse("[12]", distspmd.layouts.Mesh(x=4))
    with pytest.raises(distspmd.errors.LayoutError, match="no dtype 'float31'"):
        distspmd.plan(layout, layout, "float31")


def test_ranks_redistribute_bfloat16_by_name(launch: Launch) -> None:
    pytest.importorskip("ml_dtypes")
    assert "bytes arrived" in launch(ON_RANKS, ranks=2, timeout=120).stdout
