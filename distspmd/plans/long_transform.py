"""Fourier transforms of a line that lies in parts on several ranks: what moves, and its meaning.

The line is a matrix, row by row, whose columns are transformed before its rows: the four-step
method (D. H. Bailey, FFTs in external or hierarchical memory, 1990;
``kernels/long_transform.hpp``). Ranks have parts of the line, then columns, then rows, and parts of
the result: each element moves three times at most. A length without two factors of some size is
transformed as a convolution of a longer line: of that, rows become columns again, and columns
parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distspmd.layouts.intervals import Interval
from distspmd.plans.line_exchange import LineExchange, even

FEWEST_ROWS = 16
"""Of the matrix that a line is, as in ``kernels/long_transform.hpp``."""


def matrix_of(length: int) -> tuple[int, int]:
    """Rows and columns of the matrix for a line, which is larger where the line is convolved."""
    rows = next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)
    if rows >= FEWEST_ROWS:
        return rows, length // rows
    side = 1
    while side * side < 2 * length - 1:
        side *= 2
    return (side // 2, side) if side // 2 * side >= 2 * length - 1 else (side, side)


@dataclass(frozen=True)
class LongTransform(LineExchange):
    """A Fourier transform of a line in a lowered program."""

    @property
    def length(self) -> int:
        """Elements of the line."""
        return max((hi for _, hi in self.parts), default=0)

    @property
    def convolves(self) -> bool:
        """Whether the line is transformed as a convolution."""
        return math.prod(matrix_of(self.length)) != self.length

    def _moves(self) -> Iterator[int]:
        """Elements that change their rank in each step."""
        rows, columns = matrix_of(self.length)
        parts = [self.parts[rank] for rank in self.workers]
        of_rows, of_columns = even(rows, len(parts)), even(columns, len(parts))
        pairs = zip(of_rows, of_columns, strict=True)
        turned = rows * columns - sum((b - a) * (d - c) for (a, b), (c, d) in pairs)
        yield from (moving(parts, columns, of_columns), turned)
        if self.convolves:
            yield from (turned, moving(parts, columns, of_columns))
        else:
            yield moving(parts, rows, of_rows)

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive."""
        if not self.is_split:
            return 0
        return sum(self._moves()) * self.itemsize + self.given_bytes

    @property
    def rounds(self) -> int:
        """How often ranks wait for each other's messages."""
        return 4 if self.convolves else 3

    @property
    def asked(self) -> tuple[int, ...]:
        """Data decide nothing."""
        return ()

    @property
    def what(self) -> str:
        """What it is, in messages."""
        return f"the transform of {self.data}"

    @property
    def layouts(self) -> str:
        """The parts, in which the line is before and after."""
        rows, columns = matrix_of(self.length)
        many = len(self.workers)
        turned = " -> columns -> parts" if self.convolves else " -> parts"
        return f"{many} parts -> columns of {rows} x {columns} -> rows{turned}"

    @property
    def found(self) -> str:
        """Who finds out what moves."""
        return "as columns and rows"

    @property
    def steps(self) -> str:
        """What carries it out."""
        return "convolution in four steps" if self.convolves else "four-step transform"


def moving(parts: list[Interval], width: int, windows: list[Interval]) -> int:
    """Elements of parts of a line that are in windows of other ranks, of a matrix so wide."""
    line = 0
    for k, (lo, hi) in enumerate(parts):
        begin, end = windows[k]
        line += (hi - lo) - (_up_to(hi, width, begin, end) - _up_to(lo, width, begin, end))
    return line


def _up_to(place: int, width: int, begin: int, end: int) -> int:
    """Elements before a place whose column is in a window."""
    rows, column = divmod(place, width)
    return rows * (end - begin) + int(np.clip(column, begin, end)) - begin
