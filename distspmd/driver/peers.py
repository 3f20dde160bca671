"""The processes of the ranks as the driver sees them: their start, their wires, and their end."""

from __future__ import annotations

import os
import pickle
import secrets
import select
import socket
import subprocess
import time
from contextlib import ExitStack, suppress

from distspmd.driver import serve
from distspmd.driver.launcher_output import Said
from distspmd.driver.wire import LostWire, Wire, accepted
from distspmd.errors import LaunchError
from distspmd.runtime.allocation import is_job
from distspmd.runtime.compilers.toolchain import find_mpi
from distspmd.runtime.launch import driver_ranks as driven
from distspmd.runtime.launch.mpiexec import Running, running

_PATIENCE = 10.0
"""Seconds for what a launcher says of a rank that died, and for ranks to end when they are told."""
_START = 300.0
"""Seconds for ranks to start."""
_OTHER_HOSTS = ("hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE")


class Peers:
    """Ranks that were launched, with a wire to each.

    Attributes:
        count: how many there are.
        wires: by rank; of many ranks, to the first ones.
        processes: of these, with their hosts.

    Raises:
        LaunchError: they cannot be launched.
        ToolchainError: there is no MPI.
    """

    def __init__(self, count: int, threads: int | None) -> None:
        self.count = count
        self.wires: dict[int, Wire] = {}
        self.processes: dict[int, tuple[int, str]] = {}
        self._stack = ExitStack()
        self._secret = secrets.token_bytes(32)
        self._said = Said()
        is_far = is_job() or any(part in name for name in os.environ for part in _OTHER_HOSTS)
        with ExitStack() as opened:
            listener = socket.create_server(("" if is_far else "127.0.0.1", 0), backlog=128)
            self._listener = opened.enter_context(listener)
            output = subprocess.PIPE if find_mpi().kind == "mpich" else None
            host = socket.gethostname() if is_far else "127.0.0.1"
            told = f"{host} {listener.getsockname()[1]} {self._secret.hex()}"
            begins = running(
                ["-m", "distspmd.driver.serve"],
                ranks=count,
                env={serve.VARIABLE: told, driven.VARIABLE: ""},
                threads=threads,
                files=(output, subprocess.PIPE),
                apart=True,
            )
            self._run: Running = opened.enter_context(begins)
            assert self._run.process.stderr is not None
            self._said.listen(self._run.process.stderr)
            if self._run.process.stdout is not None:
                self._said.listen_to_output(self._run.process.stdout)
            self._stack = opened.pop_all()

    def meet(self) -> Wire:
        """Wait until the ranks have started; the wire to the first one.

        Raises:
            LostWire: one of them ended.
            LaunchError: they do not start.
        """
        expected = min(self.count, serve.MOST_WIRES)
        end = time.monotonic() + _START
        while len(self.wires) < expected:
            if select.select([self._listener], [], [], 0.1)[0]:
                connection, _ = self._listener.accept()
                wire = accepted(connection, self._secret)
                if wire is not None:
                    rank, pid, host = pickle.loads(wire.receive())
                    self.wires[rank], self.processes[rank] = wire, (pid, host)
                continue
            self.look()
            if time.monotonic() > end:
                raise LaunchError(
                    f"{expected - len(self.wires)} of {self.count} ranks did not start within "
                    f"{_START:.0f} s."
                )
        return self.wires[0]

    def look(self) -> None:
        """See whether the ranks are there.

        Raises:
            LostWire: one of them is gone, or has told that it fails.
        """
        if self._run.process.poll() is not None:
            raise LostWire
        poll = select.poll()
        for rank, wire in self.wires.items():
            if rank:
                poll.register(wire.fileno(), select.POLLIN)
        if poll.poll(0):
            raise LostWire

    def last_words(self) -> bytes:
        """What a rank has told of its failure; nothing if none has."""
        for wire in self.wires.values():
            with suppress(LostWire):
                while wire.has_more(0):
                    told = wire.receive()
                    if told[:1] == serve.FAILED:
                        return told
        return b""

    def death(self) -> str:
        """Which rank died and how, as a sentence begins, once the launcher has ended."""
        gone = [rank for rank, wire in self.wires.items() if wire.is_lost]
        with suppress(subprocess.TimeoutExpired):
            self._run.process.wait(_PATIENCE)
        self._said.finish()
        if self._run.attendance.problem:
            return self._run.attendance.problem
        code = self._run.process.returncode
        lost = [
            *self._run.attendance.lost
        ]  # in order: MPI may end others before its launcher knows
        gone.sort(key=lambda rank: lost.index(rank) if rank in lost else len(lost))
        return self._said.death(self.processes, gone, code)

    def wait(self) -> None:
        """Wait until they have ended by themselves."""
        with suppress(subprocess.TimeoutExpired):
            self._run.process.wait(_PATIENCE)

    def end(self) -> None:
        """End what is left of them."""
        self._stack.close()
        self._said.finish()
        for wire in self.wires.values():
            wire.close()

    def leave_to_parent(self) -> None:
        """In a process that was forked: do not keep the ranks from hearing of the driver's end."""
        for wire in self.wires.values():
            wire.close()
        self._listener.close()
