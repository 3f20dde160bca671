"""A piece of work that one process of many does: locks in files, which end with their holder.

The kernel frees such a lock when its holder ends, however it ends. Where a file system has none,
or the holder takes too long, everybody does the work: what they make is the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 600.0
"""Seconds after which a process no longer waits for another, which may be stopped."""

_PAUSE = 0.02
_held: set[int] = set()


@contextlib.contextmanager
def locked(
    file: Path, patience: float = PATIENCE, go_on: Callable[[], bool] = lambda: True
) -> Iterator[bool]:
    """Hold the lock of a file, which is made for it and removed afterwards; whether it is held.

    Args:
        file: in a folder that is there.
        patience: seconds to wait for another holder.
        go_on: asked while waiting.
    """
    held = _wait(file, patience, go_on)
    try:
        yield held is not None
    finally:
        if held is not None:
            with contextlib.suppress(OSError):
                file.unlink()  # while it is held: who has opened it sees that it is gone
            release(held)


def _wait(file: Path, patience: float, go_on: Callable[[], bool]) -> int | None:
    end = time.monotonic() + patience
    while go_on():
        try:
            held = hold(file)
        except OSError:  # no locks on this file system, or no room
            return None
        if held is not None:
            return held
        if time.monotonic() > end:
            return None
        time.sleep(_PAUSE)
    return None


def hold(file: Path) -> int | None:
    """Hold a lock at once, to be given to :func:`release`; None if another process holds it.

    Raises:
        OSError: the file system has no locks, or the file cannot be made.
    """
    held = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_file(held, file):
            _held.add(held)
            return held
    except BlockingIOError:
        pass
    except BaseException:
        os.close(held)
        raise
    os.close(held)
    return None


def release(held: int) -> None:
    """Let others have a lock, unless this is a forked process, which does not hold it."""
    if held in _held:
        _held.discard(held)
        os.close(held)


def _is_file(held: int, file: Path) -> bool:
    """Whether a file is still the one that was opened: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(held), file.lstat())
    except FileNotFoundError:
        return False


def _leave_to_parent() -> None:
    """A forked process does not keep the locks of its parent, which may end before it."""
    for held in _held:
        os.close(held)
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
