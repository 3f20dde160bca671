"""Blocks to blocks by the shortest sequence of collectives within the memory of two tiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout, Partial, Split
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.group_messages import GroupMessages, intersections, volumes
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.plans.messages import Messages, Traffic
from distspmd.plans.plan import Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal
from distspmd.solvers.collectives.prime_axes import (
    Digit,
    Placement,
    placement,
    realise,
    refinements,
)
from distspmd.solvers.collectives.rank_maps import (
    TileMap,
    after,
    groups_of_digits,
    inverse,
    of_placement,
    permutation,
    place_among_holders,
)
from distspmd.solvers.collectives.search import (
    SLICE,
    Move,
    Price,
    Problem,
    Seconds,
    WeakType,
    sequences,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A sequence of collectives, and what it costs.

    ``placements`` of ``digits`` are what it leads to where no rank is permuted. Otherwise the
    permutation follows the first ``cut`` collectives.
    """

    cost: float
    moves: tuple[Move, ...]
    cut: int = 0
    digits: tuple[Digit, ...] = ()
    placements: tuple[Placement, ...] | None = None


@dataclass(frozen=True)
class Collectives:
    """Slices, then all-to-alls, reductions and at most one permutation, then all-gathers.

    The tiles on the way are no larger than the larger of the source and the target tile. Slices
    are no steps of the plan: the next step reads from the larger tile. Gathers in several
    dimensions are one step.
    """

    machine: Machine = field(default_factory=Machine)
    name: ClassVar[str] = "collectives"

    def on(self, machine: Machine) -> Collectives:
        """The solver that minimises the time on a machine."""
        return replace(self, machine=machine)

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Plan a sequence of collectives, or refuse."""
        reason = _refusal(redistribution)
        if reason:
            return Refusal(self.name, reason)
        problem = problem_of(redistribution)
        price = Seconds(self.machine, redistribution.dtype.itemsize)
        answer = best(redistribution, problem, price)
        if answer is None:
            return Refusal(self.name, "no sequence was found within the effort of the search")
        return _Writer(redistribution, problem, self.name).plan(answer)


def _refusal(move: Redistribution) -> str:
    """Why there is no sequence of collectives."""
    source, target = move.source, move.target
    for side in (source, target):
        if not side.is_blocks:
            return f"{side} is not a product of blocks"
    if source.ranks != target.ranks:
        return f"the meshes have {source.ranks} and {target.ranks} ranks"
    if move.accumulate:
        return "the target accumulates"
    if move.in_place:
        return "the target is filled in place"
    if 0 in source.extents:
        return "the array is empty"
    for dimension, extent in enumerate(source.extents):
        if padded_extent(move, dimension) == 0:
            tiles = [
                side.splits[dimension].tile(side.mesh) for side in (source, target) if side.splits
            ]
            return (
                f"dimension {dimension}, of {extent}, has tiles of {tiles[0]} and of {tiles[1]}, "
                "which cut no common extent evenly"
            )
    return ""


def padded_extent(move: Redistribution, dimension: int) -> int:
    """The extent that the tiles of both sides divide, at least that of the array; 0 for none."""
    assert move.source.splits is not None
    assert move.target.splits is not None
    found = 0
    for side in (move.source, move.target):
        split = (side.splits or ())[dimension]
        parts = split.parts(side.mesh)
        if parts > 1 and found not in (0, parts * split.tile(side.mesh)):
            return 0
        if parts > 1:
            found = parts * split.tile(side.mesh)
    return found or move.source.extents[dimension]


def problem_of(move: Redistribution) -> Problem:
    """The redistribution on weak types."""
    source, target = move.source, move.target
    types = [
        WeakType(tuple(split.parts(side.mesh) for split in side.splits or ()))
        for side in (source, target)
    ]
    if source.partial:
        operands = source.ranks // types[0].tiles
        if source.partial.axes is not None:
            operands = math.prod(source.mesh[axis] for axis in source.partial.axes)
        types[0] = WeakType(types[0].parts, operands)
    extents = tuple(padded_extent(move, dimension) for dimension in range(len(source.extents)))
    return Problem(extents, source.ranks, *types)


def best(move: Redistribution, problem: Problem, price: Price) -> Answer | None:
    """The cheapest sequence, with a permutation where it needs one."""
    found: Answer | None = None
    orders = list(
        itertools.islice(refinements(move.source.mesh, move.target.mesh), HEURISTICS.rank_orders)
    )
    ends = [
        (digits, placement(move.source, digits), placement(move.target, digits))
        for digits in orders
    ]
    for cost, moves in itertools.islice(sequences(problem, price), HEURISTICS.sequences):
        if found and found.cost <= cost:
            break
        for digits, source, target in ends:
            placements = realise(moves, source, target, digits)
            if placements is not None:
                return Answer(cost, moves, digits=digits, placements=placements)
        permuted = _permuted(problem, price, cost, moves)
        if permuted and (found is None or permuted.cost < found.cost):
            found = permuted
    return found


def _permuted(
    problem: Problem, price: Price, cost: float, moves: tuple[Move, ...]
) -> Answer | None:
    """The sequence with a permutation where the tiles are smallest."""
    held = problem.source
    cuts = []
    for cut, move in enumerate((*moves, None)):
        if held.operands == 1:
            cuts.append((price.of(StepKind.PERMUTE, 1, problem.tile(held)), cut))
        held = held.after(move) if move else held
    more, cut = min(cuts)
    return Answer(cost + more, moves, cut)


# --- from an answer to a plan ---


@dataclass(frozen=True)
class _Stage:
    """What ranks hold after a collective, and the group in which each took part."""

    kind: StepKind
    held: TileMap
    group: Numbers
    placement: Placement | None = None


class _Writer:
    def __init__(self, move: Redistribution, problem: Problem, solver: str) -> None:
        self.move = move
        self.problem = problem
        self.solver = solver
        self.ranks = problem.ranks
        self.source = _tile_map(move.source, problem.source)
        self.target = _tile_map(move.target, problem.target)

    def plan(self, answer: Answer) -> Plan:
        stages = self._fused(
            self._stages_of_ranks(answer)
            if answer.placements is None
            else self._stages_of_placements(answer, answer.placements)
        )
        steps: list[Step] = []
        scratch: list[Layout] = []
        before, buffer = self.source, 0
        for number, stage in enumerate(stages):
            if stage.kind is not SLICE:
                target = 1 if number == len(stages) - 1 else 2 + len(scratch)
                steps.append(self._step(stage, before, buffer, target))
                if target > 1:
                    scratch.append(self._layout(stage, answer.digits))
                buffer = target
            before = stage.held
        if buffer != 1:
            steps.append(self._copy(buffer))
        return Plan(self.move, self.solver, tuple(steps), tuple(scratch))

    def _fused(self, stages: Iterator[_Stage]) -> list[_Stage]:
        """Gathers that follow each other are one, in several dimensions at once."""
        found: list[_Stage] = []
        before = held = self.source
        for stage in stages:
            if stage.kind is StepKind.ALL_GATHER:
                if found and found[-1].kind is StepKind.ALL_GATHER:
                    found.pop()
                else:
                    before = held
                stage = replace(stage, group=_groups_of_gather(before, stage.held))
            found.append(stage)
            held = stage.held
        return found

    def _stages_of_placements(
        self, answer: Answer, placements: Sequence[Placement]
    ) -> Iterator[_Stage]:
        held = placement(self.move.source, answer.digits)
        for move, reached in zip(answer.moves, placements, strict=True):
            group = groups_of_digits(held, reached, self.ranks)
            yield _Stage(move.kind, of_placement(reached, self.ranks), group, reached)
            held = reached

    def _stages_of_ranks(self, answer: Answer) -> Iterator[_Stage]:
        """From both ends to the permutation."""
        held = self.source
        for move in answer.moves[: answer.cut]:
            held, group = after(move, held)
            yield _Stage(move.kind, held, group)
        want = self.target
        rest: list[_Stage] = []
        for move in reversed(answer.moves[answer.cut :]):
            before, group = after(inverse(move), want)
            rest.append(_Stage(move.kind, want, group))
            want = before
        sender = permutation(held, want)
        if (sender != np.arange(self.ranks)).any():
            yield _Stage(StepKind.PERMUTE, want, sender)
        yield from reversed(rest)

    def _step(self, stage: _Stage, before: TileMap, source: int, target: int) -> Step:
        extents, padding = self.move.source.extents, self.problem.extents
        have, want = (held.bounds(extents, padding) for held in (before, stage.held))
        if stage.kind is StepKind.PERMUTE:
            bounds = intersections(have[stage.group], want)
            messages = Messages.columns(stage.group, np.arange(self.ranks), bounds)
            groups = _cycles(stage.group)
        else:
            members = np.argsort(stage.group, kind="stable")
            size = self.ranks // len(np.unique(stage.group))
            table = members.reshape(-1, size)
            messages = _of_groups(stage.kind, table, have, want)
            groups = tuple(map(tuple, table.tolist()))
        reduction = self.move.reduction if stage.kind.spec.from_all else None
        return Step(stage.kind, source, target, groups, messages, reduction)

    def _copy(self, buffer: int) -> Step:
        every = np.arange(self.ranks)
        messages = Messages.columns(every, every, self.move.target.bounds)
        return Step(SLICE, buffer, 1, (), messages)

    def _layout(self, stage: _Stage, digits: Sequence[Digit]) -> Layout:
        """The layout of a buffer: on the axes of prime sizes where it has them."""
        extents = self.move.source.extents
        bounds = stage.held.bounds(extents, self.problem.extents)
        if stage.placement is not None:
            found = self._named(stage.placement, digits)
            if (found.bounds == bounds).all():
                return found
        boxes = tuple(tuple((lo, hi) for lo, hi in box) for box in bounds.tolist())
        return Layout(self.move.source.mesh, extents, explicit=boxes)

    def _named(self, held: Placement, digits: Sequence[Digit]) -> Layout:
        mesh = Mesh(**{digit.name: digit.base for digit in reversed(digits)})
        splits = tuple(
            Split(extent, tuple(digit.name for digit in stack))
            for extent, stack in zip(self.move.source.extents, held.stacks, strict=True)
        )
        partial = None
        if held.partial and self.move.reduction:
            names = tuple(digit.name for digit in reversed(held.partial))
            partial = Partial(self.move.reduction, names)
        return Layout(mesh, self.move.source.extents, splits=splits, partial=partial)


def _of_groups(kind: StepKind, groups: Numbers, have: Numbers, want: Numbers) -> Messages:
    """Messages of what ranks have and others of their group want.

    Their traffic is known before they are listed, of an all-to-all where all tiles are alike.
    """
    before, after_ = volumes(have), volumes(want)
    size = groups.shape[1]
    traffic = None
    even = len({*before.tolist()}) == len({*after_.tolist()}) == 1
    if groups.size * size > HEURISTICS.listed_messages and kind is StepKind.ALL_TO_ALL and even:
        kept = volumes(intersections(have, want))
        traffic = Traffic(
            sent=before - kept,
            received=after_ - kept,
            delivered=after_ - kept,
            copied=kept,
            partners=np.full(len(have), 2 * (size - 1)),
        )
    return GroupMessages(kind.spec, groups, have, want, traffic=traffic)


def _tile_map(layout: Layout, held: WeakType) -> TileMap:
    assert layout.splits is not None
    index = np.stack([layout.indices(split.axes) for split in layout.splits], axis=1)
    operand = layout.operands
    if layout.partial and layout.partial.axes is None:
        numbers = TileMap(WeakType(held.parts), index, np.zeros_like(operand))
        operand = place_among_holders(numbers.numbers(index, numbers.operand))
    return TileMap(held, index, operand)


def _groups_of_gather(before: TileMap, reached: TileMap) -> Numbers:
    place = place_among_holders(before.numbers(before.index, before.operand))
    tiles = reached.numbers(reached.index, reached.operand)
    return tiles * len(place) + place


def _cycles(senders: Numbers) -> tuple[tuple[int, ...], ...]:
    """Ranks among which a permutation stays, without those that it leaves alone."""
    found, seen = [], set()
    for start, sender in enumerate(senders.tolist()):
        cycle = []
        rank = start
        while rank not in seen and sender != start:
            seen.add(rank)
            cycle.append(rank)
            rank = int(senders[rank])
        if cycle:
            found.append(tuple(sorted(cycle)))
    return tuple(found)
