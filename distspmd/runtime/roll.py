"""The roll of a launch: which ranks have come, on which host, and which of them ended well.

The code of mpiexec does not tell: where a node is lost with all that runs on it, that of Open MPI 5
ends with 0. So each rank tells the launcher itself that it begins and that its program has come to
its end (start_rank.py). Whoever connects gets a number and signs its words with the secret of the
launch, which stands in the environment of the ranks alone. A connection that closes without the
last word tells which host was lost first.
"""

from __future__ import annotations

import hashlib
import hmac
import platform
import secrets
import selectors
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from distspmd.runtime.standing import ranks_text

VARIABLE = "DISTSPMD_ROLL"
"""The variable that tells ranks where to report: the port, the secret, the host, its addresses."""

COMES, ENDS = "comes", "ends"
"""The words; start_rank.py knows them too, and how they are signed."""

_MOST_BYTES = 1024
_QUEUE = 4096


class Roll:
    """What the ranks of a launch have told.

    Attributes:
        hosts: by rank, on which host it has begun.
        ended: ranks whose programs have come to their ends.
        lost: ranks whose connections have closed before, in this order.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.hosts: dict[int, str] = {}
        self.ended: set[int] = set()
        self.lost: list[int] = []
        self._secret = secrets.token_hex(16)
        self._listening = _listener()
        self._ears = selectors.DefaultSelector()
        self._ears.register(self._listening, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._listen, name="distspmd-roll", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """What ranks need to know; the value of :data:`VARIABLE`."""
        port = self._listening.getsockname()[1]
        return " ".join([str(port), self._secret, platform.node(), *own_addresses()])

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

    def close(self) -> None:
        """Listen no longer."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()

    def _listen(self) -> None:
        with self._ears:
            while True:
                for key, _ in self._ears.select():
                    speaker: _Speaker | None = key.data
                    if speaker is not None:
                        self._hear(speaker)
                        continue
                    try:
                        connection, _ = self._listening.accept()
                    except OSError:  # closed
                        return self._end()
                    self._greet(connection)

    def _end(self) -> None:
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
            for what, rank, host in words:
                self.hosts[rank] = host
                if what == ENDS:
                    self.ended.add(rank)
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

    def words(self, secret: str) -> list[tuple[str, int, str]]:
        """The words that have come: what, which rank, and its host.

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
            what, rank, host = word.split(" ", 2)
            self.rank = int(rank)
            found.append((what, self.rank, host))
            self.connection.sendall(b"heard\n")
        if len(self._said) > _MOST_BYTES:
            raise ValueError
        return found


@contextmanager
def called_roll(ranks: int) -> Iterator[Roll]:
    """A roll that is open as long as ranks run."""
    roll = Roll(ranks)
    try:
        yield roll
    finally:
        roll.close()


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
