"""What compiled programs ask Python while they run: the question gets arrays of their memory."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from distspmd.runtime.host import host_regions
from distspmd.runtime.host.host_functions import HOST, Operand, host_call
from distspmd.runtime.host.library_calls import answer, read_question
from distspmd.runtime.notices import notice

_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, _POINTERS, _POINTERS, ctypes.POINTER(ctypes.c_int64)
)
ANSWERER = "distspmd_answerer"
"""The variable of ``distspmd/kernels/ask.hpp``: the function that answers."""


class Answers:
    """Answers the programs of this process.

    Attributes:
        reason: what the library said where the last answer was an error.
        error: of a host function, if one has failed in this run; the others do not run then.
        seconds: of statements that Python runs, by their lines, since the last time they were told.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.error: Exception | None = None
        self.seconds: dict[str, float] = {}
        self._after = 0
        self._function = _TYPE(self._asked)

    def listen(self, library: ctypes.CDLL) -> bool:
        """Answer what a program asks; whether it asks anything."""
        try:
            variable = ctypes.c_void_p.in_dll(library, ANSWERER)
        except ValueError:
            return False
        variable.value = ctypes.cast(self._function, ctypes.c_void_p).value
        return True

    def take_error(self) -> Exception | None:
        """The error of a host function, which is forgotten, as objects of Python are."""
        found, self.error, self._after = self.error, None, 0
        host_regions.OBJECTS.clear()
        return found

    def tell(self, program: str, seconds: float) -> None:
        """Say which lines of a program Python has run, and what part of its time that was."""
        spent, self.seconds = self.seconds, {}
        numbers = [lines.partition(" ")[2] for lines in spent]
        is_one = len(numbers) == 1 and "-" not in numbers[0]
        told = f"line {numbers[0]} runs" if is_one else f"lines {', '.join(numbers)} run"
        share = min(1.0, sum(spent.values()) / seconds) if seconds else 0.0
        notice(
            f"{program}: {told} in Python on rank 0: {share * 100:.0f} % of the time", of=program
        )

    def take_reason(self) -> str:
        """What the library said, which is forgotten."""
        found, self.reason = self.reason, ""
        return found

    def _asked(self, text: bytes, inputs: Any, outputs: Any, extents: Any) -> None:
        if text.startswith(HOST):
            self._call_host(text, inputs, outputs, extents)
            return
        question = read_question(text)
        place = 0
        arrays: list[list[Any]] = [[], []]
        for which, addresses in enumerate((inputs, outputs)):
            for number, (dtype, ndim, *_) in enumerate(question[("inputs", "outputs")[which]]):
                shape = tuple(extents[place + d] for d in range(ndim))
                place += ndim
                arrays[which].append(_array(addresses[number], shape, np.dtype(dtype)))
        self.reason = answer(question, *arrays)

    def _call_host(self, text: bytes, inputs: Any, outputs: Any, numbers: Any) -> None:
        """Call a host function; where one has failed, no number is what it would be."""
        call = host_call(text)
        place, arrays = 0, []
        for which, operands in enumerate((call.inputs, call.outputs)):
            addresses = (inputs, outputs)[which]
            for number, operand in enumerate(operands):
                end = place + 2 * operand.ndim
                arrays.append(_strided(addresses[number], operand, numbers[place:end]))
                place = end
        targets = arrays[len(call.inputs) :]
        if self.error is None:
            start = time.perf_counter()
            try:
                call.run(arrays[: len(call.inputs)], targets)
                if call.tells:
                    spent = time.perf_counter() - start
                    self.seconds[call.lines] = self.seconds.get(call.lines, 0.0) + spent
                return
            except Exception as problem:
                self.error = problem.with_traceback(_of_user(problem.__traceback__))
        for target in targets:
            target[...] = np.nan if target.dtype.kind in "fc" else 0
        self._after += 1
        if self._after > _MOST_AFTER:
            sys.excepthook(type(self.error), self.error, self.error.__traceback__)
            os._exit(1)  # one rank alone, whose loop would never end


def _array(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Elements in memory of the program, which the answer is written to."""
    nbytes = dtype.itemsize * math.prod(shape)
    if not nbytes:
        return np.zeros(shape, dtype)
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype).reshape(shape)


def _of_user(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that the user has written; all of it where there is none."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        found = found.tb_next
    return found or trace


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _strided(address: int, operand: Operand, numbers: Sequence[int]) -> Any:
    """An array in memory of the program: its extents, and then its steps in elements."""
    shape = tuple(numbers[: operand.ndim])
    dtype = operand.dtype
    last = 0
    for n, step in zip(shape, numbers[operand.ndim :], strict=True):
        if n <= 0:
            return np.zeros(shape, dtype)
        last += (n - 1) * step
    nbytes = dtype.itemsize
    strides = tuple([step * nbytes for step in numbers[operand.ndim :]])
    memory = (ctypes.c_char * ((last + 1) * nbytes)).from_address(address)
    return np.ndarray(shape, dtype, memoryview(memory), 0, strides)


_MOST_AFTER = 100_000
"""Calls after an error, by a loop that waits for what will never be: then all ranks are ended."""

ANSWERS = Answers()
"""Those of this process."""
