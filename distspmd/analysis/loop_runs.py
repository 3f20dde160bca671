"""How often loops run what is in them, and which values of theirs choose what it does.

Where there are too many iterations, evenly spaced ones stand for all: that is for costs alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from dace import SDFGState
from dace.sdfg.state import ControlFlowBlock, LoopRegion
from dace.transformation.passes.analysis import loop_analysis
from numpy.typing import NDArray

from distspmd.analysis.accesses import loops_around, runs_in_each_iteration
from distspmd.analysis.evaluation import evaluate
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.errors import UnsupportedProgram
from distspmd.plans.heuristics import HEURISTICS

_SHOWN = 1 << 10
"""Runs by which costs are estimated."""
_COUNTED = 1 << 16
"""Runs up to which those of loops that begin or end where others say are counted."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of a block, in their order.

    Attributes:
        values: of the variables of loops around it, in each run.
        weights: how many runs each one stands for.
        is_known: whether the ends of all loops are.
    """

    values: Mapping[str, NDArray[np.int64]]
    weights: NDArray[np.float64]
    is_known: bool

    @classmethod
    def of(cls, block: ControlFlowBlock, most: int = _SHOWN) -> Runs:
        """All runs, or about so many of them, evenly spaced in each of the loops."""
        loops = list(reversed(list(loops_around(block))))
        found = cls._shown(loops, [most] * len(loops))
        if len(loops) > 1 and not (found.weights == 1).all():
            return cls._shown(loops, [most ** ((n + 1) / len(loops)) for n in range(len(loops))])
        return found

    @classmethod
    def _shown(cls, loops: Sequence[LoopRegion], most: Sequence[float]) -> Runs:
        """Runs of loops within each other, of which so many are shown of each and those around."""
        values: dict[str, NDArray[np.int64]] = {}
        weights, is_known = np.ones(1), True
        for loop, shown in zip(loops, most, strict=True):
            found = _ends(loop, values)
            if found is None:
                weights, is_known = weights * HEURISTICS.unknown_loop, False
                continue
            begins, lengths, step = (np.broadcast_to(each, len(weights)) for each in found)
            each = max(1, int(shown // max(1, len(weights))))
            most_each = lengths if lengths.sum() <= shown else each
            picked = np.minimum(lengths, most_each)
            within = np.arange(picked.sum()) - np.repeat(np.cumsum(picked) - picked, picked)
            begins, lengths, step, weights, often = (
                np.repeat(each, picked) for each in (begins, lengths, step, weights, picked)
            )
            values = {name: np.repeat(array, picked) for name, array in values.items()}
            values[loop.loop_variable] = begins + step * ((2 * within + 1) * lengths // (2 * often))
            weights = weights * lengths / often
        return cls(values, weights, is_known)

    @property
    def are_all(self) -> bool:
        """Whether these are all that there are."""
        return self.is_known and bool((self.weights == 1).all())

    @property
    def count(self) -> int:
        """How many there are, as far as loops tell."""
        return round(float(self.weights.sum()))


def _ends(
    loop: LoopRegion, values: Mapping[str, NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int] | None:
    """First value, number of values and step of a loop, in each iteration of those around it."""
    ends = [
        loop_analysis.get_init_assignment(loop),
        loop_analysis.get_loop_end(loop),
        loop_analysis.get_loop_stride(loop),
    ]
    if any(end is None for end in ends):
        return None
    first, last, step = map(sympy.sympify, ends)
    names = {symbol.name for end in (first, last) for symbol in end.free_symbols}
    if not names <= values.keys() or not step.is_Integer or not step:
        return None
    try:
        begins, finals = (np.asarray(evaluate(end, values), np.int64) for end in (first, last))
    except UnsupportedProgram:
        return None
    return begins, np.maximum((finals - begins) // int(step) + 1, 0), int(step)


def times(block: ControlFlowBlock) -> int:
    """How often a block is come to, as far as loops around it tell."""
    return Runs.of(block).count


def sweeps(block: ControlFlowBlock, names: Collection[str]) -> int:
    """How often the outermost loop around a block begins of those whose variable is named."""
    chosen = [loop for loop in loops_around(block) if loop.loop_variable in names]
    return times(chosen[-1]) if chosen else 1


def times_exactly(state: SDFGState) -> int | None:
    """How often a state runs in every run of the program; None where that is not known before."""
    if not runs_in_each_iteration(state):
        return None
    runs = Runs.of(state)
    if not runs.are_all and runs.is_known and not _is_even(state):
        runs = Runs.of(state, _COUNTED)
        return runs.count if runs.are_all else None
    return runs.count if runs.is_known else None


def all_runs(state: SDFGState) -> Runs | None:
    """The runs of a state in every run of the program; None where they are not known, or many."""
    if not runs_in_each_iteration(state):
        return None
    runs = Runs.of(state)
    if not runs.are_all and runs.is_known:
        runs = Runs.of(state, _COUNTED)
    return runs if runs.are_all else None


def _is_even(state: SDFGState) -> bool:
    """Whether each loop around a state has as many iterations whatever those around it."""
    found = [_ends(loop, {}) for loop in loops_around(state)]
    return all(each is not None for each in found)


def busiest(space: IterationSpace, parts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Iterations that the busiest rank has in a run of the space, on the average of all runs.

    Of a range that loops choose each rank has what lies in its tile. Loops are left as such because
    their iterations need each other, so that all ranks wait for the one that has most.

    Args:
        parts: number of tiles along each parameter, of each candidate: (candidates, parameters).
    """
    found = np.ones((len(parts), 1))
    runs = Runs.of(space.state) if space.chosen else None
    now = dict(space.chosen)
    for d, (name, hull) in enumerate(zip(space.parameters, space.ranges, strict=True)):
        first, length = int(hull.begin), hull.iterations
        tile = -(-hull.divisible // parts[:, d])[:, None]
        begin, end = np.zeros(1, np.int64), np.full(1, length)
        if name in now and runs is not None:
            try:
                ends = (evaluate(each, runs.values) for each in (now[name].begin, now[name].end))
                begin, end = (np.atleast_1d(each) - first for each in ends)
            except (KeyError, UnsupportedProgram):  # data choose where, and not how many
                count = sympy.expand(now[name].end - now[name].begin)
                end = np.full(1, min(length, int(count)) if count.is_Integer else length)
        found = found * _most_within(begin, end, np.maximum(tile, 1))
    weights = np.ones(1) if runs is None else runs.weights
    if not weights.sum():
        return np.zeros(len(parts))
    found = np.broadcast_to(found, (len(parts), len(weights)))
    mean: NDArray[np.float64] = found @ weights / weights.sum()
    return mean


def _most_within(
    begin: NDArray[np.int64], end: NDArray[np.int64], tile: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Most numbers of an interval that lie in one tile, of tiles of equal size from 0 on."""
    first, last = begin // tile, (end - 1) // tile
    at_ends = np.maximum((first + 1) * tile - begin, end - last * tile)
    several = np.where(last - first > 1, tile, at_ends)
    return np.where(end > begin, np.where(first == last, end - begin, several), 0)
