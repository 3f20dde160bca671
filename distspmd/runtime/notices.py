"""What is said beside results: warnings of schedules, and lines on rank 0 alone, each once.

The lines are records of the logger ``distspmd``. Where nobody has said what becomes of records,
they go to the standard error. ``logging.getLogger("distspmd").setLevel("WARNING")`` silences them.
"""

from __future__ import annotations

import inspect
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from distspmd.errors import ScheduleWarning
from distspmd.runtime.allocation import rank_of_launch

LOGGER = logging.getLogger("distspmd")
_said: set[str] = set()


class _Lines(logging.Handler):
    """Writes lines where neither the root nor the logger has another handler."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers and LOGGER.handlers == [self]:
            sys.stderr.write(f"distspmd: {record.getMessage()}\n")
            sys.stderr.flush()


LOGGER.addHandler(_Lines())
if LOGGER.level == logging.NOTSET:
    LOGGER.setLevel(logging.INFO)


def notice(sentence: str, *, of: str = "") -> None:
    """Say something at the level of information, unless it was said before.

    Args:
        sentence: what to say.
        of: what it says once, in whatever words; itself where left out.
    """
    of = of or sentence
    if of in _said or rank_of_launch() != 0:
        return
    _said.add(of)
    LOGGER.info("%s", sentence)


@contextmanager
def notice_if_long(sentence: str, seconds: float) -> Iterator[None]:
    """Say something of a block that takes longer, once it does."""
    timer = threading.Timer(seconds, notice, (sentence,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def warn(sentence: str, category: type[Warning] = ScheduleWarning) -> None:
    """Tell the caller of this package of what is legal, but hardly meant."""
    level = depth = 1
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "distspmd":
            level = depth + 1  # of who called the outermost of our functions
        depth, frame = depth + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level)
