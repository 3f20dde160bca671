"""What DaCe keeps between builds, in the user's cache: it has checksums, as DaCe does not look.

A damaged file of it (a compiled header, a recorded command) lets builds fail with any error. So
when a build fails, the files are compared with the checksums of builds that succeeded.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from distspmd.cache.folders import cache_folder

_SUMS = "sums.json"
"""The checksum of each file, by its name."""

_TICK = 20_000_000
"""Nanoseconds by which the times of files may lag behind the clock."""


def kept_by_dace() -> Path:
    """The folder of what DaCe keeps."""
    return cache_folder() / "dace"


def built_by_dace(build: Callable[[], object]) -> None:
    """Let DaCe build something; once more without what it keeps between builds, if that is damaged.

    An error of the build itself is raised at once, and what is kept stays.
    """
    began = time.time_ns()
    try:
        build()
    except Exception:  # DaCe has many ways to say that a file is damaged
        if not _is_damaged(began):
            raise
        shutil.rmtree(kept_by_dace(), ignore_errors=True)
        build()
    _remember(began)


def _is_damaged(began: int) -> bool:
    """Whether a file is not as a build left it that succeeded before a time, in nanoseconds."""
    known = _read()
    return any(
        changed < began - _TICK and known.get(name) != _checksum(file)
        for name, file, changed in _files()
    )


def _remember(began: int) -> None:
    """Keep the checksums of what was made since a time, in nanoseconds, beside those of before.

    A build may succeed beside a damaged file. Of what was made before, none is taken anew.
    """
    known, found = _read(), {}
    for name, file, changed in _files():
        if changed >= began - _TICK:
            found[name] = _checksum(file)
        elif name in known:
            found[name] = known[name]
    if found != known and kept_by_dace().is_dir():
        draft = kept_by_dace() / f"{_SUMS}.{os.getpid()}"
        draft.write_text(json.dumps(found))
        draft.replace(draft.with_suffix(""))


def _read() -> dict[str, Any]:
    try:
        known = json.loads((kept_by_dace() / _SUMS).read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _files() -> Iterator[tuple[str, Path, int]]:
    """Name, path and time of the last change of each file, but of the checksums."""
    folder = kept_by_dace()
    for file in sorted(folder.rglob("*")):
        try:
            status = file.stat()
        except OSError:  # it is renamed at this moment
            continue
        if file.is_file() and not (file.parent == folder and file.name.startswith(_SUMS)):
            yield str(file.relative_to(folder)), file, status.st_mtime_ns


def _checksum(file: Path) -> str:
    """The SHA-256 of a file; nothing of one that is gone."""
    found = hashlib.sha256()
    try:
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                found.update(block)
    except OSError:
        return ""
    return found.hexdigest()
