"""The board of a node: what each rank of a job stands in, where the others of its node can read it.

The board is a folder in memory that belongs to the user alone, with a file for each rank, which is
replaced as a whole. Ranks find it without messages, so that it also tells of ranks that never make
a call: those of one launch know its mark, and those of one bare `mpiexec` the process from which
they all come.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from distspmd.cache.folders import shared_place, temporary_root
from distspmd.errors import CacheError
from distspmd.runtime.watch.rank_state import ranks_text

MARK = "DISTSPMD_LAUNCH"
"""The variable in which a launch gives its ranks a mark of its own."""

_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
"""Variables that tell a process its rank; the first that is set is the one of its launcher."""

_OLD = 600.0
"""Seconds after which a board without living ranks is removed."""


@dataclass(frozen=True, slots=True)
class Posted:
    """What a rank has put on the board.

    Attributes:
        pid, started: its process, and when that began.
        beat: how often the rank has written.
        text: what it does, as the end of a sentence that begins with the rank.
        ended: whether it has come to its end.
        busy: whether it works in a call, so that others wait for it rightly.
        counts: by the name of each communicator, to how many meetings the rank came.
        waits: the communicator, the meeting and the movement that it waits in, if it waits.
        members: the ranks of that communicator.
    """

    pid: int
    started: int
    beat: int
    text: str
    ended: bool = False
    busy: bool = False
    counts: Mapping[str, int] | None = None
    waits: tuple[str, int, int] | None = None
    members: tuple[int, ...] = ()

    @property
    def lives(self) -> bool:
        """Whether the process is still there."""
        return process(self.pid)[1] == self.started

    @property
    def stopped(self) -> bool:
        """Whether the process is stopped, by SIGSTOP or by a debugger."""
        return process(self.pid)[0] in ("T", "t")

    def told(self) -> str:
        """What the rank does, with what its process tells beyond that."""
        if self.ended:
            return "has ended"
        if not self.lives:
            return (
                f"is gone: its process {self.pid} does not exist any more; before, it {self.text}"
            )
        if self.stopped:
            return (
                f"is stopped (its process {self.pid} got SIGSTOP, or is in a debugger); {self.text}"
            )
        return self.text


def where(told: Mapping[int, str]) -> list[str]:
    """Where ranks stand, as lines, from what is told of each."""
    texts: dict[str, list[int]] = {}
    for rank, text in told.items():
        texts.setdefault(text, []).append(rank)
    return [f"  {ranks_text(ranks)}: {text}" for text, ranks in texts.items()]


class Board:
    """The board of the job with a key, on this node.

    Args:
        key: of :func:`job_key`.
        place: where shared memory is; that of this process where left out.

    Raises:
        CacheError: there is no place for it.
    """

    def __init__(self, key: str, place: Path | None = None) -> None:
        self.folder = boards_folder(place) / key

    def post(self, rank: int, posted: Posted) -> None:
        """Replace what a rank has on the board."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        new = self.folder / f".{rank}.{posted.pid}"
        new.write_text(json.dumps(asdict(posted)))
        new.replace(self.folder / str(rank))

    def read(self, rank: int) -> Posted | None:
        """What a rank has on the board, if it has anything."""
        try:
            held = json.loads((self.folder / str(rank)).read_bytes())
            if held["waits"] is not None:
                held["waits"] = tuple(held["waits"])
            return Posted(**{**held, "members": tuple(held["members"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def all(self) -> dict[int, Posted]:
        """What is on the board, by rank."""
        found = {rank: self.read(rank) for rank in self._ranks()}
        return {rank: posted for rank, posted in found.items() if posted is not None}

    def _ranks(self) -> list[int]:
        """The ranks that have something on the board, in order."""
        with suppress(OSError):
            return sorted(int(name) for name in os.listdir(self.folder) if name.isdigit())
        return []

    def told(self) -> dict[int, str]:
        """What each rank does now, by rank."""
        return {rank: posted.told() for rank, posted in self.all().items()}

    def is_first(self, word: str) -> bool:
        """Whether nobody has put a word on the board before; it is there from now on."""
        try:
            os.close(os.open(self.folder / word, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError:  # the board is gone: nobody else can tell
            return True
        return True

    def remove(self) -> None:
        """Take the board away."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove_if_all_ended(self, ranks: int = 0) -> None:
        """Take the board away if so many ranks have been on it and none is left.

        Each rank asks at its end, and looks no further than the first that is left.
        """
        found = 0
        for rank in reversed(self._ranks()):
            if (posted := self.read(rank)) is not None:
                if not posted.ended and posted.lives:
                    return
                found += 1
        if found >= ranks:
            self.remove()


def boards_folder(place: Path | None = None) -> Path:
    """A folder in memory that belongs to this user alone.

    Raises:
        CacheError: somebody else has it, or it cannot be made.
    """
    place = place or shared_place()
    shared = str(place) if os.access(place, os.W_OK) else None
    folder = temporary_root(shared) / "boards"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def stood(mark: str, place: Path) -> dict[int, str]:
    """What each rank of a launch does now, by rank, as far as its board tells; it is taken away."""
    with suppress(CacheError, OSError):
        board = Board(job_key(mark), place)
        told = board.told()
        board.remove()
        return told
    return {}


def remove_old_boards() -> None:
    """Take away the boards of jobs that are over, as those that were killed have left."""
    with suppress(CacheError, OSError):
        for folder in boards_folder().iterdir():
            if time.time() - folder.stat().st_mtime > _OLD:
                Board(folder.name).remove_if_all_ended()


def job_key(mark: str | None = None) -> str:
    """What the ranks of this job on this node have in common, and no other job.

    Args:
        mark: of the launch; that of this process where left out.
    """
    mark = mark or os.environ.get(MARK)
    if mark:
        return f"launch-{_WORDS.sub('_', mark)}-{_namespace()}"
    name = next((name for name in _RANK if name in os.environ), "")
    pid, above = os.getpid(), os.getppid()
    while name and _has(above, f"{name}={os.environ[name]}"):
        pid, above = above, parent(above)  # a shell or a profiler that runs the rank
    return f"process-{above if name else pid}-{process(above if name else pid)[1]}-{_namespace()}"


_WORDS = re.compile(r"\W")


def _namespace() -> int:
    """The number of what gives processes their numbers; containers have one of their own."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _has(pid: int, setting: str) -> bool:
    """Whether a process was started with a variable."""
    try:
        return f"\0{setting}\0".encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def process(pid: int) -> tuple[str, int]:
    """State of a process, and in which tick of the machine it began; ("", 0): it is gone."""
    fields = _fields(pid)
    return (fields[0], int(fields[19])) if len(fields) > 19 and fields[0] not in "ZX" else ("", 0)


def parent(pid: int) -> int:
    """The process that started another one."""
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat what comes after the name of the command."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
