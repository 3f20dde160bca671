"""``distspmd.map``: loops whose iterations have no order, by promise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any


class ParallelMap:
    """Ranges of a loop whose iterations do not depend on each other.

    ``for i, j in distspmd.map[0:n, 0:m]`` is a space of iterations of its own, which a schedule may
    split: each iteration reads what was there before the loop or what it has written itself. In
    plain Python it runs over the same indices, in their order.
    """

    def __getitem__(self, ranges: slice | tuple[slice, ...]) -> Iterator[Any]:
        """The indices: numbers for one range, tuples for more.

        Raises:
            TypeError: something is no range, or has no end.
        """
        every = ranges if isinstance(ranges, tuple) else (ranges,)
        if any(not isinstance(r, slice) or r.stop is None for r in every):
            raise TypeError(f"distspmd.map takes ranges with ends, map[0:n, 0:m]; not {ranges!r}.")
        runs = [range(r.start or 0, r.stop, 1 if r.step is None else r.step) for r in every]
        return iter(runs[0]) if len(runs) == 1 else product(*runs)


map = ParallelMap()
