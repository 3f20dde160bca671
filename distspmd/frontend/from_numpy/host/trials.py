"""One run of a function by CPython, up to a region, for the types of what it gives.

It gets copies of the arguments. What it prints is not seen, and generators of random numbers are
as they were afterwards. A write to a file, or whatever else another run would do again, ends it.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import linecache
import random
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType, GeneratorType
from typing import Any

import numpy as np

_WRITES = set("wax+")
_EFFECTS = (
    *("os.", "shutil.", "subprocess.", "socket.", "builtins.input", "ftplib.", "smtplib."),
    *("sqlite3.", "urllib.", "http.", "webbrowser.", "pty.", "signal.", "syslog."),
)
_NO_EFFECTS = {"os.listdir", "os.scandir", "os.walk", "os.fwalk", "socket.__new__", "os.getxattr"}


class HasEffects(BaseException):
    """The run would do something that another run does again."""


class CallFails(Exception):
    """The call ends with an error that the program itself raises.

    Attributes:
        error: it.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def is_said(error: Exception) -> bool:
    """Whether a statement of the user's raises an error, or a key is missing; not a library."""
    if isinstance(error, KeyError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return line.strip().startswith("raise")


class _Done(BaseException):
    """All is known."""


@dataclass
class Wanted:
    """What a run has to show of a region.

    Attributes:
        file: of the function.
        name: of the function.
        first, last: lines of the region.
        variables: whose values are asked for.
        returned: the name under which to keep what the function returns there; empty for none.
        parts: expressions by the names under which to keep their values.
        found: values, by variable.
    """

    file: str
    name: str
    first: int
    last: int
    variables: Sequence[str]
    returned: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def is_found(self) -> bool:
        """Whether all values are known."""
        asked = {*self.variables, *self.parts, *([self.returned] if self.returned else [])}
        return asked <= self.found.keys()

    def is_in(self, code: CodeType) -> bool:
        """Whether a code is that of the function."""
        return (
            code.co_filename == self.file
            and code.co_name == self.name
            and any(line is not None and line >= self.first for *_, line in code.co_lines())
            and code.co_firstlineno <= self.first
        )


def show(function: Callable[..., Any], given: Mapping[str, Any], wanted: Wanted) -> None:
    """Run a function until a region of it has shown what it gives.

    Args:
        function: with the arguments by name, which are copied.
        given: arguments.
        wanted: gets the values; some may be missing if no statement binds them.

    Raises:
        HasEffects: the run would do something that another run does again.
        Exception: what the function raises.
    """
    arguments = copy.deepcopy(dict(given))
    before = sys.gettrace()
    bound = inspect.BoundArguments(inspect.signature(function), OrderedDict(arguments))
    with _as_before(function), _watched(), contextlib.suppress(_Done):
        sys.settrace(_tracer(wanted))
        try:
            _called(function, bound)
        finally:
            sys.settrace(before)


def _called(function: Callable[..., Any], bound: inspect.BoundArguments) -> None:
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        function(*bound.args, **bound.kwargs)


def _tracer(wanted: Wanted) -> Callable[..., Any]:
    def of_calls(frame: FrameType, event: str, value: object) -> Any:
        return _Lines(wanted) if wanted.is_in(frame.f_code) else None

    return of_calls


class _Lines:
    """Looks at the lines of one call."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted, self.is_inside, self.fails = wanted, False, False

    def __call__(self, frame: FrameType, event: str, value: object) -> Any:
        wanted = self.wanted
        if event == "exception":
            self.fails = True
        elif event == "line":
            self.fails = False
            was, self.is_inside = self.is_inside, wanted.first <= frame.f_lineno <= wanted.last
            if was and not self.is_inside:
                self._take(frame)
        elif event == "return" and self.is_inside and not self.fails:
            if wanted.returned:
                wanted.found.setdefault(wanted.returned, _copied(value, copy.deepcopy))
            self._take(frame)
        return self

    def _take(self, frame: FrameType) -> None:
        for name in self.wanted.variables:
            if name in frame.f_locals:
                self.wanted.found.setdefault(name, _copied(frame.f_locals[name], copy.copy))
        for name, text in self.wanted.parts.items():
            if name not in self.wanted.found:
                with contextlib.suppress(Exception):  # whatever its objects raise after the region
                    self.wanted.found[name] = _value_of(text, frame)
        if self.wanted.is_found:
            raise _Done


def _copied(value: object, copier: Callable[[Any], Any]) -> Any:
    """A copy of a value, or of what cannot be copied some object: it is none of array work."""
    try:
        return copier(value)
    except Exception:  # an object of the user may raise anything
        return object()


def _value_of(text: str, frame: FrameType) -> Any:
    """What an expression gives of copies of the variables that it names; generators have none."""
    code = compile(text, "<part>", "eval")
    named = {name: frame.f_locals[name] for name in code.co_names if name in frame.f_locals}
    generators = {name: v for name, v in named.items() if isinstance(v, GeneratorType)}
    others = {name: v for name, v in named.items() if name not in generators}
    return eval(code, frame.f_globals, {**copy.deepcopy(others), **generators})


# -- effects --------------------------------------------------------------------------------------

_is_watching = False
_is_hooked = False


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    """End what would have effects; an audit hook stays for good, and is idle outside of this."""
    global _is_watching, _is_hooked
    if not _is_hooked:
        sys.addaudithook(_audit)
        _is_hooked = True
    _is_watching = True
    try:
        yield
    finally:
        _is_watching = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _is_watching:
        return
    if event == "open":
        path, mode, flags = (*arguments, None, None)[:3]
        writes = bool(_WRITES & set(mode)) if isinstance(mode, str) else bool((flags or 0) & 3)
        if writes and "__pycache__" not in str(path):
            raise HasEffects(f"it writes the file {path}")
    elif event.startswith(_EFFECTS) and event not in _NO_EFFECTS:
        raise HasEffects(f"it calls {event}")


@contextlib.contextmanager
def _as_before(function: object) -> Iterator[None]:
    """Put generators of random numbers back, and containers that functions see from outside."""
    numbers, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (users' own)
    seen = _seen(function, {})
    states = [(v, copy.deepcopy(v.bit_generator.state)) for v in seen if _is_generator(v)]
    old = [(v, v.getstate()) for v in seen if isinstance(v, random.Random)]
    containers = [(v, copy.copy(v)) for v in seen if isinstance(v, list | dict | set | bytearray)]
    arrays = [(v, v.copy()) for v in seen if isinstance(v, np.ndarray) and v.flags.writeable]
    try:
        yield
    finally:
        random.setstate(numbers)
        np.random.set_state(of_numpy)  # noqa: NPY002
        for generator, state in states:
            generator.bit_generator.state = state
        for source, state in old:
            source.setstate(state)
        for array, content in arrays:
            array[...] = content
        for container, old_content in containers:
            _put_back(container, old_content)


def _is_generator(value: object) -> bool:
    return isinstance(value, np.random.Generator)


def _put_back(container: Any, content: Any) -> None:
    if isinstance(container, list | bytearray):
        container[:] = content
    else:
        container.clear()
        container.update(content)


def _seen(function: Any, done: dict[int, Any]) -> list[Any]:
    """What a function sees from outside, and the functions of its module that it calls."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or id(function) in done:
        return []
    done[id(function)] = function
    known = {**function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):
            known[name] = cell.cell_contents
    codes, names = [code], set(code.co_freevars)
    while codes:
        each = codes.pop()
        names |= set(each.co_names)
        codes += [c for c in each.co_consts if isinstance(c, CodeType)]
    found = []
    for name in names & known.keys():
        value = known[name]
        found.append(value)
        if getattr(value, "__globals__", None) is function.__globals__:
            found += _seen(value, done)
    return found
