"""Windows of sums: ranks add up about as much as an iteration of a loop has, not as the longest.

``for k: r[:n - k] = q @ a[:, k:]``, with the sum over rows of several ranks, writes ever less of
``r``. A plan moves boxes that are known before the run, and would add up all of ``r`` each time.
Such a move has several plans, each for a part of the range; an iteration runs the smallest that
contains what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import sympy
from numpy.typing import NDArray

from distspmd.analysis.evaluation import evaluate
from distspmd.analysis.iteration_spaces import ParameterRange
from distspmd.analysis.loop_runs import all_runs
from distspmd.analysis.uses import Use, Write
from distspmd.errors import UnsupportedProgram
from distspmd.layouts.layout import Layout
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.redistribution import Redistribution

_INT_FLOOR = sympy.Function("int_floor")  # as DaCe spells a division of indices


@dataclass(frozen=True)
class Windows:
    """The parts of a move of which each run makes one.

    Attributes:
        moves: ever larger ones; the last is of all that any iteration wrote.
        number: which of them is made, over the variables of loops.
        times: how often each is made in a run of the program.
    """

    moves: tuple[Redistribution, ...]
    number: sympy.Expr
    times: tuple[int, ...]


@dataclass(frozen=True)
class _Range:
    """What iterations write of a dimension, from its first element on.

    Attributes:
        dimension: of the container.
        length: of what an iteration writes, over the variables of loops.
        lengths: in each run.
    """

    dimension: int
    length: sympy.Expr
    lengths: NDArray[np.int64]


def windows_of(use: Use, move: Redistribution) -> Windows | None:
    """The windows of a move that brings what a use wrote to its home; None where it has none.

    Elements that an iteration does not write keep what they held, whether they move or not, so no
    window has to leave them out.
    """
    if not isinstance(use, Write) or not use.layout.partial or use.times < 2:
        return None
    for found in _ranges(use):
        whole = int(found.lengths.max(initial=0))
        step = -(-whole // HEURISTICS.windows)
        if not step:
            continue
        count = -(-whole // step)
        numbers = np.clip((found.lengths - 1) // step, 0, count - 1)
        moved = float(np.mean(np.minimum((numbers + 1) * step, whole)))
        if count > 1 and moved <= HEURISTICS.window_gain * move.source.extents[found.dimension]:
            ends = [min((number + 1) * step, whole) for number in range(count)]
            return Windows(
                tuple(_start_of(move, found.dimension, end) for end in ends),
                _INT_FLOOR(sympy.Max(0, found.length - 1), step),
                tuple(np.bincount(numbers, minlength=count).tolist()),
            )
    return None


def _ranges(use: Write) -> Iterator[_Range]:
    """Dimensions of which loops choose where what is written ends."""
    space, runs = use.space, all_runs(use.space.state)
    chosen: dict[str, ParameterRange] = dict(space.chosen)
    if runs is None:
        return
    for dimension, name in enumerate(use.index):
        if name is None or name not in chosen or chosen[name].begin != 0:
            continue
        try:
            ends = evaluate(chosen[name].end, runs.values)
        except (KeyError, UnsupportedProgram):
            continue
        yield _Range(dimension, chosen[name].end, np.broadcast_to(ends, len(runs.weights)))


def _start_of(move: Redistribution, dimension: int, end: int) -> Redistribution:
    """A move of the start of an array, which ends sooner in a dimension."""
    source, target = (_ended(layout, dimension, end) for layout in (move.source, move.target))
    return replace(move, source=source, target=target)


def _ended(layout: Layout, dimension: int, end: int) -> Layout:
    """What the tiles of a layout have of the start of the array."""
    extents = tuple(end if d == dimension else n for d, n in enumerate(layout.extents))
    bounds = np.array(layout.bounds)
    bounds[:, dimension] = np.minimum(bounds[:, dimension], end)
    bounds[(bounds[:, :, 0] >= bounds[:, :, 1]).any(axis=1)] = 0
    return Layout.of_bounds(layout.mesh, extents, bounds, layout.partial)
