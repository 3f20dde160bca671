"""Keys of dictionaries, which have to be known while a program is read.

A value that the run decides stands for many. Python would take the object that stands for it as the
key, which is equal to no other one: each ``found[int(x[i])]`` would be an entry of its own, and
``found.get(int(x[i]))`` would never find one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.lists.run_lists import decided_by_run
from distspmd.frontend.from_numpy.reader.texts import Text

OF_RUN = (
    "a dictionary {} a key that is not known before the run (write an array instead, with the keys "
    "as its indices)"
)


def known_key(run: Context, holder: dict[Any, Any], key: object, does: str = "gets") -> Any:
    """A key of a dictionary.

    Args:
        run: the reading.
        holder: the dictionary.
        key: of it.
        does: what the dictionary does with the key: it gets it, or is asked for it.

    Raises:
        DecidedByRun: it is not known; the program is read again, with a dictionary of the run.
        CannotRoll: the same in a loop, which may be written out; or nothing says where the
            dictionary is made.
    """
    if has_data(key) or isinstance(key, Text):
        for_python(run, "dict")
        if not run.tracer.loops:
            decided_by_run(run, holder)
        raise CannotRoll(OF_RUN.format(does), holder)
    return key


def check_call(run: Context, holder: dict[Any, Any], method: str, arguments: Sequence[Any]) -> None:
    """Look at what a method of a dictionary is given.

    Raises:
        DecidedByRun, CannotRoll: as of :func:`known_key`.
    """
    if not arguments:
        return
    if method == "update":
        pairs = arguments[0] if isinstance(arguments[0], list | tuple) else ()
        for pair in pairs:
            if isinstance(pair, Sequence) and pair:
                known_key(run, holder, pair[0])
    else:
        known_key(run, holder, arguments[0], "gets" if method == "setdefault" else "is asked for")
