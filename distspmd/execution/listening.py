"""What compiled programs ask Python while they run: the question gets arrays of their memory."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from distspmd.runtime.questions import answer, read_question

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
    """

    def __init__(self) -> None:
        self.reason = ""
        self._function = _TYPE(self._asked)

    def listen(self, library: ctypes.CDLL) -> None:
        """Answer what a program asks."""
        try:
            variable = ctypes.c_void_p.in_dll(library, ANSWERER)
        except ValueError:  # it asks nothing
            return
        variable.value = ctypes.cast(self._function, ctypes.c_void_p).value

    def take_reason(self) -> str:
        """What the library said, which is forgotten."""
        found, self.reason = self.reason, ""
        return found

    def _asked(self, text: bytes, inputs: Any, outputs: Any, extents: Any) -> None:
        question = read_question(text)
        place = 0
        arrays: list[list[Any]] = [[], []]
        for which, addresses in enumerate((inputs, outputs)):
            for number, (dtype, ndim, *_) in enumerate(question[("inputs", "outputs")[which]]):
                shape = tuple(extents[place + d] for d in range(ndim))
                place += ndim
                arrays[which].append(_array(addresses[number], shape, np.dtype(dtype)))
        self.reason = answer(question, *arrays)


def _array(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Elements in memory of the program, which the answer is written to."""
    nbytes = dtype.itemsize * math.prod(shape)
    if not nbytes:
        return np.zeros(shape, dtype)
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype).reshape(shape)


ANSWERS = Answers()
"""Those of this process."""
