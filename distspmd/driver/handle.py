"""Arrays that stay on the ranks: what the driver has of them."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from distspmd.errors import ArgumentError
from distspmd.layouts import intervals
from distspmd.layouts.draw import picture, svg
from distspmd.layouts.layout import Layout
from distspmd.runtime.launch.driver_ranks import OnRanks

if TYPE_CHECKING:
    from distspmd.driver.ranks import Ranks


class Handle(OnRanks, NDArrayOperatorsMixin):
    """An array that lies in tiles on the ranks.

    Programs take it where it lies, or it moves from rank to rank; :meth:`numpy` brings it here, and
    an index brings a part. ``np.asarray(handle)`` does as :meth:`numpy`.

    Attributes:
        ranks: that hold it.
        number: by which these know it.
        shape: of the whole array.
        dtype: of its elements.
        layout: which box of it each rank holds.
    """

    base = None

    def __init__(
        self, ranks: Ranks, number: int, shape: Sequence[int], dtype: np.dtype[Any], layout: Layout
    ) -> None:
        self.ranks, self.number = ranks, number
        self.shape, self.dtype, self.layout = tuple(shape), np.dtype(dtype), layout

    def __del__(self) -> None:
        self.ranks.forget(self.number)

    def __repr__(self) -> str:
        return f"<distspmd.driver.Handle: {self.dtype}{list(self.shape)} on ranks as {self.layout}>"

    def _repr_html_(self) -> str:
        head = html.escape(f"{self.dtype}{list(self.shape)} on {self.ranks.Get_size()} ranks")
        if not self.shape:
            return f"<p>{head}</p>"
        return f"<p>{head}</p>{svg([('layout', self.layout)])}"

    def picture(self) -> str:
        """Which rank holds what, as text."""
        return picture(self.layout)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array of no dimensions")
        return self.shape[0]

    def numpy(self) -> NDArray[Any]:
        """All of it, as an array of this process."""
        found = self.ranks.memory_for(self.shape, self.dtype)
        self.ranks.fetch(self, found)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """For ``np.asarray``: the array is always a new one."""
        if copy is False:
            raise ValueError("an array on the ranks cannot be had here without a copy")
        found = self.numpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __getitem__(self, index: Any) -> Any:
        """A part of it as an array of this process; only the box of it comes here."""
        box, rest, shape = box_of(index, self.shape)
        if self.layout.extents != self.shape or any(low >= high for low, high in box):
            return self.numpy()[index]
        part = self.ranks.memory_for(intervals.shape(box), self.dtype)
        self.ranks.fetch(self, part, box)
        return part[rest] if shape is None else part[rest].reshape(shape)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ArgumentError(
            "an array on the ranks cannot be written by an index here. Write it in a program, "
            "x[i] = ..., or change handle.numpy() and pass that."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """Apply a function of elements on the ranks, each to its tile."""
        from distspmd.driver.elements import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Reduce on the ranks, or say what to write."""
        from distspmd.driver.elements import apply_function

        return apply_function(function, args, named)

    def take(self, other: Handle) -> None:
        """Become another array, which becomes this one."""
        self.number, other.number = other.number, self.number
        self.layout, other.layout = other.layout, self.layout

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def sum(self) -> Any:
        """The sum of all elements."""
        return np.sum(self)

    def mean(self) -> Any:
        """The mean of all elements."""
        return np.mean(self)

    def min(self) -> Any:
        """The least element."""
        return np.min(self)

    def max(self) -> Any:
        """The greatest element."""
        return np.max(self)

    def misfit(self, dtype: np.dtype[Any], shape: tuple[int, ...], is_written: bool) -> str:
        """Why it is no argument of a type and a shape; empty if it is."""
        if self.dtype != dtype:
            return f"but it has the type {self.dtype}"
        return f"but it has the shape {list(self.shape)}" if self.shape != shape else ""


def box_of(index: Any, shape: Sequence[int]) -> tuple[intervals.Box, Any, None]:
    """The box of an array that an index touches, and the index within that box.

    Numbers and slices become boxes; of a dimension with any other index all is taken.
    """
    given = index if isinstance(index, tuple) else (index,)
    plain = all(isinstance(each, int | np.integer | slice) or each is Ellipsis for each in given)
    if not plain or sum(each is Ellipsis for each in given) > 1:
        return intervals.whole(shape), index, None
    if Ellipsis in given:
        at = given.index(Ellipsis)
        missing = len(shape) - len(given) + 1
        given = (*given[:at], *(slice(None),) * missing, *given[at + 1 :])
    given = (*given, *(slice(None),) * (len(shape) - len(given)))
    if len(given) != len(shape):
        raise IndexError(f"{len(given)} indices for an array of {len(shape)} dimensions")
    box, rest = [], list[Any]()
    for dimension, (each, extent) in enumerate(zip(given, shape, strict=True)):
        if isinstance(each, slice):
            steps = range(*each.indices(extent))
            low, high = (min(steps), max(steps) + 1) if len(steps) else (0, 0)
            box.append((low, high))
            rest.append(_steps(steps, low))
            continue
        at = int(each) + (extent if each < 0 else 0)
        if not 0 <= at < extent:
            raise IndexError(
                f"index {int(each)} is out of bounds for axis {dimension} with size {extent}"
            )
        box.append((at, at + 1))
        rest.append(0)
    return tuple(box), tuple(rest), None


def _steps(steps: range, low: int) -> slice:
    """The elements of a range within the interval from its least one on."""
    if steps.step > 0:
        return slice(0, None, steps.step)
    return slice(steps[0] - low, None, steps.step) if len(steps) else slice(0, 0)
