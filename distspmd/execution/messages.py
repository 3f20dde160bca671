"""What programs tell Python while they run: rank 0 prints, and errors of a program become Python's.

A message is JSON: ``kind`` is "print" or "raise", and ``parts`` are those of a text
(``runtime/calls/text_parts.py``). An error has a ``type``, the ``base`` that is known here, and
the ``place`` in the source.
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

from distspmd.errors import NOT_TAKEN, NOTED, DistSPMDError, error_of_program
from distspmd.execution.listening import ANSWERS
from distspmd.runtime.calls.text_parts import TextReader
from distspmd.runtime.host.library_calls import SAID

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
            said = text.format(*numbers)
            if line:  # which the operators of a traced graph have not
                more = NOT_TAKEN if line < 0 else ""
                said = f"line {abs(line)} of the program: {said}{more}"
            self.error = self.error or error_of_program(name)(said)

    def take_error(self) -> Exception | None:
        """The error of the last run, which is forgotten."""
        found, self.error = self.error, None
        return ANSWERS.take_error() or found

    def _told(self, text: bytes, values: Any, extents: Any) -> int:
        try:
            message = _read(text)
            if message["kind"] == "print" and not self.prints:
                return 0
            told = formatted(message["parts"], values, extents)
            if message["kind"] == "print":
                file = sys.stderr if message.get("file") == "stderr" else None
                builtins.print(told, end="", file=file, flush=message.get("flush", False))
                return 0
            place = message.get("place", "")
            kind = error_of_program(message.get("base", message["type"]))
            told += ANSWERS.take_reason() if told.endswith(SAID) else ""
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


def runs_of(library: ctypes.CDLL) -> Any:
    """Where a program counts its runs; None for one that keeps nothing from one to the next."""
    try:
        return ctypes.c_int64.in_dll(library, RUNS)
    except ValueError:
        return None


LISTENER = "distspmd_listener"
"""The variable of ``distspmd/kernels/tell.hpp``: the function that listens."""
RUNS = "distspmd_runs"
"""The variable of ``distspmd/kernels/own_places.hpp``."""
VARIABLE = "distspmd_noted"
"""The variable of ``distspmd/kernels/checked_index.hpp``."""

MESSAGES = Messages()
"""Those of this process: the libraries of all programs share one function that listens."""


@functools.lru_cache(maxsize=256)
def _read(text: bytes) -> Any:
    return json.loads(text)


def formatted(parts: list[Any], values: Any, extents: Any) -> str:
    """A message as it is printed.

    Args:
        parts: texts and values.
        values: addresses of the elements of each value.
        extents: of each value in turn; a number has one.
    """
    places = _places_of(parts)

    def array(part: dict[str, Any]) -> Any:
        place = places[part["value"]]
        shape = tuple(extents[place + d] for d in range(part["ndim"]))
        return _array(values[part["value"]], shape, np.dtype(part["dtype"]))

    return TextReader(array).text(parts)


def _places_of(parts: Any) -> dict[int, int]:
    """Where the extents of each value begin, by its number: they are in the order of these."""
    sizes: dict[int, int] = {}

    def look(part: Any) -> None:
        if isinstance(part, list):
            for each in part:
                look(each)
        elif isinstance(part, dict):
            if "value" in part:
                sizes[part["value"]] = max(1, part["ndim"])
            for each in part.values():
                look(each)

    look(parts)
    found, place = {}, 0
    for number in range(len(sizes)):
        found[number] = place
        place += sizes[number]
    return found


def _array(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    nbytes = dtype.itemsize * math.prod(shape)
    return np.frombuffer(ctypes.string_at(address, nbytes), dtype).reshape(shape)
