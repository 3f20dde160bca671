"""What moves while a function is traced: a program would have one state of it at each call.

Such are generators of random numbers that are not torch's, iterators, and the clock, which are
refused with the line that asks them. A file that is read is an assumption of the program: each call
looks whether it is as it was.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import pickle
import random
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.outside_tensors import Outside
from distspmd.frontend.from_torch.run_time_numbers import Guards

_SAME = "a program would have what it got while it was traced, at each call"
_NOT_USERS = tuple(
    f"{Path(path)}{os.sep}"
    for path in (
        *(sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")),
        *(Path(torch.__file__).parent, Path(distspmd.__file__).parent),
    )
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_CODE = (".py", ".pyc", ".pyi", ".so", ".pth")
_OF_THE_SYSTEM = ("/proc/", "/sys/", "/dev/")
_ASKED = {"input": "builtins.input", "another process": "subprocess.Popen", "the network": "socket"}
"""What is asked for something, by the beginnings of names of Python's audit events."""


class Moved(UnsupportedProgram):
    """A generator of random numbers is not as it was before the function ran."""


class Watch:
    """Looks at what moves in the runs of a function.

    Args:
        outside: what the function can reach.

    Attributes:
        locates: whether it looks for the line in which a generator moves, which takes more time.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._generators: dict[str, Any] = {
            "Python's random numbers (random)": random,
            "NumPy's random numbers (np.random)": np.random,
            **{f"the generator {name!r}": value for name, value in outside.generators},
        }
        self.locates = False

    @contextlib.contextmanager
    def running(self, guards: Guards) -> Iterator[None]:
        """Refuse what moves in a run of the function; generators are then as before.

        Args:
            guards: gets what the program assumes of files.

        Raises:
            UnsupportedProgram: something moves.
        """
        before = self._states()
        with self._outside.asked(_refuse_next), _clocks(), _seeds(), _heard(guards):
            with self._lines(before) as line:
                yield
            for name, state in self._states().items():
                if state != before[name]:
                    self._put_back(name, before[name])
                    raise Moved(_told(name, line))

    def _states(self) -> dict[str, bytes]:
        return {name: pickle.dumps(_state(each)) for name, each in self._generators.items()}

    def _put_back(self, name: str, state: bytes) -> None:
        generator = self._generators[name]
        before = pickle.loads(state)
        if generator is np.random or isinstance(generator, np.random.RandomState):
            generator.set_state(before)
        elif isinstance(generator, np.random.Generator):
            generator.bit_generator.state = before
        else:
            generator.setstate(before)

    @contextlib.contextmanager
    def _lines(self, before: Mapping[str, bytes]) -> Iterator[list[str]]:
        """Let lines of the user be followed; gets the one after which a generator has moved."""
        found: list[str] = []
        last = [""]

        def each(frame: FrameType, event: str, _: Any) -> Any:
            if not found and last[0] and self._states() != before:
                found.append(last[0])
            last[0] = _place(frame)
            return each

        def called(frame: FrameType, event: str, _: Any) -> Any:
            return each if _is_users(frame.f_code.co_filename) else None

        earlier = sys.gettrace()
        if self.locates:
            sys.settrace(called)
        try:
            yield found
        finally:
            if self.locates:
                sys.settrace(earlier)
        if not found and last[0]:
            found.append(last[0])


def _told(name: str, line: Sequence[str]) -> str:
    where = f", in {line[0]}" if line else ""
    return (
        f"the function draws from {name}{where}; {_SAME}. Draw before the call, and pass a tensor, "
        "or draw with torch: torch.rand(...)."
    )


def _state(generator: Any) -> Any:
    if generator is np.random or isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate()


def _is_users(file: str) -> bool:
    if file.startswith("<"):
        return file.startswith(("<stdin>", "<ipython"))
    return not (file.startswith(_NOT_USERS) or any(part in file for part in _INSTALLED))


def _place(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    return f"{file.removeprefix(os.getcwd() + os.sep)}:{frame.f_lineno}"


def users_line() -> str:
    """The innermost line of the user's that runs; nothing while a module is imported."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            return ""
        if _is_users(file):
            return _place(frame)
        frame = frame.f_back
    return ""


