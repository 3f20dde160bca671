"""Places in ordered sequences, with the comparisons that Python's ``bisect`` makes."""

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
