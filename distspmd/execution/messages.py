"""What programs tell Python while they run: rank 0 prints, and errors of a program become Python's.

A message is JSON: ``kind`` is "print" or "raise"; ``parts`` are texts, and values with ``value``
(a number), ``dtype``, ``ndim``, whether it is a number of Python (``weak``), ``conversion`` and
``spec`` as in an f-string; or ``seconds``, of readings of a clock; or a text to ``format`` by ``%``
or by its method. An error has a ``type``, the ``base`` that is known here, and the ``place`` in the
source. The kind "clock" has the ``name`` of a clock, and the ``number`` of what it says now.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import json
import math
import sys
from typing import Any

import numpy as np

from distspmd.errors import NOTED, DistSPMDError, error_of_program
from distspmd.runtime.clock import read_clock, seconds

_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64)
)


class Messages:
    """Listens to the programs of this process.

    Attributes:
        error: with which the program that ran last has ended, if it has.
        prints: whether this rank prints.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.prints = True
        self._function = _TYPE(self._told)

    def listen(self, library: ctypes.CDLL) -> bool:
        """Let a program tell of what it does; whether it has anything to tell."""
        try:
            variable = ctypes.c_void_p.in_dll(library, LISTENER)
        except ValueError:
            return False
        variable.value = ctypes.cast(self._function, ctypes.c_void_p).value
        return True

    def take_noted(self, noted: Any) -> None:
        """Make what the last run has noted its error, unless there is another."""
        if noted is not None and noted[0]:
            _, kind, line, *numbers = noted
            noted[0] = 0
            name, text = NOTED[kind]
            said = f"line {line} of the program: {text.format(*numbers)}"
            self.error = self.error or error_of_program(name)(said)

    def take_error(self) -> Exception | None:
        """The error of the last run, which is forgotten."""
        found, self.error = self.error, None
        return found

    def _told(self, text: bytes, values: Any, extents: Any) -> int:
        try:
            message = _read(text)
            if message["kind"] == "clock":
                read_clock(message["number"], message["name"])
                return 0
            if message["kind"] == "print" and not self.prints:
                return 0
            told = _formatted(message["parts"], values, extents)
            if message["kind"] == "print":
                file = sys.stderr if message.get("file") == "stderr" else None
                builtins.print(told, end="", file=file, flush=message.get("flush", False))
                return 0
            place = message.get("place", "")
            kind = error_of_program(message.get("base", message["type"]))
            self.error = kind(f"{place}: {message['type']}: {told}" if place else told)
        except Exception as problem:
            self.error = DistSPMDError(f"a message of the program: {problem}")
        return 1


def noted_by(library: ctypes.CDLL) -> Any:
    """Where a program notes an error of an element; None for one that checks none."""
    try:
        return (ctypes.c_int64 * 5).in_dll(library, VARIABLE)
    except ValueError:
        return None


LISTENER = "distspmd_listener"
"""The variable of ``distspmd/kernels/tell.hpp``: the function that listens."""
VARIABLE = "distspmd_noted"
"""The variable of ``distspmd/kernels/checked_index.hpp``."""

MESSAGES = Messages()
"""Those of this process: the libraries of all programs share one function that listens."""


@functools.lru_cache(maxsize=256)
def _read(text: bytes) -> Any:
    return json.loads(text)


def _formatted(parts: list[Any], values: Any, extents: Any) -> str:
    place, found = 0, []

    def read(part: Any) -> Any:
        """The next value, in the order of their numbers."""
        nonlocal place
        if "seconds" in part:
            found = seconds(dict(part["seconds"]), part["more"])
            return found if part["digits"] is None else round(found, part["digits"])
        shape = tuple(extents[place + d] for d in range(part["ndim"]))
        place += max(1, part["ndim"])
        array = _array(values[part["value"]], shape, np.dtype(part["dtype"]))
        value: Any = array if array.ndim else array[()]
        return value.item() if part.get("weak") else value

    for part in parts:
        if isinstance(part, str):
            found.append(part)
        elif "format" in part:
            given = tuple(read(v) if isinstance(v, dict) else v for v in part["values"])
            named = {k: read(v) if isinstance(v, dict) else v for k, v in part["named"].items()}
            text = part["format"]
            found.append(text % given if part["way"] == "%" else text.format(*given, **named))
        else:
            found.append(_text(read(part), part))
    return "".join(found)


def _array(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    nbytes = dtype.itemsize * math.prod(shape)
    return np.frombuffer(ctypes.string_at(address, nbytes), dtype).reshape(shape)


def _text(value: Any, part: dict[str, Any]) -> str:
    conversion = part.get("conversion")
    if conversion:
        value = repr(value) if conversion == "r" else str(value)
    return format(value, part.get("spec", ""))
