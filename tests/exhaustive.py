"""The optimum of the alphabet of collectives, by looking at everything: slow, and sure.

No normal form is assumed here: slices, gathers and permutations may stand anywhere.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from distspmd.plans.collectives import StepKind
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers.collectives.prime_axes import (
    Digit,
    Placement,
    Stack,
    placement,
    refinements,
    size,
    top,
)
from distspmd.solvers.collectives.search import SLICE, Move, Price, Problem, WeakType, divisors


def shortest(
    starts: Iterable[tuple[float, Any]], after: Callable[[Any], Iterator[tuple[float, Any]]]
) -> dict[Any, float]:
    """Distance of everything that can be reached."""
    number = itertools.count()
    heap = [(distance, next(number), start) for distance, start in starts]
    heapq.heapify(heap)
    found: dict[Any, float] = {}
    while heap:
        distance, _, here = heapq.heappop(heap)
        if here in found:
            continue
        found[here] = distance
        for length, there in after(here):
            if there not in found:
                heapq.heappush(heap, (distance + length, next(number), there))
    return found


def weak_optimum(problem: Problem, price: Price) -> float:
    """Least cost between the weak types, without any permutation."""
    highest = max(problem.tile(problem.source), problem.tile(problem.target))

    def after(held: WeakType) -> Iterator[tuple[float, WeakType]]:
        tile = problem.tile(held)
        for move in _weak_moves(problem, held):
            there = held.after(move)
            if problem.tile(there) <= highest:
                yield price.of(move.kind, move.factor, tile), there

    return shortest([(0.0, problem.source)], after)[problem.target]


def _weak_moves(problem: Problem, held: WeakType) -> Iterator[Move]:
    dimensions = range(len(held.parts))
    free = problem.ranks // (held.tiles * held.operands)
    room = [problem.extents[at] // held.parts[at] for at in dimensions]
    for at in dimensions:
        for factor in divisors(math.gcd(free, room[at])):
            yield Move(SLICE, factor, give=at)
        for factor in divisors(math.gcd(held.operands, room[at])):
            yield Move(StepKind.REDUCE_SCATTER, factor, give=at)
        for factor in divisors(held.parts[at]):
            yield Move(StepKind.ALL_GATHER, factor, take=at)
            for give in dimensions:
                if give != at and room[give] % factor == 0:
                    yield Move(StepKind.ALL_TO_ALL, factor, at, give)
    for factor in divisors(held.operands):
        yield Move(StepKind.ALL_REDUCE, factor)


def optimum(move: Redistribution, problem: Problem, price: Price) -> float:
    """Least cost between the layouts on axes of prime sizes, with permutations where they pay."""
    return min(
        _optimum_on(digits, move, problem, price)
        for digits in refinements(move.source.mesh, move.target.mesh)
    )


def _optimum_on(
    digits: tuple[Digit, ...], move: Redistribution, problem: Problem, price: Price
) -> float:
    highest = max(problem.tile(problem.source), problem.tile(problem.target))
    source, target = placement(move.source, digits), placement(move.target, digits)

    def after(state: tuple[Placement, bool]) -> Iterator[tuple[float, tuple[Placement, bool]]]:
        held, permuted = state
        tile = problem.tile(held.weak)
        for kind, factor, there in _typed_moves(problem, held, digits):
            if problem.tile(there.weak) <= highest:
                yield price.of(kind, factor, tile), (there, permuted)

    plain = shortest([(0.0, (source, False))], after)
    reached: dict[WeakType, float] = {}
    for (held, _), distance in plain.items():
        if not held.partial:
            cost = distance + price.of(StepKind.PERMUTE, 1, problem.tile(held.weak))
            reached[held.weak] = min(cost, reached.get(held.weak, math.inf))
    starts = [
        (reached[held.weak], (held, True))
        for held in _placements(digits, len(problem.extents))
        if held.weak in reached
    ]
    permuted = shortest(starts, after)
    return min(plain.get((target, False), math.inf), permuted.get((target, True), math.inf))


def _placements(digits: tuple[Digit, ...], ndim: int) -> Iterator[Placement]:
    """All placements without partial axes."""
    for where in itertools.product(range(-1, ndim), repeat=len(digits)):
        stacks = [[d for d, at in zip(digits, where, strict=True) if at == k] for k in range(ndim)]
        for order in itertools.product(*map(itertools.permutations, stacks)):
            yield Placement(tuple(order))


Typed = tuple[StepKind, int, Placement]


def _typed_moves(problem: Problem, held: Placement, digits: tuple[Digit, ...]) -> Iterator[Typed]:
    used = {digit for stack in (*held.stacks, held.partial) for digit in stack}
    free = [digit for digit in digits if digit not in used]
    for pool, kind in ((free, SLICE), (held.partial, StepKind.REDUCE_SCATTER)):
        for order in _orders(pool):
            left = tuple(digit for digit in held.partial if digit not in order)
            if kind is StepKind.REDUCE_SCATTER:
                yield StepKind.ALL_REDUCE, size(order), Placement(held.stacks, left)
            for at in range(len(held.stacks)):
                yield from _pushed(problem, kind, at, order, Placement(held.stacks, left))
    for at, stack in enumerate(held.stacks):
        for factor in divisors(size(stack)):
            taken = top(stack, factor)
            if taken is not None:
                yield from _moved(problem, at, taken, held)


def _moved(problem: Problem, at: int, taken: Stack, held: Placement) -> Iterator[Typed]:
    """What leads a dimension's minor digits away."""
    stacks = tuple(s[len(taken) :] if k == at else s for k, s in enumerate(held.stacks))
    rest = Placement(stacks, held.partial)
    yield StepKind.ALL_GATHER, size(taken), rest
    for give in range(len(stacks)):
        for order in itertools.permutations(taken) if give != at else ():
            yield from _pushed(problem, StepKind.ALL_TO_ALL, give, order, rest)


def _pushed(
    problem: Problem, kind: StepKind, at: int, order: Stack, held: Placement
) -> Iterator[Typed]:
    if problem.extents[at] // size(held.stacks[at]) % size(order) == 0:
        stacks = tuple((*order, *s) if k == at else s for k, s in enumerate(held.stacks))
        yield kind, size(order), Placement(stacks, held.partial)


def _orders(pool: Iterable[Digit]) -> Iterator[tuple[Digit, ...]]:
    held = list(pool)
    for count in range(1, len(held) + 1):
        yield from itertools.permutations(held, count)
