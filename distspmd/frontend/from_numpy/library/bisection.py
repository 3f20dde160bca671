"""Places in ordered sequences, and insertion, with the comparisons of Python's ``bisect``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def bisect_left(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, key: Callable[[Any], Any] | None = None
) -> int:
    """The first place at which an element keeps the order."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    last = len(a) if hi is None else hi
    while lo < last:
        middle = (lo + last) // 2
        value = a[middle] if key is None else key(a[middle])
        if value < x:
            lo = middle + 1
        else:
            last = middle
    return lo


def bisect_right(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, key: Callable[[Any], Any] | None = None
) -> int:
    """The last place at which an element keeps the order."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    last = len(a) if hi is None else hi
    while lo < last:
        middle = (lo + last) // 2
        value = a[middle] if key is None else key(a[middle])
        if x < value:
            last = middle
        else:
            lo = middle + 1
    return lo


def insort_left(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, key: Callable[[Any], Any] | None = None
) -> None:
    """Insert an element before those that are equal to it."""
    _insert(a, bisect_left(a, x if key is None else key(x), lo, hi, key), x)


def insort_right(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, key: Callable[[Any], Any] | None = None
) -> None:
    """Insert an element behind those that are equal to it."""
    _insert(a, bisect_right(a, x if key is None else key(x), lo, hi, key), x)


def _insert(a: Any, place: int, x: Any) -> None:
    """``a.insert(place, x)``."""
    a.append(x)
    free = len(a) - 1
    while free > place:
        a[free] = a[free - 1]
        free -= 1
    a[free] = x
