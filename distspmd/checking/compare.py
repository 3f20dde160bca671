"""Compares arrays with their reference: where they differ first, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an array compares with the one that is wanted.

    Attributes:
        name: of the array.
        dtype: of its elements.
        size: number of elements.
        wrong: how many differ by more than the tolerance.
        largest: largest difference, relative to the largest value that is wanted.
        tolerance: largest difference that is allowed; 0 where equal elements are wanted.
        first: index of the first wrong element, with what was found there and what is wanted.
    """

    name: str
    dtype: str
    size: int
    wrong: int
    largest: float
    tolerance: float
    first: tuple[tuple[int, ...], str, str] | None = None

    def __str__(self) -> str:
        if self.first is None:
            return (
                f"{self.name}: {self.size} elements of {self.dtype} agree; the largest difference "
                f"is {self.largest:.1e} of the largest value, {self.tolerance:.1e} is allowed"
            )
        index, found, wanted = self.first
        where = f"[{', '.join(map(str, index))}]" if index else ""
        allowed = (
            f"{self.tolerance:.1e} of the largest value" if self.tolerance else "no difference"
        )
        return (
            f"{self.name}{where} is {found}, not {wanted} ({self.wrong} of {self.size} elements of "
            f"{self.dtype} differ; {allowed} is allowed)"
        )


def tolerance_of(dtype: DTypeLike) -> float:
    """What rounding may change, relative to the largest value: 0 where a dtype has no rounding."""
    kind: np.dtype[Any] = np.dtype(dtype)
    return float(np.finfo(kind).eps) ** 0.75 if kind.kind in "fc" else 0.0


def compare(name: str, found: Any, wanted: Any, tolerance: float | None = None) -> Comparison:
    """Compare an array, or a scalar, with what is wanted; NaN equals NaN.

    Args:
        name: of the array.
        found: what there is.
        wanted: what should be, of the same shape (one element may come in any).
        tolerance: relative to the largest finite value that is wanted; by dtype where left out.
    """
    want = np.asarray(wanted)
    have = np.asarray(found)
    allowed = max(tolerance_of(want.dtype), tolerance_of(have.dtype))  # of the coarser one
    if want.dtype.kind not in "fc":
        allowed = 0.0
    elif tolerance is not None:
        allowed = tolerance
    if have.shape != want.shape and not have.size == want.size == 1:
        return Comparison(
            name, str(want.dtype), want.size, want.size, np.inf, allowed, _shapes(have, want)
        )
    have = have.reshape(want.shape)
    apart = _apart(have, want)
    wrong = ~(apart <= allowed)
    first = None
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0]) if want.ndim else ()
        first = index, repr(have[index].item()), repr(want[index].item())
    largest = float(apart.max(initial=0.0))
    return Comparison(name, str(want.dtype), want.size, int(wrong.sum()), largest, allowed, first)


def _shapes(found: NDArray[Any], wanted: NDArray[Any]) -> tuple[tuple[int, ...], str, str]:
    return (), f"of the shape {list(found.shape)}", f"of the shape {list(wanted.shape)}"


def _apart(found: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.float64]:
    """Differences relative to the largest wanted value; 0 where equal, infinite where unlike."""
    equal: NDArray[np.bool_] = (found == wanted) | ((found != found) & (wanted != wanted))
    if wanted.dtype.kind not in "fc":
        return np.where(equal, np.float64(0), np.float64(np.inf))
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    have, want = found.astype(wide), wanted.astype(wide)
    finite = np.isfinite(want)
    scale = float(np.abs(want[finite]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        apart: NDArray[np.float64] = np.abs(have - want) / scale
    unlike = np.where(np.isfinite(apart), apart, np.inf)
    return np.where(equal, 0.0, unlike)
