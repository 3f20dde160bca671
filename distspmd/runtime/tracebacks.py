"""What is shown of an exception that ends a process: lines of the user's files, and the message.

Of an error of ours the frames below the user's call say nothing to a user, and of any error those
of the launcher. ``DISTSPMD_TRACEBACK=full`` shows all of them.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path

from distspmd.errors import DistSPMDError, shorten

VARIABLE = "DISTSPMD_TRACEBACK"
"""Environment variable; ``full`` shows all frames, on all ranks."""

_PACKAGE = Path(__file__).resolve().parents[1]
_OURS = (f"{_PACKAGE}{os.sep}",)
_OTHERS = tuple(
    {f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib")}
)
_LAUNCHER = ("runtime/launch/start_rank.py", "mpi4py/run.py", "<frozen runpy>", "/runpy.py")


def is_full() -> bool:
    """Whether all frames are asked for."""
    return os.environ.get(VARIABLE, "") == "full"


def report(error: BaseException) -> str:
    """What is printed of an exception; without those that led to it if its message is long.

    Python looks at each line of a message, which takes seconds for megabytes.
    """
    told = shorten(str(error))
    if told != str(error):
        lines = ["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__)]
        return f"{''.join(lines)}{type(error).__qualname__}: {told}\n"
    found = traceback.TracebackException.from_exception(error)
    if not is_full():
        _trim(found, error)
    return shorten("".join(found.format()))


def _trim(found: traceback.TracebackException, error: BaseException) -> None:
    """Leave out frames, and of an error of ours what led to it within us, in place."""
    frames = list(found.stack)
    while frames and frames[0].filename.endswith(_LAUNCHER):
        del frames[0]
    if isinstance(error, DistSPMDError):
        frames = [frame for frame in frames if _is_of_user(frame.filename)]
    if frames:
        found.stack[:] = frames
    else:  # without a line that says that a traceback follows
        found.stack = None  # type: ignore[assignment]
    for name in ("__cause__", "__context__"):
        before, inner = getattr(found, name), getattr(error, name)
        if before is None or inner is None:
            continue
        _trim(before, inner)
        if isinstance(error, DistSPMDError) and not before.stack:
            setattr(found, name, None)


def _is_of_user(filename: str) -> bool:
    """Whether a file is none of ours, of Python's, and of packages that are installed."""
    path = os.path.realpath(filename)
    return not (filename.startswith("<frozen") or path.startswith((*_OURS, *_OTHERS)))
