"""Files of a launch: where its MPI makes them, and the removal of those that are left.

Open MPI gives its files names in ``/dev/shm``, and removes them when ranks end as they should.
Ranks that are killed leave them, and so does a process without a launcher.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from distspmd.cache.folders import SHARED, room_text, shared_place, temporary_root
from distspmd.cache.scratch import scratch_folder
from distspmd.errors import CacheError, LaunchError
from distspmd.runtime.compilers.toolchain import MPI

_SHARED = Path("/dev/shm")
_PARTS = ("btl_sm", "btl_vader", "osc_sm", "osc_rdma")
"""Components of Open MPI 4 and 5 that make files."""
_OF_LAUNCHER = "PRTE_MCA_prte_local_tmpdir_base"
"""Where the launcher of Open MPI 5 makes a folder with its process number as name. One that was
killed leaves it, and a later launcher with this number does not start beside it."""
_KINDS = ("sm_segment", "vader_segment")
_YOUNG = 60.0
"""Seconds in which a process may not yet have mapped the file that it has made."""
_ALL_PROCESSES = "pid:[4026531836]"
"""The first namespace of processes: in it all processes of the machine are seen."""


_OF_LAUNCH, _OF_RANK = 20e6, 4e6
"""Bytes: Open MPI makes no file where less room is left than for one of 17 MB; ranks fill about a
quarter of theirs."""

_OF_OTHER_RANK = 1.1e6
"""The same of MPICH."""


@contextmanager
def placed_segments(mpi: MPI, ranks: int) -> Iterator[dict[str, str]]:
    """Settings by which an MPI makes its files in a folder of one launch, which is removed then.

    If this process is killed, the next launch removes it. Where ``/dev/shm`` has no room for the
    ranks, as in containers, the folder is among temporary files, which is said.

    Raises:
        LaunchError: there is no room, and the MPI knows no other place.
    """
    with ExitStack() as stack:
        settings: dict[str, str] = {}
        if mpi.kind == "openmpi":
            with suppress(CacheError, OSError):  # somebody else has it, or there is no room
                if _SHARED.is_dir():
                    remove_unused_segments()
                root, told = _place(ranks)
                sys.stderr.write(told)
                folder = stack.enter_context(scratch_folder(root / "work"))
                settings = {f"OMPI_MCA_{part}_backing_directory": str(folder) for part in _PARTS}
                settings[_OF_LAUNCHER] = str(folder)
                if told:
                    settings[SHARED] = str(root.parent)
        elif free_bytes(_SHARED) < ranks * _OF_OTHER_RANK:
            told = (
                f"{room_text(_SHARED)}, and {mpi.kind} shares memory there alone: {ranks} rank(s) "
                f"need about {ranks * _OF_OTHER_RANK / 1e6:.0f}. (docker run --shm-size=1g makes "
                "room.)"
            )
            if mpi.kind == "mpich":  # its ranks die of SIGBUS, or wait for ever
                raise LaunchError(told)
            sys.stderr.write(f"distspmd: {told}\n")
        yield settings


def _place(ranks: int) -> tuple[Path, str]:
    """Where the shared memory of ranks lies, and what is to be said of it.

    Raises:
        CacheError: somebody else has the folder.
    """
    needed = _OF_LAUNCH + ranks * _OF_RANK
    if free_bytes(_SHARED) < needed:
        other = temporary_root()
        if free_bytes(other) >= needed:
            return other, (
                f"distspmd: {room_text(_SHARED)}, and {ranks} rank(s) need about {needed / 1e6:.0f}"
                f": their shared memory is in {other}, which may be slower. (docker run "
                "--shm-size=1g makes room.)\n"
            )
    return temporary_root(str(_SHARED)), ""


def free_bytes(folder: Path | None = None) -> int:
    """Bytes that shared memory has room for; without room, MPI ends or waits for ever.

    Args:
        folder: in which it is; that of this rank where left out.
    """
    try:
        held = os.statvfs(folder or shared_place())
    except OSError:
        return 0 if folder else sys.maxsize
    return held.f_bavail * held.f_frsize


def remove_unused_segments(folder: Path = _SHARED) -> None:
    """Remove the user's files of Open MPI that no process maps, of which all must be seen.

    Whoever has made one maps it as long as it lives, and only peers of a living process look for
    its file.
    """
    if os.readlink("/proc/self/ns/pid") != _ALL_PROCESSES:
        return
    start = tuple(f"{kind}.{platform.node().partition('.')[0]}.{os.geteuid()}." for kind in _KINDS)
    found = {}
    for entry in os.scandir(folder):
        if entry.name.startswith(start) and entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _YOUNG:
                found[entry.path] = status
    used = _mapped(f"{folder}/") if found else set()
    for path in found.keys() - used:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _mapped(start: str) -> set[str]:
    """Files, by the start of their names, that processes of this user map."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.stat().st_uid != os.geteuid():
                continue
            lines = (entry / "maps").read_text(errors="replace").splitlines()
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except PermissionError:  # a process with privileges, which is no rank
            continue
        found |= {line[line.index(start) :] for line in lines if start in line}
    return found
