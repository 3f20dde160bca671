"""Keys of dictionaries, which have to be known while a program is read.

A value that the run decides stands for many. Python would take the object that stands for it as the
key, which is equal to no other one: each ``found[int(x[i])]`` would be an entry of its own, and
``found.get(int(x[i]))`` would never find one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.reader.texts import Text

OF_RUN = (
    "a dictionary {} a key that is not known before the run (write an array instead, with the keys "
    "as its indices)"
)


MOST_WRITTEN = 64
"""Iterations of a loop that is written out for the sake of keys, at most."""


def known_key(run: Context, holder: dict[Any, Any], key: object, does: str = "gets") -> Any:
    """A key of a dictionary.

    Args:
        run: the reading.
        holder: the dictionary.
        key: of it.
        does: what the dictionary does with the key: it gets it, or is asked for it.

    Raises:
        Refusal: the run decides it: the dictionary is for Python.
        CannotRoll: it is counted by loops that may be written out.
    """
    if has_data(key) or isinstance(key, Text):
        if isinstance(key, sympy.Basic) and all(map(_is_short, run.tracer.loops)):
            raise CannotRoll(OF_RUN.format(does), holder)
        for_python(run, "dict")
    return key


def _is_short(length: object) -> bool:
    return isinstance(length, int) and length <= MOST_WRITTEN


def check_call(run: Context, holder: dict[Any, Any], method: str, arguments: Sequence[Any]) -> None:
    """Look at what a method of a dictionary is given.

    Raises:
        Refusal, CannotRoll: as of :func:`known_key`.
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
