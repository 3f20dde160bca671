"""Folders for a moment: nothing stays of them, at the latest after the next start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from distspmd.cache import locks, scratch
from distspmd.cache.scratch import remove_leftovers, scratch_folder

KILLED = """
import os, signal, sys
from pathlib import Path
from distspmd.cache.scratch import scratch_folder

with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "file").write_text("")
    if len(sys.argv) > 2:
        print("ready", flush=True)
        sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def forget() -> None:
    remove_leftovers.cache_clear()


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "root") as one, scratch_folder(tmp_path / "root") as other:
        assert one != other
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "sub").mkdir()
        (one / "sub/file").write_text("")
    assert not [*(tmp_path / "root").iterdir()]


def test_leftovers_of_killed_processes_are_removed_and_those_of_living_ones_stay(
    tmp_path: Path,
) -> None:
    living = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), "waits"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert living.stdout is not None
    assert living.stdout.readline() == "ready\n"
    (theirs,) = (path for path in tmp_path.iterdir() if path.is_dir())
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -9
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2
    with scratch_folder(tmp_path):
        assert theirs.exists()
        assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2
    assert (theirs / "file").exists()
    living.communicate("")
    remove_leftovers.cache_clear()
    remove_leftovers(tmp_path)
    assert not [*tmp_path.iterdir()]


def test_folders_of_other_hosts_stay_for_a_day(tmp_path: Path) -> None:
    folder, lock = tmp_path / "other-0123", tmp_path / "other-0123.lock"
    folder.mkdir()
    lock.write_text("")
    remove_leftovers(tmp_path)
    assert folder.exists()
    for path in (folder, lock):
        os.utime(path, (1, 1))
    remove_leftovers.cache_clear()
    remove_leftovers(tmp_path)
    assert not [*tmp_path.iterdir()]


def test_locks_that_do_not_work_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(descriptor: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "flock", none)
    with locks.locked(tmp_path / "lock") as held:
        assert not held
    with scratch_folder(tmp_path / "root") as folder:
        remove_leftovers.cache_clear()
        remove_leftovers(tmp_path / "root")
        assert folder.exists()
    assert not [*(tmp_path / "root").iterdir()]


def test_a_forked_process_holds_no_lock(tmp_path: Path) -> None:
    program = f"""
import os, sys, time
from pathlib import Path
from distspmd.cache.locks import locked
with locked(Path({str(tmp_path / "lock")!r})) as held:
    assert held
    if os.fork() == 0:
        print("forked", flush=True)
        sys.stdin.read()
        os._exit(0)
    os._exit(0)  # as if it was killed
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "forked\n"
    assert parent.wait(60) == 0
    with locks.locked(tmp_path / "lock", patience=60) as held:
        assert held
    parent.communicate("")


def test_waiting_ends_when_it_is_no_longer_worth_it(tmp_path: Path) -> None:
    held = locks.hold(tmp_path / "lock")
    assert held is not None
    asked = iter([True, True, False])
    with locks.locked(tmp_path / "lock", go_on=lambda: next(asked)) as second:
        assert not second
    with locks.locked(tmp_path / "lock", patience=0) as third:
        assert not third
    locks.release(held)
    with locks.locked(tmp_path / "lock") as fourth:
        assert fourth
    assert not (tmp_path / "lock").exists()


def test_a_file_system_without_room_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File exists"), scratch_folder(Path("/dev/null")):
        pass
    assert scratch._host()
