"""Containers of the run that are no array work, which Python runs as it is."""

from __future__ import annotations

from collections import deque
from typing import NoReturn

from distspmd.frontend.from_numpy.arrays.transcript import NeedsObject, Refusal
from distspmd.frontend.from_numpy.context import Context

PREFERRED: dict[str, str] = {
    "dict": "a dictionary whose keys the run decides",
    "set": "a set whose elements the run decides",
    "deque": "a deque whose elements the run decides",
    "pop": "a list of the run that loses elements, or gets some before its end",
    "table": "a list of lists, each of which the run makes longer",
    "grows": "a list that gets another length while a loop iterates over it",
}
"""By names: what it is, in words."""


def check_kind(run: Context, kind: type) -> None:
    """Leave containers of the run to Python, but for lists.

    Raises:
        Refusal: Python runs what makes or changes one.
    """
    for each in (dict, set, deque):
        if issubclass(kind, each):
            for_python(run, each.__name__)


def for_python(run: Context, construct: str) -> NoReturn:
    """Leave what is being read to Python.

    Raises:
        Refusal: Python runs it, but in a parallel map.
    """
    refusal = Refusal(run.tracer.message(f"{PREFERRED[construct]} is not covered"))
    refusal.is_of_python = not run.tracer.map.parallel and not run.tracer.map.own
    raise refusal


def become_object(run: Context, name: str, what: str) -> NoReturn:
    """Let a variable be an object of Python from its beginning.

    Args:
        run: the reading.
        name: of the variable.
        what: it is, in words.

    Raises:
        NeedsObject: it becomes one.
        Refusal: it may not, or it is no variable of a function of the user.
    """
    frame, hosting = run.tracer.frames[-1], run.hosting
    may = hosting is not None and hosting.choice != "refuse" and name in frame.variables
    hosted = hosting.files.get(frame.file) if may else None
    may = may and not (hosted and (frame.line, name) in hosted.opaque)
    if not may or run.tracer.map.parallel or run.tracer.map.own or frame.called_at is not None:
        run.tracer.refuse(f"{what} is not covered")
    raise NeedsObject(frame.file, frame.line, name)
