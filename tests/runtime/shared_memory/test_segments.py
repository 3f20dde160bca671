"""Files in shared memory are removed when no process maps them, and those of a launch with it."""

from __future__ import annotations

import mmap
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from distspmd.errors import LaunchError
from distspmd.runtime.compilers.toolchain import find_mpi
from distspmd.runtime.launch.mpiexec import launch
from distspmd.runtime.shared_memory import segments
from distspmd.runtime.shared_memory.segments import remove_unused_segments

HOST = platform.node().partition(".")[0]


def test_files_that_no_process_maps_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_ALL_PROCESSES", os.readlink("/proc/self/ns/pid"))
    own = f"{HOST}.{os.geteuid()}"
    names = {
        "unused": f"sm_segment.{own}.1230000.0",
        "older": f"vader_segment.{own}.77.1",
        "mapped": f"sm_segment.{own}.1230000.1",
        "young": f"sm_segment.{own}.1230000.2",
        "of another host": f"sm_segment.{HOST}x.{os.geteuid()}.1230000.0",
        "of another user": f"sm_segment.{HOST}.{os.geteuid() + 1}.1230000.0",
        "of something else": f"other.{own}.1230000.0",
    }
    for name in names.values():
        (tmp_path / name).write_bytes(b"\0" * 4096)
        if name != names["young"]:
            os.utime(tmp_path / name, (1, 1))
    with (tmp_path / names["mapped"]).open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        os.utime(tmp_path / names["mapped"], (1, 1))
        remove_unused_segments(tmp_path)
        left = {what for what, name in names.items() if (tmp_path / name).exists()}
    assert left == names.keys() - {"unused", "older"}


def test_nothing_is_removed_where_not_all_processes_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_ALL_PROCESSES", "pid:[1]")
    file = tmp_path / f"sm_segment.{HOST}.{os.geteuid()}.1230000.0"
    file.write_bytes(b"")
    os.utime(file, (1, 1))
    remove_unused_segments(tmp_path)
    assert file.exists()


def test_a_launch_is_not_hindered_by_what_a_killed_one_of_its_number_has_left(
    tmp_path: Path,
) -> None:
    program = tmp_path / "where.py"
    program.write_text("import os\nprint(os.environ.get('PMIX_SERVER_TMPDIR', ''))\n")
    done = launch([program], ranks=1, capture=True, timeout=120).check()
    folder = Path(done.stdout.strip() or "/nowhere")
    if done.stdout.strip():  # of Open MPI 5
        assert folder.parent != Path(tempfile.gettempdir())
    assert not folder.exists()


SMALL = """
mount -t tmpfs -o size=64m tmpfs /dev/shm
head -c 70000000 /dev/zero > /dev/shm/filler 2>/dev/null
exec "$@"
"""
"""A container as Docker makes it, whose shared memory is full."""


def cannot_mount() -> str:
    """Why there can be no such container here, if so."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "file systems are mounted by root alone"
    tried = subprocess.run([*APART, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this machine allows no namespaces"


APART = ("unshare", "--mount", "--propagation", "private")

MOVES = """
import numpy as np
from mpi4py import MPI
import distspmd
from distspmd.layouts import Layout, Mesh
from distspmd.runtime.watch.board import Board, job_key

comm = MPI.COMM_WORLD
mesh = Mesh(x=4)
rows, columns = Layout.parse("[2{x}8, 8]", mesh), Layout.parse("[8, 2{x}8]", mesh)
given = np.arange(64.0).reshape(8, 8)
tile = distspmd.runtime.allocate(comm, (2, 8), "float64")
tile[:] = given[2 * comm.rank : 2 * comm.rank + 2]
np.testing.assert_array_equal(
    distspmd.redistribute(comm, tile, rows, columns), given[:, 2 * comm.rank : 2 * comm.rank + 2]
)
comm.Barrier()
assert len(Board(job_key()).all()) == 4
print(f"right {comm.rank}\\n", end="")
"""


@pytest.mark.skipif(bool(cannot_mount()), reason=cannot_mount() or "it can be mounted")
def test_ranks_start_and_share_memory_where_dev_shm_is_full(tmp_path: Path) -> None:
    if find_mpi().kind != "openmpi":
        pytest.skip("MPICH chooses the place of its files itself")
    program = tmp_path / "moves.py"
    program.write_text(MOVES)
    command = [sys.executable, "-m", "distspmd", "run", program, "-n", "4"]
    done = subprocess.run(
        [*APART, "bash", "-c", SMALL, "bash", *command],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", *(f"right {rank}" for rank in range(4))]
    assert done.stderr.count("\n") == 1, done.stderr
    assert "/dev/shm has 0.0 MB left, and 4 rank(s) need about 36" in done.stderr
    assert f"their shared memory is in {tmp_path}/distspmd-" in done.stderr
    assert not [*tmp_path.glob("distspmd-*/work/*")]


def test_mpich_is_not_started_where_its_ranks_would_die_or_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(segments, "free_bytes", lambda folder=None: 3_000_000)
    mpi = find_mpi()
    with segments.placed_segments(replace(mpi, kind="mpich"), 2):
        pass
    with (
        pytest.raises(LaunchError, match=r"and mpich shares memory there alone: 4 rank\(s\) need"),
        segments.placed_segments(replace(mpi, kind="mpich"), 4),
    ):
        pass
    assert capsys.readouterr().err == ""
    with segments.placed_segments(replace(mpi, kind="intel"), 4):
        pass
    assert "intel shares memory there alone" in capsys.readouterr().err
