"""The reductions that combine partial values: NumPy's ufunc, identity and MPI operation of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from distspmd.errors import LayoutError


@dataclass(frozen=True, slots=True)
class Reduction:
    """An associative and commutative operation.

    ``code`` names it in the tables that the C++ runtime reads (``reduction.hpp``).
    """

    name: str
    ufunc: np.ufunc
    code: int

    def identity(self, dtype: DTypeLike) -> Any:
        """Neutral element for a dtype.

        Raises:
            LayoutError: the dtype has no such reduction (an order of complex numbers).
        """
        kind: np.dtype[Any] = np.dtype(dtype)
        if not self.supports(kind):
            raise LayoutError(f"there is no {self.name} of {kind} values.")
        if self.name in ("min", "max"):
            lowest = self.name == "max"
            if kind.kind == "b":
                return kind.type(not lowest)
            if kind.kind == "f":
                return kind.type(-np.inf if lowest else np.inf)
            return kind.type(np.iinfo(kind).min if lowest else np.iinfo(kind).max)
        return kind.type({"sum": 0, "prod": 1, "and": 1, "or": 0}[self.name])

    def supports(self, dtype: DTypeLike) -> bool:
        """Whether values of the dtype can be combined."""
        kind = np.dtype(dtype).kind
        return kind in "biuf" or (kind == "c" and self.name in ("sum", "prod"))


REDUCTIONS = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum", np.add, 1),
        Reduction("prod", np.multiply, 2),
        Reduction("min", np.minimum, 3),
        Reduction("max", np.maximum, 4),
        Reduction("and", np.logical_and, 5),
        Reduction("or", np.logical_or, 6),
    )
}


def reduction(name: str) -> Reduction:
    """Look a reduction up by name.

    Raises:
        LayoutError: there is none of that name.
    """
    if name not in REDUCTIONS:
        raise LayoutError(f"no reduction {name!r}; there are {', '.join(REDUCTIONS)}.")
    return REDUCTIONS[name]
