"""Lists in order, with the comparisons that Python's ``bisect`` makes."""

from __future__ import annotations

from typing import Any


def bisect_left(a: Any, x: Any, lo: int, hi: Any, key: Any) -> int:
    """The first place at which an element keeps the order."""
    end = len(a) if hi is None else hi
    while lo < end:
        middle = (lo + end) // 2
        there = a[middle] if key is None else key(a[middle])
        if there < x:
            lo = middle + 1
        else:
            end = middle
    return lo


def bisect_right(a: Any, x: Any, lo: int, hi: Any, key: Any) -> int:
    """The last place at which an element keeps the order."""
    end = len(a) if hi is None else hi
    while lo < end:
        middle = (lo + end) // 2
        there = a[middle] if key is None else key(a[middle])
        if x < there:
            end = middle
        else:
            lo = middle + 1
    return lo


def insort_left(a: Any, x: Any, lo: int, hi: Any, key: Any) -> None:
    """Insert an element before those that are equal to it."""
    _insert(a, bisect_left(a, x if key is None else key(x), lo, hi, key), x)


def insort_right(a: Any, x: Any, lo: int, hi: Any, key: Any) -> None:
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
