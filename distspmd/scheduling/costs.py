"""What moves cost a program, as arrays over choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.placement.homes import COPY
from distspmd.scheduling.traffic import Moved


@dataclass(eq=False)
class Costs:
    """What moves cost, as arrays of one shape.

    Attributes:
        seconds: predicted.
        nbytes: that all ranks receive.
        traffic: these, and bytes that ranks copy by weight: what homes are chosen by.
    """

    seconds: NDArray[np.float64]
    nbytes: NDArray[np.float64]
    traffic: NDArray[np.float64]

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Costs:
        """No costs."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    @classmethod
    def of(cls, made: Moved) -> Costs:
        """Those of moves into a storage of their own."""
        return cls(
            made.seconds,
            made.nbytes.astype(np.float64),
            made.nbytes.astype(np.float64) + COPY * made.copied,
        )

    @classmethod
    def in_place(cls, made: Moved) -> Costs:
        """Those of moves within one storage."""
        seconds = np.where(made.nbytes > 0, made.in_place, 0.0)
        return cls(seconds, made.nbytes.astype(np.float64), made.nbytes.astype(np.float64))

    def turned(self) -> Costs:
        """Rows as columns."""
        return Costs(self.seconds.T, self.nbytes.T, self.traffic.T)

    def __getitem__(self, key: Any) -> Costs:
        return Costs(self.seconds[key], self.nbytes[key], self.traffic[key])

    def __mul__(self, times: float) -> Costs:
        return Costs(times * self.seconds, times * self.nbytes, times * self.traffic)

    def repeated(self, times: int) -> Costs:
        """The same rows so many times."""
        return Costs(
            *(np.tile(each, (times, 1)) for each in (self.seconds, self.nbytes, self.traffic))
        )

    def add(self, other: Costs, where: NDArray[np.bool_] | np.bool_) -> None:
        """Add costs in some places."""
        self.seconds += np.where(where, other.seconds, 0.0)
        self.nbytes += np.where(where, other.nbytes, 0.0)
        self.traffic += np.where(where, other.traffic, 0.0)
