"""What Python runs although the reader knows a way to compile it: Python does it better."""

from __future__ import annotations

from collections import deque

from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.context import Context

PREFERRED: dict[str, str] = {
    "dict": "a dictionary whose keys the run decides",
    "set": "a set whose elements the run decides",
    "deque": "a deque whose elements the run decides",
    "pop": "a list of the run that loses elements, or gets some before its end",
    "letters": "a text of which the run decides the letters",
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


def for_python(run: Context, construct: str) -> None:
    """Leave what is being read to Python, unless this reading may not.

    Raises:
        Refusal: Python runs it.
    """
    hosting = run.hosting
    if hosting is None or not hosting.prefers or run.tracer.parallel or run.tracer.own:
        return
    hosting.has_preferred = True
    refusal = Refusal(run.tracer.message(f"{PREFERRED[construct]} is not covered"))
    refusal.is_of_python = True
    raise refusal
