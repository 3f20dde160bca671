"""Functions of LAPACK that ranks can do together, and what they tell each other for that."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from distspmd.plans.dealt_matrix import TOGETHER, DealtMatrix
from distspmd.plans.library_matrix import LibraryMatrix
from distspmd.plans.matrix_exchange import MatrixExchange
from distspmd.plans.tall_matrix import TALL, TallMatrix


def exchange_of(data: str, function: str, *rest: Any, **others: Any) -> MatrixExchange:
    """A call of a function; arguments are those of :class:`MatrixExchange`."""
    kind: type[MatrixExchange] = TallMatrix
    if function not in TALL:
        kind = LibraryMatrix if TOGETHER[function].library else DealtMatrix
    return kind(data, function, *rest, **others)


def has_sides(function: str) -> tuple[bool, bool]:
    """Whether a function has right-hand sides, and whether an operand gives them."""
    row = TOGETHER.get(function)
    return bool(row and 1 in (*row.takes, *row.gives)), bool(row and 1 in row.takes)


def header_of(function: str) -> str:
    """The header in ``distspmd/kernels`` by which ranks do a function together."""
    if function in TALL:
        return "tall_matrix.hpp"
    if TOGETHER[function].library:
        return "scalapack.hpp"
    return "dealt_reflections.hpp" if TOGETHER[function].reflects else "dealt_matrix.hpp"


@functools.lru_cache(maxsize=4096)
def evenly(
    function: str, itemsize: int, extents: tuple[int, int, int], parts: int, others: int = 1
) -> MatrixExchange:
    """A call on a matrix whose rows are split into even parts.

    Args:
        function: that ranks can do together.
        itemsize: bytes of an element.
        extents: rows, columns, and right-hand sides.
        parts: of the rows.
        others: parts of the right-hand sides.
    """
    rows, columns, sides = extents
    own, its = (
        [*itertools.pairwise([-(-extent * p // count) for p in range(count + 1)])]
        for extent, count in ((rows, parts), (sides, others))
    )
    grid = [*itertools.product(own, its)]
    own_sides = tuple(part for _, part in grid) if others > 1 else ()
    of_rows = tuple(part for part, _ in grid)
    return exchange_of("", function, itemsize, columns, of_rows, sides, own_sides)
