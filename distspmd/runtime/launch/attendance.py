"""The attendance of a launch: which ranks have come, on which host, and which of them ended well.

The code of mpiexec does not tell: where a node is lost with all that runs on it, that of Open MPI 5
ends with 0. So each rank tells the launcher itself that it begins and that its program has come to
its end (start_rank.py). Whoever connects gets a number and signs its words with the secret of the
launch, which stands in the environment of the ranks alone. A connection that closes without the
last word tells which host was lost first; a rank that has told that it enters MPI_Init, and not
that it leaves it, waits there for others, and nothing of its own can say so.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from distspmd.runtime.watch.board import process
from distspmd.runtime.watch.rank_state import ranks_text

VARIABLE = "DISTSPMD_ATTENDANCE"
"""The variable that tells ranks where to report: the port, the secret, the host, its addresses."""

COMES, ENTERS, LEAVES, ENDS = "comes", "enters", "leaves", "ends"
BECOMES, FAILS = "becomes", "fails"
"""The words: of a rank that begins, enters MPI_Init and leaves it, ends; that becomes another
program, which tells nothing; and that fails, and has said so itself. start_rank.py knows them too,
and how they are signed."""

_INTERVAL = 0.5
_SURE = 3.0
"""Seconds after which a rank that ended before MPI_Init has not made mpiexec end all others."""
_NAMED = 4
"""So many ranks are named with their processes."""

_IMPORT_ALL = "All ranks import mpi4py.MPI, or none. (exec and os._exit end a rank.)"
_END_BY_EXIT = "Ranks end by sys.exit, not by os._exit; with another code than 0 if they failed."

_MOST_BYTES = 1024
_QUEUE = 4096


class Attendance:
    """What the ranks of a launch have told.

    Attributes:
        hosts: by rank, on which host it has begun.
        lost: ranks whose connections have closed before, in this order.
        problem: for which others the ranks waited in MPI_Init for too long, if they did.
        advice: what is to be said beside it.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.hosts: dict[int, str] = {}
        self.lost: list[int] = []
        self.problem = self.advice = ""
        self._processes: dict[int, int] = {}
        self._told: dict[str, set[int]] = {
            word: set() for word in (COMES, ENTERS, LEAVES, ENDS, FAILS)
        }
        self._limit, self._end = 0.0, _nothing
        self._waited = 0.0
        self._secret = secrets.token_hex(16)
        self._listening = _listener()
        self._ears = selectors.DefaultSelector()
        self._ears.register(self._listening, selectors.EVENT_READ)
        self._thread = threading.Thread(
            target=self._listen, name="distspmd-attendance", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """What ranks need to know; the value of :data:`VARIABLE`."""
        port = self._listening.getsockname()[1]
        return " ".join([str(port), self._secret, platform.node(), *own_addresses()])

    @property
    def ended(self) -> set[int]:
        """Ranks whose programs have come to their ends."""
        return self._told[ENDS]

    def watch(self, limit: float, end: Callable[[], None]) -> None:
        """Let something be called where ranks wait in MPI_Init for others that do not come.

        Args:
            limit: for how many seconds they may; 0: for ever.
            end: what then ends all ranks; :attr:`problem` says why.
        """
        self._limit, self._end = limit, end

    def missing(self) -> list[int]:
        """The ranks that did not come to their ends."""
        return [rank for rank in range(self.ranks) if rank not in self.ended]

    def lost_first(self) -> list[int]:
        """The missing ranks on the host that was lost before others, as far as that is known.

        A host that went down without a word leaves its connections open; the others are closed
        when mpiexec ends the ranks that are left.
        """
        missing = self.missing()
        open_yet = [rank for rank in missing if rank in self.hosts and rank not in self.lost]
        hosts = {self.hosts[rank] for rank in (open_yet or self.lost[:1])}
        return [rank for rank in missing if self.hosts.get(rank) in hosts]

    def text(self, ranks: Sequence[int]) -> str:
        """Ranks and their hosts in words."""
        by_host: dict[str, list[int]] = {}
        for rank in ranks:
            by_host.setdefault(self.hosts.get(rank, ""), []).append(rank)
        return " and ".join(
            f"{ranks_text(found)} on {host}" if host else f"{ranks_text(found)}, which never began"
            for host, found in by_host.items()
        )

    def blame(self, rank: int) -> None:
        """Say that all ranks are ended because one ended, where what has started them found that.

        Args:
            rank: that ended, before MPI_Init or before MPI_Finalize.
        """
        if rank in self._told[FAILS]:
            return
        waiting = sorted(self._told[ENTERS] - self._told[LEAVES] - self.ended - {rank})
        if rank in self._told[LEAVES] or not waiting:
            self.problem = f"{self._named([rank])} ended without MPI_Finalize"
            self.advice = _END_BY_EXIT
        else:
            self._tell_waiting(waiting, {"ended before": [rank]})
            self.advice = _IMPORT_ALL

    def close(self) -> None:
        """Listen no longer."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()

    def _listen(self) -> None:
        last = time.monotonic()
        with self._ears:
            while True:
                ready = self._ears.select(_INTERVAL if self._in_init else None)
                now = time.monotonic()
                self._look(min(now - last, 2 * _INTERVAL))  # who is suspended has not waited
                last = now
                for key, _ in ready:
                    speaker: _Speaker | None = key.data
                    if speaker is not None:
                        self._hear(speaker)
                        continue
                    try:
                        connection, _ = self._listening.accept()
                    except OSError:  # closed
                        return self._close_all()
                    self._greet(connection)

    # -- MPI_Init ------------------------------------------------------------------------------

    @property
    def _in_init(self) -> list[int]:
        """Ranks that wait in MPI_Init, as far as is known."""
        over = self._told[LEAVES] | self.ended | {*self.lost}
        return sorted(self._told[ENTERS] - over)

    def _look(self, passed: float) -> None:
        """End all ranks if some wait in MPI_Init for what does not come."""
        waiting = self._in_init
        self._waited = self._waited + passed if waiting else 0.0
        outside = [rank for rank in range(self.ranks) if rank not in self._told[ENTERS]]
        gone = [rank for rank in outside if rank in self.ended or rank in self.lost]
        if self.problem or not waiting:
            return
        if gone and self._waited > _SURE:
            states = {"ended before": gone}
            self.advice = _IMPORT_ALL
        elif 0 < self._limit < self._waited:
            states = self._states(outside or waiting)
            self.advice = (
                f"DISTSPMD_TIMEOUT is {self._limit:g}; set it to more seconds, or to 0 to wait for "
                "ever."
            )
        else:
            return
        self._tell_waiting(waiting, states)
        self._end()

    def _tell_waiting(self, waiting: Sequence[int], states: Mapping[str, Sequence[int]]) -> None:
        """Say for whom ranks wait in MPI_Init, and what those do."""
        others = " and ".join(f"{self._named(ranks)} {how}" for how, ranks in states.items())
        verb = "waits" if len(waiting) == 1 else "wait"
        self.problem = f"{ranks_text(waiting)} {verb} in MPI_Init, but {others}"

    def _states(self, ranks: Sequence[int]) -> dict[str, list[int]]:
        """What ranks do that others wait for, as ends of sentences."""
        found: dict[str, list[int]] = {}
        for rank in ranks:
            here = self.hosts.get(rank) == platform.node()
            state = process(self._processes[rank])[0] if here else ""
            if rank not in self.hosts:
                how = "never began"
            elif state in ("T", "t"):
                how = "got SIGSTOP, or is in a debugger"
            elif rank in self._told[ENTERS]:
                how = "came to it and does not leave it"
            else:
                how = "has not come to it"
            found.setdefault(how, []).append(rank)
        if len(found) > 1:  # those wait for the others
            found.pop("came to it and does not leave it", None)
        return found

    def _named(self, ranks: Sequence[int]) -> str:
        """Ranks with their processes and hosts."""
        found = [
            f"rank {rank} (process {self._processes[rank]} on {self.hosts[rank]})"
            if rank in self.hosts
            else f"rank {rank}"
            for rank in ranks[:_NAMED]
        ]
        more = len(ranks) - _NAMED
        return ", ".join(found) + (f" and {more} others, each" if more > 0 else "")

    def _close_all(self) -> None:
        for key in [*self._ears.get_map().values()]:
            key.fileobj.close()  # type: ignore[union-attr]  # all are sockets

    def _greet(self, connection: socket.socket) -> None:
        try:
            self._ears.register(connection, selectors.EVENT_READ, _Speaker(connection))
        except OSError:  # it is closed already
            connection.close()

    def _hear(self, speaker: _Speaker) -> None:
        """What has come over a connection: words, or its end."""
        try:
            words = speaker.words(self._secret)
            for what, rank, number, host in words:
                self.hosts[rank], self._processes[rank] = host, number
                for each in (ENTERS, LEAVES, ENDS) if what == BECOMES else (what,):
                    self._told[each].add(rank)
                speaker.connection.sendall(b"heard\n")
        except (OSError, ValueError):  # it is closed, or nobody of ours
            self._ears.unregister(speaker.connection)
            speaker.connection.close()
            if speaker.rank >= 0 and speaker.rank not in self.ended:
                self.lost.append(speaker.rank)


class _Speaker:
    """Who has connected; a rank, once its word is signed."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rank = -1
        self._number = secrets.token_hex(16)
        self._said = b""
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.sendall(f"{self._number}\n".encode())

    def words(self, secret: str) -> list[tuple[str, int, int, str]]:
        """The words that have come: what, which rank, its process, and its host.

        Raises:
            OSError: the connection is closed.
            ValueError: this is no rank of the launch.
        """
        told = self.connection.recv(_MOST_BYTES)
        if not told:
            raise ConnectionError
        self._said += told
        found = []
        while b"\n" in self._said:
            line, _, self._said = self._said.partition(b"\n")
            signature, _, word = line.decode().partition(" ")
            if not hmac.compare_digest(signature, signed(secret, f"{self._number} {word}")):
                raise ValueError
            what, rank, number, host = word.split(" ", 3)
            self.rank = int(rank)
            found.append((what, self.rank, int(number), host))
        if len(self._said) > _MOST_BYTES:
            raise ValueError
        return found


@contextmanager
def taken_attendance(ranks: int) -> Iterator[Attendance]:
    """The attendance of a launch, which is taken as long as ranks run."""
    attendance = Attendance(ranks)
    try:
        yield attendance
    finally:
        attendance.close()


def _nothing() -> None:
    """Nobody watches."""


def signed(secret: str, text: str) -> str:
    """The signature of a text."""
    return hashlib.blake2b(text.encode(), key=secret.encode(), digest_size=16).hexdigest()


def _listener() -> socket.socket:
    """A port that the hosts of all ranks may reach: launchers of MPI have one there, too."""
    if socket.has_dualstack_ipv6():
        with suppress(OSError):  # switched off
            return socket.create_server(
                ("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_QUEUE
            )
    return socket.create_server(("", 0), backlog=_QUEUE)


def own_addresses() -> list[str]:
    """Addresses of this host for others: those of its networks, and its name at last."""
    found = []
    with suppress(OSError):  # as the kernel lists its routes
        lines = Path("/proc/net/fib_trie").read_text().splitlines()
        for above, line in pairwise(lines):
            if "/32 host LOCAL" in line:
                found.append(above.split()[-1])
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            digits, _, _, scope = line.split()[:4]
            if scope == "00":  # it is known beyond its own cable
                found.append(":".join(digits[at : at + 4] for at in range(0, 32, 4)))
    return [*dict.fromkeys(a for a in found if not a.startswith("127.")), platform.node()]


_DRAWN = ("DISTSPMD_DRIVER", "DISTSPMD_LAUNCH", VARIABLE, "DISTSPMD_STARTED")
"""Variables that are drawn anew in each start, and decide nothing."""


def lasting_settings() -> dict[str, str]:
    """Our variables in the environment that may decide what is made, in order."""
    own = {k: v for k, v in sorted(os.environ.items()) if k.startswith("DISTSPMD_")}
    return {k: v for k, v in own.items() if "CACHE" not in k and k not in _DRAWN}
