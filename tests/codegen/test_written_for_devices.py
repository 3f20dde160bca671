"""Kernels that a program itself has, with blocks and threads, are partitioned as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest

import distspmd
from distspmd.errors import ScheduleError, UnsupportedProgram
from distspmd.execution.program import build_for


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