def _refuse_next(name: str, advice: str) -> None:
    raise UnsupportedProgram(
        f"the function takes the next element of {name!r} in {users_line()}; {_SAME}. {advice}"
    )


class _Generator:
    """Stands for torch's generator of random numbers: no program has a state of it."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        if name in ("manual_seed", "seed"):
            raise UnsupportedProgram(
                f"the function sets the seed of torch's random numbers in {users_line()}. Random "
                "numbers of a program are functions of torch.initial_seed() and of the number of "
                "the call: set the seed before the first call."
            )
        return getattr(self._generator, name)


@contextlib.contextmanager
def _seeds() -> Iterator[None]:
    """Let nobody set a seed of torch."""
    module: Any = torch.random
    before = module.default_generator
    module.default_generator = _Generator(before)
    try:
        yield
    finally:
        module.default_generator = before


# -- the clock ----------------------------------------------------------------------------------

_OF_TIME = (
    *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"),
    *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
)


def _watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that the user's own lines may not call in the thread that traces."""
    thread = threading.get_ident()

    def call(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1)
        if threading.get_ident() == thread and _is_users(caller.f_code.co_filename):
            raise UnsupportedProgram(
                f"the function calls {name} in {_place(caller)}; {_SAME}. Call it outside of the "
                "function, and pass a tensor."
            )
        return function(*args, **kwargs)

    return call


def _dated(kind: type, names: Sequence[str]) -> type:
    watched = {
        name: staticmethod(_watched(f"datetime.{kind.__name__}.{name}", getattr(kind, name)))
        for name in names
    }
    return type(kind.__name__, (kind,), watched)


@contextlib.contextmanager
def _clocks() -> Iterator[None]:
    """Let no line of the user's read a clock, or random numbers of the system."""
    stands = {id(getattr(time, n)): _watched(f"time.{n}", getattr(time, n)) for n in _OF_TIME}
    stands[id(os.urandom)] = _watched("os.urandom", os.urandom)
    stands[id(datetime.datetime)] = _dated(datetime.datetime, ("now", "utcnow", "today"))
    stands[id(datetime.date)] = _dated(datetime.date, ("today",))
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    for module in [time, os, datetime, *_users_modules()]:
        held = vars(module)
        for name, value in list(held.items()):
            if id(value) in stands:
                replaced.append((held, name, value))
                held[name] = stands[id(value)]
    try:
        yield
    finally:
        for held, name, value in replaced:
            held[name] = value


def _users_modules() -> Iterator[Any]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        is_script = getattr(module, "__name__", "") == "__main__"
        if is_script or (isinstance(file, str) and _is_users(file)):
            yield module


# -- files --------------------------------------------------------------------------------------

_listening = threading.local()


@contextlib.contextmanager
def _heard(guards: Guards) -> Iterator[None]:
    """Let this thread's audit events be looked at."""
    _listen()
    _listening.guards = guards
    try:
        yield
    finally:
        _listening.guards = None


def _listen(started: list[bool] = []) -> None:  # noqa: B006 - Python keeps a hook for ever
    if not started:
        started.append(True)
        sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    guards = getattr(_listening, "guards", None)
    if guards is None:
        return
    if event == "open":
        path, mode, flags = arguments
        is_read = "r" in mode and "+" not in mode if mode else not flags & os.O_ACCMODE
        if is_read and isinstance(path, str | bytes | os.PathLike):
            _assume(os.path.abspath(os.fsdecode(path)), guards)
        return
    for name, start in _ASKED.items():
        if event.startswith(start) and (line := users_line()):
            raise UnsupportedProgram(
                f"the function asks {name} in {line}; {_SAME}. Ask outside of the function, and "
                "pass a tensor."
            )


def _assume(path: str, guards: Guards) -> None:
    """Assume that a file stays, unless it is a part of Python, a library or the system."""
    if path.endswith(_CODE) or path.startswith(_OF_THE_SYSTEM) or not _is_users(path):
        return
    line = users_line()
    before = _stamp(path)
    if line and before is not None:
        said = f"the file {path!r}, which {line} reads, is as it was"
        guards.append((said, lambda: _stamp(path) == before, True))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        known = os.stat(path)
    except OSError:
        return None
    return known.st_mtime_ns, known.st_size
