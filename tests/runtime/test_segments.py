"""Files in shared memory are removed when no process maps them, and those of a launch with it."""

from __future__ import annotations

import mmap
import os
import platform
import tempfile
from pathlib import Path

import pytest

from distspmd.runtime import segments
from distspmd.runtime.launch import launch
from distspmd.runtime.segments import remove_unused_segments

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
