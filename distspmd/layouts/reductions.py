"""The reductions that combine partial values: NumPy's ufunc, identity and MPI operation of each.

A user's conflict resolution is a reduction too, under the name ``lambda a, b: ...``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from distspmd.errors import LayoutError, describe
from distspmd.layouts import user_reductions


@dataclass(frozen=True, slots=True)
class Reduction:
    """An associative and commutative operation.

    ``code`` names it in the tables that the C++ runtime reads (``reduction.hpp``); 0 for those that
    it calls by address: a ufunc of a user, and a lambda, of which generated programs have the code.
    ``neutral`` is the identity of a ufunc of a user.
    """

    name: str
    ufunc: np.ufunc
    code: int
    neutral: Any = None

    def identity(self, dtype: DTypeLike) -> Any:
        """Neutral element for a dtype.

        Raises:
            LayoutError: the dtype has no such reduction (an order of complex numbers).
        """
        kind: np.dtype[Any] = np.dtype(dtype)
        if not self.supports(kind):
            raise LayoutError(f"there is no {self.name} of {kind} values.")
        if self.neutral is not None:
            return kind.type(self.neutral)
        if self.is_lambda:
            return kind.type(user_reductions.neutral(self.name, kind.kind))
        if self.name in ("min", "max"):
            lowest = self.name == "max"
            if kind.kind == "b":
                return kind.type(not lowest)
            if kind.kind == "f":
                return kind.type(-np.inf if lowest else np.inf)
            return kind.type(np.iinfo(kind).min if lowest else np.iinfo(kind).max)
        if self.name == "bitand":
            return kind.type(~kind.type(0))
        return kind.type(self.name in ("prod", "and"))

    @property
    def is_lambda(self) -> bool:
        """Whether it is a conflict resolution of a user."""
        return self.name.startswith(user_reductions.PREFIX)

    def supports(self, dtype: DTypeLike) -> bool:
        """Whether values of the dtype can be combined."""
        kind = np.dtype(dtype).kind
        if self.is_lambda:
            return kind in "biufc" and user_reductions.neutral(self.name, kind) is not None
        if self.name.startswith("bit"):
            return kind in "biu"
        if self.code == 0:
            return kind in "biufc"
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
        Reduction("xor", np.logical_xor, 7),
        Reduction("bitand", np.bitwise_and, 8),
        Reduction("bitor", np.bitwise_or, 9),
        Reduction("bitxor", np.bitwise_xor, 10),
    )
}


_DEFINED: dict[str, Reduction] = {}


def define(name: str, ufunc: np.ufunc, identity: Any = None) -> Reduction:
    """Make a reduction of a user known by name: an associative and commutative NumPy ufunc.

    All ranks define it. `redistribute` calls it back for each run of elements; programs have none.

    Raises:
        LayoutError: a name that is taken, no ufunc of two operands, or no identity.
    """
    if not isinstance(name, str) or name in REDUCTIONS or not name.isidentifier():
        raise LayoutError(f"a reduction cannot be named {name!r}.")
    if not isinstance(ufunc, np.ufunc) or (ufunc.nin, ufunc.nout) != (2, 1):
        raise LayoutError(f"reduction {name!r}: {ufunc!r} is no ufunc of two operands.")
    neutral = ufunc.identity if identity is None else identity
    if neutral is None:
        raise LayoutError(f"reduction {name!r}: {ufunc!r} has no identity; give one.")
    if not np.isscalar(neutral):
        raise LayoutError(f"reduction {name!r}: the identity {describe(neutral)} is no number.")
    _DEFINED[name] = Reduction(name, ufunc, 0, neutral)
    return _DEFINED[name]


def find_reduction(name: str) -> Reduction:
    """Look a reduction up by name.

    Raises:
        LayoutError: there is none of that name.
    """
    if not isinstance(name, str):
        raise LayoutError(f"a reduction is given by its name, such as 'sum', not by {name!r}.")
    known = {**REDUCTIONS, **_DEFINED}
    if name.startswith(user_reductions.PREFIX):
        try:
            return Reduction(name, user_reductions.ufunc(name), 0)
        except ValueError as error:
            raise LayoutError(str(error)) from None
    if name not in known:
        raise LayoutError(f"no reduction {name!r}; there are {', '.join(known)}.")
    return known[name]
