"""Starts a program as ``python -m mpi4py`` does, and tells its launcher how far this rank is: that
it begins, enters MPI_Init and leaves it, and comes to its end.

A script finds modules beside it alone. That command would look where it was started, too, before
mpi4py is found; and in a folder that all may write anybody may have put a module there.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_SECONDS = (1.0, 10.0)
"""For an answer: an address that others do not reach may swallow what is sent to it."""


class _Line:
    """The connection to the launcher (attendance.py), which is made again where it was cut."""

    def __init__(self) -> None:
        self._connection: Any = None
        self.is_listened_to = "DISTSPMD_ATTENDANCE" in os.environ

    def tell(self, what: str) -> bool:
        """Tell how far this rank is, in a word of attendance.py; whether that was heard."""
        if not self.is_listened_to:
            return False
        if self._connection is not None and self._say(what):
            return True
        return any(
            self._call(address, seconds) and self._say(what)
            for seconds in _SECONDS
            for address in _addresses()
        )

    def _call(self, address: str, seconds: float) -> bool:
        import socket

        port = os.environ["DISTSPMD_ATTENDANCE"].partition(" ")[0]
        try:
            self._connection = socket.create_connection((address, int(port)), seconds)
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._number = self._heard()
        except OSError:
            return False
        return bool(self._number)

    def _say(self, what: str) -> bool:
        from hashlib import blake2b

        secret = os.environ["DISTSPMD_ATTENDANCE"].split(" ")[1]
        names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK")
        rank = next((os.environ[name] for name in names if name in os.environ), "0")
        word = f"{what} {rank} {os.getpid()} {os.uname().nodename}"
        signature = blake2b(f"{self._number} {word}".encode(), key=secret.encode(), digest_size=16)
        try:
            self._connection.sendall(f"{signature.hexdigest()} {word}\n".encode())
            return bool(self._heard())
        except OSError:
            return False

    def _heard(self) -> str:
        """A line; empty if the connection was closed."""
        found = b""
        while not found.endswith(b"\n"):
            more = self._connection.recv(64)
            if not more:
                return ""
            found += more
        return found.decode().strip()


class _Finder:
    """Finds mpi4py.MPI as others do, and tells when its import, which is MPI_Init, begins and ends.

    Where one rank does not come to it, all others wait there, and nothing of theirs runs.
    """

    def __init__(self, line: _Line) -> None:
        self._line, self._process = line, os.getpid()

    def find_spec(self, name: str, *_: object) -> Any:
        if name != "mpi4py.MPI":
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None and os.getpid() == self._process:
            begin = spec.loader.exec_module

            def run(module: Any) -> None:
                self._line.tell("enters")
                begin(module)
                self._line.tell("leaves")

            spec.loader.exec_module = run  # type: ignore[method-assign]
        return spec


def _addresses() -> list[str]:
    """Where the launcher may be reached."""
    _, _, host, *addresses = os.environ["DISTSPMD_ATTENDANCE"].split(" ")
    return ["127.0.0.1"] * (os.uname().nodename == host) + addresses


def _refuse() -> None:
    """End this rank: its launcher does not hear it."""
    port, _, *hosts = os.environ["DISTSPMD_ATTENDANCE"].split(" ")
    sys.exit(
        f"distspmd: a rank on {os.uname().nodename} cannot reach port {port} of what launched it, "
        f"on {', '.join(hosts)}; the loss of its host would go unnoticed. Let this port through, "
        "or start the program with mpiexec or srun."
    )


def _run(program: str) -> None:
    """Run the program that the arguments name."""
    import atexit

    del sys.path[0]  # the folder of this file, whose modules nobody means
    from mpi4py.run import main

    ended: list[bool] = []
    line = _Line()
    if line.is_listened_to:
        process = os.getpid()
        if not line.tell("comes"):
            _refuse()
        # What is entered first is done last.
        atexit.register(lambda: ended and os.getpid() == process and line.tell("ends"))

        def leave(event: str, _: object) -> None:
            if event == "os.exec" and os.getpid() == process:
                line.tell("becomes")  # another program takes the place of this one

        sys.addaudithook(leave)
        sys.meta_path.insert(0, _Finder(line))
    if program.startswith("-"):
        own = "" if program == "-c" else os.getcwd()
    else:
        own = program.rpartition("/")[0] or "."
    sys.path.insert(0, own)
    try:
        main()
    except SystemExit as end:
        if not end.code:
            ended.append(True)
        else:
            line.tell("fails")
        raise
    except Exception:  # whatever the user's program raises
        line.tell("fails")
        from distspmd.runtime.watch.errors_together import end_all_on_exception

        end_all_on_exception()  # where the program has failed before it imported anything
        raise
    ended.append(True)


if __name__ == "__main__":
    _run(sys.argv[1])
