"""Messages between the driver and a rank over a socket; both know a secret before they talk."""

from __future__ import annotations

import hmac
import secrets
import select
import socket
from typing import Any

from distspmd.errors import LaunchError


class LostWire(Exception):
    """The other side is gone."""


_GONE = getattr(select, "POLLRDHUP", select.POLLHUP)
_LENGTH = 8
_WORD = 32
"""Bytes of what a side is asked, and of its answer."""


class Wire:
    """One end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection

    def fileno(self) -> int:
        """Its file, to wait for."""
        return self._socket.fileno()

    def send(self, content: bytes) -> None:
        """Send a message."""
        self.send_plain(len(content).to_bytes(_LENGTH, "little") + content)

    def send_plain(self, content: bytes) -> None:
        """Send bytes whose number the other side knows."""
        try:
            self._socket.sendall(content)
        except OSError:
            raise LostWire from None

    def receive(self) -> bytes:
        """The next message.

        Raises:
            LostWire: the other side is gone.
        """
        head = bytearray(_LENGTH)
        self.receive_into(head)
        content = bytearray(int.from_bytes(head, "little"))
        self.receive_into(content)
        return bytes(content)

    def receive_into(self, memory: Any) -> None:
        """Fill memory with what comes next.

        Raises:
            LostWire: the other side is gone.
        """
        view = memoryview(memory).cast("B")
        while view:
            try:
                count = self._socket.recv_into(view)
            except OSError:
                count = 0
            if not count:
                raise LostWire
            view = view[count:]

    def has_more(self, seconds: float) -> bool:
        """Whether something comes, or the end, within some time."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    @property
    def is_lost(self) -> bool:
        """Whether the other side is gone."""
        poll = select.poll()
        poll.register(self._socket, _GONE)
        return bool(poll.poll(0))

    def wait_for_end(self) -> None:
        """Wait until the other side is gone; what it has sent stays to be received."""
        poll = select.poll()
        poll.register(self._socket, _GONE)
        poll.poll()

    def close(self) -> None:
        """Be gone for the other side."""
        self._socket.close()


def accepted(connection: socket.socket, secret: bytes) -> Wire | None:
    """A connection that was accepted, if the other side knows the secret and hears that we do."""
    connection.settimeout(20.0)
    wire = Wire(connection)
    try:
        asked = secrets.token_bytes(_WORD)
        wire.send_plain(asked)
        told = bytearray(2 * _WORD)
        wire.receive_into(told)
        if not hmac.compare_digest(_answer(secret, b"rank", asked), bytes(told[:_WORD])):
            connection.close()
            return None
        wire.send_plain(_answer(secret, b"driver", bytes(told[_WORD:])))
    except (OSError, LostWire):
        connection.close()
        return None
    connection.settimeout(None)
    return wire


def connected(host: str, port: int, secret: bytes) -> Wire:
    """A connection to who listens there and knows the secret.

    Raises:
        LaunchError: nobody does.
    """
    try:
        connection = socket.create_connection((host, port), 60.0)
        wire = Wire(connection)
        asked, asking = bytearray(_WORD), secrets.token_bytes(_WORD)
        wire.receive_into(asked)
        wire.send_plain(_answer(secret, b"rank", bytes(asked)) + asking)
        told = bytearray(_WORD)
        wire.receive_into(told)
    except (OSError, LostWire) as problem:
        raise LaunchError(f"the driver at {host}:{port} does not answer: {problem}") from None
    if not hmac.compare_digest(_answer(secret, b"driver", asking), bytes(told)):
        raise LaunchError(f"who listens at {host}:{port} is not the driver of this rank.")
    connection.settimeout(None)
    return wire


def _answer(secret: bytes, side: bytes, asked: bytes) -> bytes:
    return hmac.digest(secret, side + asked, "sha256")
