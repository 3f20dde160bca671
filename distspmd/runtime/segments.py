"""Files of a launch: where its MPI makes them, and the removal of those that are left.

Open MPI gives its files names in ``/dev/shm``, and removes them when ranks end as they should.
Ranks that are killed leave them, and so does a process without a launcher.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from distspmd.cache.folders import temporary_root
from distspmd.cache.scratch import scratch_folder
from distspmd.errors import CacheError
from distspmd.runtime.toolchain import MPI

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


@contextmanager
def placed_segments(mpi: MPI, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Settings by which an MPI makes its files in a folder of one launch, which is removed then.

    If this process is killed, the next launch removes it. Nothing is set where ranks may be on
    other machines.
    """
    with ExitStack() as stack:
        settings: dict[str, str] = {}
        if mpi.kind == "openmpi" and _SHARED.is_dir():
            with suppress(CacheError, OSError):  # somebody else has it, or there is no room
                remove_unused_segments()
                root = temporary_root(str(_SHARED)) / "work"
                folder = stack.enter_context(scratch_folder(root))
                settings = {f"OMPI_MCA_{part}_backing_directory": str(folder) for part in _PARTS}
                settings[_OF_LAUNCHER] = str(folder)
        yield settings


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
