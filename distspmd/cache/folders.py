"""Folders that belong to the user, into which nobody else can put anything.

What lies in them is compiled, loaded and run. So each is checked before it is used: its owner, its
mode, and every folder and link on the way to it.
"""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from distspmd.errors import CacheError

SHARED = "DISTSPMD_SHARED_MEMORY"
"""The variable that tells the ranks of a launch of a folder for shared memory that is not
``/dev/shm``."""

_PRIVATE = 0o700
_USERS = Path("/proc/self/uid_map")
_UNMAPPED = Path("/proc/sys/kernel/overflowuid")


def cache_folder() -> Path:
    """The folder of everything that is made once for a machine; it is made if it is not there.

    It is ``DISTSPMD_CACHE``, else ``distspmd`` in the user's cache, below ``XDG_CACHE_HOME`` or
    HOME. Where neither can be written it is in the user's temporary folder. A new one has the mode
    0700. One that ``DISTSPMD_CACHE`` names may let others read, but not write.

    Raises:
        CacheError: it cannot be made, belongs to somebody else, or others may write in it.
    """
    asked = os.environ.get("DISTSPMD_CACHE")
    if asked:
        folder = Path(os.path.expanduser(asked)).absolute()
        _make(folder, f"DISTSPMD_CACHE is {asked!r}, but it cannot be used")
        _refuse(own_complaint(folder), "Set DISTSPMD_CACHE to a folder of your own.")
        return folder
    for home in _homes():
        folder = home / "distspmd"
        try:
            _mkdir(folder)
        except OSError:  # no HOME, or one that cannot be written
            continue
        if not os.access(folder, os.W_OK | os.X_OK):
            continue
        _refuse(own_complaint(folder), "Set DISTSPMD_CACHE to a folder of your own.")
        _close(folder)
        return folder
    folder = temporary_root() / "cache"
    _make(folder, "there is no folder for compiled programs")
    return folder


def shared_caches() -> tuple[Path, ...]:
    """Folders of ``DISTSPMD_SHARED_CACHE`` that are there: caches of others, which are only read.

    Whoever names one trusts its owner.

    Raises:
        CacheError: others than its owner may write in it.
    """
    asked = os.environ.get("DISTSPMD_SHARED_CACHE", "")
    parts = [os.path.expanduser(part) for part in asked.split(os.pathsep) if part]
    found = tuple(Path(part).absolute() for part in parts if os.path.isdir(part))
    for folder in found:
        _refuse(
            _complaint(folder, folder.stat().st_uid),
            "Ask its owner for `chmod -R go-w`, or take it out of DISTSPMD_SHARED_CACHE.",
        )
    return found


def temporary_root(parent: str | None = None) -> Path:
    """The user's own folder below one that all may write, as a rule that for temporary files.

    Raises:
        CacheError: it cannot be made, or somebody else has made it.
    """
    folder = Path(parent or tempfile.gettempdir()).absolute() / f"distspmd-{os.geteuid()}"
    _make(folder, "there is no room for temporary files")
    _refuse(own_complaint(folder), "Remove it, or set TMPDIR to another folder.")
    _close(folder)
    return folder


def shared_place(environ: Mapping[str, str] = os.environ) -> Path:
    """Where files lie that are memory which processes share."""
    return Path(environ.get(SHARED) or "/dev/shm")


def room_text(folder: Path) -> str:
    """How much room there is in a folder, or in the one above it that is there; a clause."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        held = os.statvfs(folder)
    except OSError as problem:
        return f"{folder} cannot be used: {problem.strerror}"
    return f"{folder} has {held.f_bavail * held.f_frsize / 1e6:,.1f} MB left"


def own_complaint(folder: Path) -> str | None:
    """Why others could put something into a folder or take it away; None if only its user can."""
    return _complaint(folder, os.geteuid())


def file_complaint(status: os.stat_result, owner: int) -> str | None:
    """Why a file or folder may be of somebody else than its owner; None if it is not."""
    if status.st_uid != owner:
        return f"belongs to {_name(status.st_uid)}, not to {_name(owner)}"
    if not stat.S_ISLNK(status.st_mode) and status.st_mode & 0o022:
        return f"may be written by others (its mode is {status.st_mode & 0o7777:04o})"
    return None


def _complaint(folder: Path, owner: int) -> str | None:
    trusted = {owner, os.geteuid(), 0, *_outside()}
    last = Path("/")
    for last, status in _way(folder):
        if status.st_uid not in trusted:
            return f"{last} belongs to {_name(status.st_uid)}, who could replace {folder}"
        mode = status.st_mode
        if stat.S_ISDIR(mode) and mode & 0o002 and not mode & stat.S_ISVTX:
            return f"{last} may be written by everybody (its mode is {mode & 0o7777:04o})"
    if not last.is_dir():
        return f"{folder} is no folder"
    found = file_complaint(last.stat(), owner)
    return found and f"{folder} {found}"


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """All folders and links over which a path leads, and at last what it names."""
    at, rest = Path("/"), [*path.parts[1:]]
    yield at, at.lstat()
    while rest:
        step = at / rest.pop(0)
        if step.name == "..":
            at = at.parent
            continue
        status = step.lstat()
        yield step, status
        if not stat.S_ISLNK(status.st_mode):
            at = step
            continue
        target = Path(os.readlink(step))
        at = Path("/") if target.is_absolute() else at
        rest = [*(part for part in target.parts if part != "/"), *rest]


def _homes() -> Iterator[Path]:
    """Folders for caches of the user, that of the environment first."""
    if os.environ.get("XDG_CACHE_HOME"):
        yield Path(os.environ["XDG_CACHE_HOME"]).absolute()
    if os.environ.get("HOME"):
        yield Path(os.environ["HOME"]).absolute() / ".cache"
    else:
        try:
            yield Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache"
        except KeyError:  # a user without a name, as in some containers
            return


def _make(folder: Path, problem: str) -> None:
    try:
        _mkdir(folder)
    except OSError as error:
        raise CacheError(
            f"{problem}: {error}. Set DISTSPMD_CACHE (or TMPDIR, for temporary files) to a folder "
            "that you can write."
        ) from None


def _mkdir(folder: Path) -> None:
    """Make a folder and those above it, which nobody else can write whatever the umask is."""
    for missing in [*reversed([up for up in folder.parents if not up.exists()]), folder]:
        missing.mkdir(mode=_PRIVATE, exist_ok=True)


def _close(folder: Path) -> None:
    """Take from others the right to read a folder of ours, as earlier versions gave it."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        folder.chmod(mode & _PRIVATE)


def _refuse(complaint: str | None, advice: str) -> None:
    if complaint:
        raise CacheError(f"{complaint}: code of others could run as yours. {advice}")


def _name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"the user {number}"


def _outside() -> tuple[int, ...]:
    """In a container, whoever stands for the users of its host, above all for root."""
    try:
        if _USERS.read_text().split() == ["0", "0", "4294967295"]:
            return ()
        return (int(_UNMAPPED.read_text()),)
    except (OSError, ValueError):
        return ()
