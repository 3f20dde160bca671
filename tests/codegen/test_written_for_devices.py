"""Kernels that a program itself has, with blocks and threads, are partitioned as they stand."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import Launch
from mpi4py import MPI

import distspmd
from distspmd.errors import ScheduleError, UnsupportedProgram
from distspmd.execution.builds import build_for

WRITTEN = Path(__file__).parents[1] / "ranks" / "device_written.py"
SLOW = pytest.mark.slow


@pytest.fixture
def softmax(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(root / "examples")
    monkeypatch.setattr(sys, "argv", ["warp_softmax.py", "--small"])
    import warp_softmax

    return warp_softmax


def test_a_softmax_of_warps_is_cut_over_its_outer_dimensions(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(root / "examples" / "warp_softmax.py"), "--small"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a kernel as the program has it" in done.stdout
    assert "x: scatter, 12,288 bytes" in done.stdout, "three of four ranks get 16 rows of 64"


@pytest.mark.parametrize("ranks", range(1, 9))
def test_ranks_of_a_softmax_of_warps_exchange_their_rows_with_the_root_alone(
    softmax, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(softmax, "B", 7)
    lowering = distspmd.lower(softmax.warp_softmax(), {"y": {"b": ranks}})
    one = softmax.H * softmax.S * softmax.T * 4
    received = (7 - -(-7 // ranks)) * one  # the first rank, which is the root, has the largest tile
    moved = [(m.data, m.steps, m.solution.cost.nbytes) for m in lowering.memlets]
    between = [("x", "scatter", received), ("y", "gather", received)]
    assert moved == (between if ranks > 1 else [])


def test_the_host_has_no_such_kernel(softmax) -> None:
    with pytest.raises(UnsupportedProgram, match=r"'blocks' was written for GPUs.*device='cuda'"):
        build_for(softmax.lowered(), 4)


def test_such_a_kernel_is_not_cut_within_its_rows(softmax) -> None:
    sdfg = softmax.warp_softmax()
    assert [space.parameters for space in distspmd.iteration_spaces(sdfg)] == [("b", "h", "i")]
    with pytest.raises(ScheduleError, match="no parameter 'lane'"):
        distspmd.lower(sdfg, {"y": {"lane": 2}})


def _product(shared_by_edge: bool):
    """A product in which the threads of a block share a row of the first operand."""
    import dace
    from dace import Memlet
    from dace.dtypes import ScheduleType, StorageType

    sdfg = dace.SDFG("shared_row")
    for name, shape in {"a": [7, 32], "b": [32, 32], "c": [7, 32]}.items():
        sdfg.add_array(name, shape, dace.float32)
    sdfg.add_transient("row", [32], dace.float32, storage=StorageType.GPU_Shared)
    state = sdfg.add_state()
    blocks, end = state.add_map("blocks", {"i": "0:7"}, schedule=ScheduleType.GPU_Device)
    inner = {"schedule": ScheduleType.GPU_ThreadBlock}
    row = state.add_access("row")
    if shared_by_edge:
        state.add_memlet_path(state.add_read("a"), blocks, row, memlet=Memlet("a[i, 0:32]"))
    else:
        fill, filled = state.add_map("fill", {"k": "0:32"}, **inner)
        move = state.add_tasklet("move", {"x"}, {"y"}, "y = x")
        read, write = Memlet("a[i, k]"), Memlet("row[k]")
        state.add_memlet_path(state.add_read("a"), blocks, fill, move, dst_conn="x", memlet=read)
        state.add_memlet_path(move, filled, row, src_conn="y", memlet=write)
    threads, joined = state.add_map("threads", {"j": "0:32"}, **inner)
    code = "r = 0; for (int k = 0; k < 32; ++k) r += x[k] * y[32 * k];"
    sums = state.add_tasklet("sums", {"x", "y"}, {"r"}, code, language=dace.Language.CPP)
    state.add_memlet_path(row, threads, sums, dst_conn="x", memlet=Memlet("row[0:32]"))
    column = Memlet("b[0:32, j]")
    state.add_memlet_path(state.add_read("b"), blocks, threads, sums, dst_conn="y", memlet=column)
    out = Memlet("c[i, j]")
    state.add_memlet_path(sums, joined, end, state.add_write("c"), src_conn="r", memlet=out)
    return sdfg


def test_copies_to_what_threads_share_are_written_by_tasklets() -> None:
    sdfg = _product(shared_by_edge=True)
    sdfg = distspmd.lower(sdfg, {"c": {"i": 2}}).sdfg
    with pytest.raises(
        UnsupportedProgram, match=r"'blocks' copies whole parts of 'row'.*a tasklet"
    ):
        build_for(sdfg, 2, device="emulated")


def test_threads_share_what_tasklets_have_written() -> None:
    sdfg = _product(shared_by_edge=False)
    sdfg = distspmd.lower(sdfg, {}).sdfg
    rng = np.random.default_rng(0)
    given = {"a": rng.random((7, 32), np.float32), "b": rng.random((32, 32), np.float32)}
    found = np.zeros((7, 32), "f")
    with distspmd.compile(sdfg, MPI.COMM_WORLD, device="emulated") as program:
        program(**given, c=found)
    np.testing.assert_allclose(found, given["a"] @ given["b"], rtol=1e-5)


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=SLOW), pytest.param(2, marks=SLOW), 3])
def test_softmax_product_norm_and_transformed_programs_are_cut_unevenly(
    ranks: int, launch: Launch
) -> None:
    done = launch(WRITTEN, ranks=ranks)
    assert "all kernels that were written for devices are right" in done.stdout
