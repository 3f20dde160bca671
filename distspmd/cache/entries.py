"""Entries of the cache: folders of files that were made once, each with the files' checksums.

An entry appears whole or not at all. One process makes it while others wait. One that is damaged,
whatever has happened to it, is made anew, with a warning: nothing is loaded that has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from distspmd.cache.folders import cache_folder, file_complaint, shared_caches
from distspmd.cache.locks import locked
from distspmd.cache.scratch import scratch_folder
from distspmd.errors import CacheError

CHECKSUMS = "SHA256SUMS"
"""The file of an entry with its checksums, as of the command ``sha256sum``, and its own."""

Make = Callable[[Path], Iterable[str]]
"""Makes the files of an entry in an empty folder; the names of those that are used."""

_BLOCK = 1 << 20


def ensure_entry(kind: str, key: str, make: Make, go_on: Callable[[], bool] = lambda: True) -> Path:
    """The folder of an entry, which is made if no whole one is there, here or in a shared cache.

    Args:
        kind: the folder of the cache in which it lies.
        key: of all that its files are made from.
        make: as :data:`Make`. Its folder is renamed afterwards; the one above it is for files that
            nobody needs then.
        go_on: whether to wait on, while another process makes it.

    Raises:
        CacheError: the cache cannot be used, or the entry cannot be written.
        Exception: what ``make`` raises.
    """
    if (found := find_entry(kind, key)) is not None:
        return found
    cache = cache_folder()
    folder = cache / kind / key
    with _named_errors(cache):
        (cache / "work").mkdir(mode=0o700, exist_ok=True)
        (cache / kind).mkdir(mode=_mode_of(cache), exist_ok=True)
    with locked(cache / "work" / f"{kind}-{key}.lock", go_on=go_on):
        if not _is_whole(folder, os.geteuid()):  # else another process has made it meanwhile
            _make(cache, folder, make)
    return folder


def find_entry(kind: str, key: str) -> Path | None:
    """The folder of a whole entry, here or in a shared cache; None if there is none.

    Raises:
        CacheError: the cache cannot be used.
    """
    places = [(cache_folder() / kind / key, os.geteuid())]
    places += [(shared / kind / key, shared.stat().st_uid) for shared in shared_caches()]
    whole = (place for place, owner in places if _is_whole(place, owner, warn=True))
    return next(whole, None)


def damage(folder: Path, owner: int) -> str | None:
    """What is wrong with an entry that somebody has; None if its files are those that were made.

    Raises:
        FileNotFoundError: there is no such entry.
    """
    if (wrong := file_complaint(folder.lstat(), owner)) is not None:
        return f"it {wrong}"
    try:
        text = (folder / CHECKSUMS).read_text()
        lines = text.splitlines(keepends=True)
        if not lines or lines.pop() != _own_line(lines):
            return f"{CHECKSUMS} is not what was written"
        for line in lines:
            expected, _, name = line.rstrip("\n").partition("  ")
            found, wrong = _examined(folder / name, owner)
            if wrong is not None or found != expected:
                return f"{name} {wrong or 'is not what was written'}"
    except (OSError, ValueError) as error:
        return str(error)
    return None


def _examined(file: Path, owner: int) -> tuple[str, str | None]:
    """The checksum of a file, and why it may be of somebody else."""
    checksum = hashlib.sha256()
    with file.open("rb") as content:
        wrong = file_complaint(os.fstat(content.fileno()), owner)
        while block := content.read(_BLOCK):
            checksum.update(block)
    return checksum.hexdigest(), wrong


def _own_line(lines: Iterable[str]) -> str:
    return f"# {hashlib.sha256(''.join(lines).encode()).hexdigest()}\n"


def _is_whole(folder: Path, owner: int, warn: bool = False) -> bool:
    try:
        wrong = damage(folder, owner)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        wrong = str(error)
    if wrong is not None and warn:
        warnings.warn(
            f"the entry {folder} of the cache is damaged: {wrong}. It is made again.",
            RuntimeWarning,
            stacklevel=3,
        )
    return wrong is None


def _make(cache: Path, folder: Path, make: Make) -> None:
    with contextlib.ExitStack() as stack:
        with _named_errors(cache):
            work = stack.enter_context(scratch_folder(cache / "work"))
            made = work / folder.name
            made.mkdir()
        names = sorted(make(made))
        with _named_errors(cache):
            lines = [f"{_examined(made / n, os.geteuid())[0]}  {n}\n" for n in names]
            (made / CHECKSUMS).write_text("".join([*lines, _own_line(lines)]))
            _let_read(made, _mode_of(cache))
            _put(made, folder, work / "damaged")


def _put(made: Path, folder: Path, aside: Path) -> None:
    """Give an entry its name, and take what had it away."""
    if os.path.lexists(folder):
        if not folder.is_symlink() and folder.is_dir():
            folder.chmod(0o700)
        folder.rename(aside)
    try:
        made.rename(folder)
    except OSError:
        if not _is_whole(folder, os.geteuid()):  # where there are no locks, another was faster
            raise


def _mode_of(cache: Path) -> int:
    """The mode of folders in a cache, into which nobody but its owner writes."""
    return stat.S_IMODE(cache.stat().st_mode) & 0o755 | 0o700


def _let_read(folder: Path, mode: int) -> None:
    """Let those read an entry who may read its cache."""
    folder.chmod(mode)
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(mode)
        elif path.is_file() and not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700 | mode & 0o044)


@contextlib.contextmanager
def _named_errors(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CacheError(
            f"the cache {cache} cannot be written: {error}. Make room, or set DISTSPMD_CACHE to a "
            "folder that you can write."
        ) from None
