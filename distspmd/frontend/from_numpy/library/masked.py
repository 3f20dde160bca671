"""``np.ma``: arrays of which some elements are masked, as their elements and the mask.

What is computed of masked elements is left out: they keep what the first operand has there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FILL = {"f": 1e20, "i": 999999, "u": 999999, "b": True, "c": 1e20}
"""What masked elements are filled with, by the kinds of types."""


class Masked:
    """Elements and where they are masked, and the number that fills them."""

    def __init__(self, data: Any, mask: Any, fill_value: Any = None) -> None:
        self.data = data
        self.mask = mask
        self.fill_value = FILL[data.dtype.kind] if fill_value is None else fill_value
        self.shape = data.shape
        self.size = data.size
        self.ndim = data.ndim
        self.dtype = data.dtype

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, key: Any) -> Any:
        found = self.data[key]
        if np.ndim(found) == 0:
            raise NotImplementedError("an element of a masked array; use m.data and m.mask")
        return Masked(found, self.mask[key], self.fill_value)

    def filled(self, fill_value: Any = None) -> Any:
        """The elements, with a number where they are masked."""
        value = self.fill_value if fill_value is None else fill_value
        return np.where(self.mask, np.asarray(value).astype(self.dtype), self.data)

    def compressed(self) -> Any:
        """The elements that are not masked."""
        return np.ravel(self.data)[~np.ravel(self.mask)]

    def count(self, axis: Any = None, keepdims: Any = False) -> Any:
        """How many elements are not masked."""
        return np.sum(~self.mask, axis=axis, keepdims=keepdims)

    def copy(self) -> Any:
        """A copy."""
        return Masked(self.data.copy(), self.mask.copy(), self.fill_value)

    def astype(self, dtype: Any) -> Any:
        """The elements in another type."""
        return Masked(self.data.astype(dtype), self.mask)

    def ravel(self) -> Any:
        """The elements in one dimension."""
        return Masked(np.ravel(self.data), np.ravel(self.mask), self.fill_value)

    def reshape(self, *shape: Any) -> Any:
        """The elements in another shape."""
        return Masked(self.data.reshape(*shape), self.mask.reshape(*shape), self.fill_value)

    @property
    def T(self) -> Any:  # noqa: N802
        """The elements with dimensions in the other order."""
        return Masked(self.data.T, self.mask.T, self.fill_value)

    def reduced(self, found: Any, axis: Any) -> Any:
        """What a reduction gives: masked where all elements are."""
        none_left = np.all(self.mask, axis=axis)
        if axis is not None and np.ndim(found) > 0:
            return Masked(np.where(none_left, 0, found).astype(found.dtype), none_left)
        if none_left:
            raise NotImplementedError("a reduction of elements all of which are masked")
        return found

    def sum(self, axis: Any = None) -> Any:
        """The sum of what is not masked."""
        return self.reduced(self.filled(0).sum(axis=axis), axis)

    def prod(self, axis: Any = None) -> Any:
        """The product of what is not masked."""
        return self.reduced(self.filled(1).prod(axis=axis), axis)

    def mean(self, axis: Any = None) -> Any:
        """The mean of what is not masked."""
        count = self.count(axis=axis)
        return self.reduced(self.filled(0).sum(axis=axis) * 1.0 / np.maximum(count, 1), axis)

    def var(self, axis: Any = None, ddof: Any = 0) -> Any:
        """The variance of what is not masked."""
        count = np.sum(~self.mask, axis=axis, keepdims=True)
        middle = np.sum(self.filled(0), axis=axis, keepdims=True) * 1.0 / np.maximum(count, 1)
        away = np.where(self.mask, 0.0, self.data - middle)
        left = np.sum(~self.mask, axis=axis) - ddof
        return self.reduced(np.sum(np.abs(away) ** 2, axis=axis) / np.maximum(left, 1), axis)

    def std(self, axis: Any = None, ddof: Any = 0) -> Any:
        """The standard deviation of what is not masked."""
        found = self.var(axis=axis, ddof=ddof)
        if isinstance(found, Masked):
            return Masked(np.sqrt(found.data), found.mask)
        return np.sqrt(found)

    def max(self, axis: Any = None) -> Any:
        """The most of what is not masked."""
        low = -np.inf if self.dtype.kind == "f" else np.iinfo(self.dtype).min
        return self.reduced(self.filled(low).max(axis=axis), axis)

    def min(self, axis: Any = None) -> Any:
        """The least of what is not masked."""
        high = np.inf if self.dtype.kind == "f" else np.iinfo(self.dtype).max
        return self.reduced(self.filled(high).min(axis=axis), axis)

    def any(self) -> Any:
        """Whether one of what is not masked is true."""
        return np.any(self.filled(False))

    def all(self) -> Any:
        """Whether all of what is not masked is true."""
        return np.all(self.filled(True))

    def combined(self, function: Any, other: Any, *, turned: Any = False) -> Any:
        """What a function gives of the elements; masked where one of them is."""
        data, mask = parts_of(other)
        one, two = (data, self.data) if turned else (self.data, data)
        both = np.broadcast_to(self.mask, np.broadcast_shapes(self.shape, np.shape(data))) | mask
        if function is np.true_divide:
            both = both | (np.abs(one) * np.finfo(float).tiny >= np.abs(two))
        found = function(one, np.where(both, 1, two) if function is np.true_divide else two)
        return Masked(np.where(both, one, found).astype(found.dtype), both)

    def __add__(self, other: Any) -> Any:
        return self.combined(np.add, other)

    def __radd__(self, other: Any) -> Any:
        return self.combined(np.add, other, turned=True)

    def __sub__(self, other: Any) -> Any:
        return self.combined(np.subtract, other)

    def __rsub__(self, other: Any) -> Any:
        return self.combined(np.subtract, other, turned=True)

    def __mul__(self, other: Any) -> Any:
        return self.combined(np.multiply, other)

    def __rmul__(self, other: Any) -> Any:
        return self.combined(np.multiply, other, turned=True)

    def __truediv__(self, other: Any) -> Any:
        return self.combined(np.true_divide, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.combined(np.true_divide, other, turned=True)

    def __pow__(self, other: Any) -> Any:
        return self.combined(np.power, other)

    def __neg__(self) -> Any:
        return Masked(np.where(self.mask, self.data, -self.data), self.mask)

    def __gt__(self, other: Any) -> Any:
        return self.combined(np.greater, other)

    def __ge__(self, other: Any) -> Any:
        return self.combined(np.greater_equal, other)

    def __lt__(self, other: Any) -> Any:
        return self.combined(np.less, other)

    def __le__(self, other: Any) -> Any:
        return self.combined(np.less_equal, other)


def parts_of(value: Any) -> Any:
    """Elements, and where they are masked."""
    if isinstance(value, Masked):
        return value.data, value.mask
    found = np.asarray(value)
    return (found, np.zeros(found.shape, dtype=bool)) if np.ndim(value) else (value, False)


def masked_array(data: Any, mask: Any = False, dtype: Any = None, fill_value: Any = None) -> Any:
    """``np.ma.masked_array``: its mask is an array, also where none is given."""
    elements, own = parts_of(data)
    found = np.array(elements) if dtype is None else np.array(elements).astype(dtype)
    given = np.broadcast_to(np.asarray(mask).astype(bool), found.shape)
    return Masked(found, given | own, fill_value)


def masked_where(condition: Any, a: Any, copy: Any = True) -> Any:
    """``np.ma.masked_where``."""
    elements, own = parts_of(a)
    where, hidden = parts_of(condition)
    return Masked(np.array(elements), (np.asarray(where) & ~hidden) | own)


def masked_invalid(a: Any, copy: Any = True) -> Any:
    """``np.ma.masked_invalid``."""
    elements, own = parts_of(a)
    return Masked(np.array(elements), ~np.isfinite(elements) | own)


def masked_equal(x: Any, value: Any, copy: Any = True) -> Any:
    """``np.ma.masked_equal``: masked elements are filled with the value."""
    found = masked_where(np.equal(x, value), x)
    found.fill_value = value
    return found


def masked_not_equal(x: Any, value: Any, copy: Any = True) -> Any:
    """``np.ma.masked_not_equal``."""
    return masked_where(np.not_equal(x, value), x)


def masked_greater(x: Any, value: Any, copy: Any = True) -> Any:
    """``np.ma.masked_greater``."""
    return masked_where(np.greater(x, value), x)


def masked_greater_equal(x: Any, value: Any, copy: Any = True) -> Any:
    """``np.ma.masked_greater_equal``."""
    return masked_where(np.greater_equal(x, value), x)


def masked_less(x: Any, value: Any, copy: Any = True) -> Any:
    """``np.ma.masked_less``."""
    return masked_where(np.less(x, value), x)


def masked_less_equal(x: Any, value: Any, copy: Any = True) -> Any:
    """``np.ma.masked_less_equal``."""
    return masked_where(np.less_equal(x, value), x)


def masked_inside(x: Any, v1: Any, v2: Any, copy: Any = True) -> Any:
    """``np.ma.masked_inside``."""
    low, high = np.minimum(v1, v2), np.maximum(v1, v2)
    return masked_where((np.asarray(x) >= low) & (np.asarray(x) <= high), x)


def masked_outside(x: Any, v1: Any, v2: Any, copy: Any = True) -> Any:
    """``np.ma.masked_outside``."""
    low, high = np.minimum(v1, v2), np.maximum(v1, v2)
    return masked_where((np.asarray(x) < low) | (np.asarray(x) > high), x)


def getmaskarray(arr: Any) -> Any:
    """``np.ma.getmaskarray``."""
    return parts_of(arr)[1]


def getdata(a: Any, subok: Any = True) -> Any:
    """``np.ma.getdata``."""
    return parts_of(a)[0]


def filled(a: Any, fill_value: Any = None) -> Any:
    """``np.ma.filled``."""
    return a.filled(fill_value) if isinstance(a, Masked) else a
