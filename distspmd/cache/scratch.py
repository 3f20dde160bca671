"""Folders for a moment, which are removed when they are no longer needed.

A process that is killed removes nothing. The next one does: a lock says whether a folder's process
lives. Of other hosts, whose locks may not be seen, folders are left for a day.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from distspmd.cache import locks
from distspmd.cache.folders import temporary_root

_LOCK = ".lock"
_DAY = 86_400.0


@contextlib.contextmanager
def scratch_folder(root: Path | None = None) -> Iterator[Path]:
    """A folder of this process alone, in the user's temporary folder or below another of theirs.

    Raises:
        CacheError: the temporary folder cannot be made, or somebody else has made it.
        OSError: there is no room.
    """
    root = root or temporary_root() / "work"
    root.mkdir(mode=0o700, exist_ok=True)
    remove_leftovers(root)
    held, folder = _new(root)
    process = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == process:  # not forked meanwhile
            _remove(folder, held)


def _remove(folder: Path, held: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        Path(f"{folder}{_LOCK}").unlink()
    if held is not None:
        locks.release(held)


def _new(root: Path) -> tuple[int | None, Path]:
    while True:
        folder = root / f"{_host()}-{secrets.token_hex(8)}"
        held = None
        try:
            held = locks.hold(Path(f"{folder}{_LOCK}"))
            if held is None:  # a cleaner was faster
                continue
        except OSError:
            if not root.is_dir() or not os.access(root, os.W_OK):
                raise
            # a file system without locks
        folder.mkdir(mode=0o700)
        return held, folder


@functools.cache
def remove_leftovers(root: Path) -> None:
    """Remove folders whose processes were killed; once in a process."""
    with contextlib.suppress(OSError):
        for name in {entry.name.removesuffix(_LOCK) for entry in os.scandir(root)}:
            with contextlib.suppress(OSError):
                _remove_unless_used(root / name)


def _remove_unless_used(folder: Path) -> None:
    lock = Path(f"{folder}{_LOCK}")
    held: int | None = None
    is_ours = folder.name.rpartition("-")[0] == _host()
    try:
        held = locks.hold(lock) if is_ours else None
        if is_ours and held is None:
            return
    except OSError:  # a file system without locks
        is_ours = False
    if is_ours or time.time() - _changed(folder, lock) > _DAY:
        _remove(folder, held)


def _changed(*paths: Path) -> float:
    return max((path.lstat().st_mtime for path in paths if path.exists()), default=time.time())


@functools.cache
def _host() -> str:
    return platform.node().partition(".")[0] or "unnamed"
