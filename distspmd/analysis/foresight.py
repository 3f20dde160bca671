"""Foresight: what each rank touches, where nothing but loops and the ends of its tile decides that.

In ``for k: a[i, j] -= a[i, k] * a[k, j]`` iteration ``k`` reads column ``k`` of the rows of a tile
and row ``k`` of its columns. Each rank can tell that of every other rank, so nobody asks, and what
a run moves is known before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from dace import SDFGState

from distspmd.analysis.accesses import Dimension, runs_in_each_iteration
from distspmd.analysis.evaluation import evaluate
from distspmd.analysis.inspectors import Inspection, Let, Loop, Touch
from distspmd.analysis.loop_runs import Runs
from distspmd.layouts import relations
from distspmd.layouts.intervals import Numbers
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.redistribution import Redistribution

Interval = tuple[sympy.Expr, sympy.Expr]
"""First and last of some values."""
Steps = Mapping[str, tuple[sympy.Expr, sympy.Expr, sympy.Expr]]
"""First and last value and step of the parameters of a tiled map."""


@dataclass(frozen=True)
class ForeseenBox:
    """A box of indices.

    Attributes:
        ranges: in each dimension that is looked at.
        runs: nothing is touched unless all of these have a value.
    """

    ranges: tuple[Interval, ...]
    runs: tuple[Interval, ...]

    @property
    def names(self) -> set[str]:
        """All symbols in it."""
        ends = (end for interval in (*self.ranges, *self.runs) for end in interval)
        return {symbol.name for end in ends for symbol in end.free_symbols}


@dataclass(frozen=True)
class Foreseen:
    """What each rank touches.

    Attributes:
        ends: symbols that have a value of their own on each rank.
        boxes: what is touched, in these symbols and those of loops.
    """

    ends: tuple[str, ...]
    boxes: tuple[ForeseenBox, ...]

    @property
    def names(self) -> set[str]:
        """All symbols in it."""
        return {name for box in self.boxes for name in box.names}


def foresee(asked: Inspection, steps: Steps, of_ranks: Collection[str]) -> Foreseen | None:
    """What each rank touches; None where data decide it, or where it is more than some boxes.

    Args:
        asked: the inspection.
        steps: what the parameters of the space run over on a rank.
        of_ranks: symbols that have a value of their own on each rank.
    """
    boxes = [_box(touch, steps) for touch in asked.touches]
    found = [box for box in boxes if box is not None]
    if len(found) < len(boxes) or len(found) > HEURISTICS.foreseen_boxes:
        return None
    ends = {name for box in found for name in box.names if name in of_ranks}
    return Foreseen(tuple(sorted(ends)), tuple(found))


def _box(touch: Touch, steps: Steps) -> ForeseenBox | None:
    """The box that an access touches; None if that is no box, or if data decide it.

    Each loop moves one range by its own steps, or none.
    """
    loops = [loop for loop in touch.statements if isinstance(loop, Loop)]
    lets = [let for let in touch.statements if isinstance(let, Let)]
    names = {loop.name for loop in loops}
    if lets or len(names) < len(loops):
        return None
    runs = {name: (first, last) for name, (first, last, _) in steps.items()}
    ranges = list(touch.ranges)
    for loop in loops:
        first, last, step = steps.get(loop.name, (loop.first, loop.last, sympy.Integer(1)))
        runs[loop.name] = first, last
        moved = [d for d, each in enumerate(ranges) if loop.name in _names(each)]
        if step != 1 or len(moved) > 1 or names & _names(Dimension(first, last)):
            return None
        for d in moved:
            over = _over(ranges[d], loop.name, (first, last))
            if over is None:
                return None
            ranges[d] = over
    return ForeseenBox(tuple((r.first, r.last) for r in ranges), tuple(runs.values()))


def _over(dimension: Dimension, name: str, values: Interval) -> Dimension | None:
    """All indices of a range that a symbol moves by one, for all its values."""
    ends = []
    for end, value in zip((dimension.first, dimension.last), values, strict=True):
        symbols = [symbol for symbol in end.free_symbols if symbol.name == name]
        if len(symbols) != 1 or sympy.expand(end - symbols[0]).has(symbols[0]):
            return None
        ends.append(end.subs(symbols[0], value))
    return Dimension(*ends)


def _names(dimension: Dimension) -> set[str]:
    return {s.name for s in dimension.first.free_symbols | dimension.last.free_symbols}


def received_in_a_run(
    foreseen: Foreseen,
    state: SDFGState,
    symbols: Mapping[str, Sequence[int]],
    dimensions: Sequence[int],
    move: Redistribution,
) -> tuple[int, int] | None:
    """How often a state runs, and the bytes that all ranks together receive for it in a run.

    None where it is not known how often the state runs, or with which values of loops; or if these
    are more than are worth looking at.

    Args:
        foreseen: what ranks touch.
        state: where they fetch it.
        symbols: values of symbols on the first ranks; 0 on further ones.
        dimensions: in which it is foreseen.
        move: from where ranks hold elements to all that they may touch.
    """
    ranks = max(move.source.ranks, move.target.ranks)
    runs = Runs.of(state, HEURISTICS.foreseen_iterations // ranks)
    if not runs.are_all or not runs_in_each_iteration(state):
        return None
    values, count = runs.values, len(runs.weights)
    if not foreseen.names <= {*values, *foreseen.ends}:
        return None
    known = {name: array[:, None] for name, array in values.items()}
    for name in foreseen.ends:
        padded = np.zeros(ranks, np.int64)
        padded[: len(symbols[name])] = symbols[name]
        known[name] = padded[None, :]
    wanted, held = (relations.on_ranks(each, ranks) for each in (move.target, move.source))
    shape = count, ranks, *wanted.shape[1:]
    boxes = []
    for box in foreseen.boxes:
        touched = np.broadcast_to(wanted, shape).copy()
        for d, (first, last) in zip(dimensions, box.ranges, strict=True):
            touched[..., d, 0] = np.maximum(touched[..., d, 0], evaluate(first, known))
            touched[..., d, 1] = np.minimum(touched[..., d, 1], evaluate(last, known) + 1)
        for first, last in box.runs:
            some = evaluate(first, known) <= evaluate(last, known)
            touched *= np.broadcast_to(some, shape[:2])[..., None, None]
        boxes.append(touched)
    return count, int(_lacking(boxes, held).sum()) * move.dtype.itemsize


def _lacking(boxes: Sequence[Numbers], held: Numbers) -> Numbers:
    """Elements that boxes have together, and a tile has not."""
    found = np.zeros(boxes[0].shape[:-2], np.int64)
    for number in range(1, len(boxes) + 1):
        for some in itertools.combinations(boxes, number):
            common = some[0]
            for other in some[1:]:
                common = relations.common(common, other)
            lacking = relations.volumes(common) - relations.volumes(relations.common(common, held))
            found += lacking if number % 2 else -lacking
    return found
