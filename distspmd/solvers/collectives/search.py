"""The typed search for a sequence of collectives (Rink et al., arXiv 2112.01075), on weak types.

A *weak type* says into how many parts each dimension is split, and how many operands each element
has, but not which rank holds which part. The search covers sequences in the normal form

    slice*  (all-to-all | reduce-scatter | all-reduce)*  all-gather*

in which no tile is larger than the larger of the source and the target tile. It also covers gathers
that are sliced again, where that memory allows them and latency makes them cheaper. A step may move
any factor of a number of parts, so steps of one kind on several axes are one step; slices may split
further than source and target do (over-partitioning). The ranks are assigned later, which decides
whether a permutation is needed.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from distspmd.plans.collectives import StepKind
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine


class Move(NamedTuple):
    """One collective on weak types: ``factor`` parts leave dimension ``take`` and cut ``give``.

    A slice has no ``take``, an all-gather no ``give``, an all-reduce neither.
    """

    kind: StepKind
    factor: int
    take: int = -1
    give: int = -1


SLICE = StepKind.COPY


class WeakType(NamedTuple):
    """Parts of each dimension, and operands of each element."""

    parts: tuple[int, ...]
    operands: int = 1

    @property
    def tiles(self) -> int:
        """Number of different tiles, each with all its operands."""
        return math.prod(self.parts)

    def after(self, move: Move) -> WeakType:
        """The weak type that a collective leads to."""
        parts, operands = list(self.parts), self.operands
        if move.take >= 0:
            parts[move.take] //= move.factor
        elif move.kind.spec.from_all:
            operands //= move.factor
        if move.give >= 0:
            parts[move.give] *= move.factor
        return WeakType(tuple(parts), operands)


class Price(Protocol):
    """What a collective costs, in any unit."""

    def of(self, kind: StepKind, factor: int, before: float) -> float:
        """Cost of a collective in groups of ``factor`` ranks on a tile of ``before`` elements."""

    def gathers(self, factors: tuple[int, ...], before: float) -> float:
        """Cost of the gathers at the end, one for each dimension, the smallest factor first."""

    def arrival(self, factor: int, tile: float) -> float:
        """At most the cost of all steps by which ``factor`` parts reach a dimension."""


@dataclass(frozen=True, slots=True)
class Transfers:
    """Elements that a rank sends, as the paper counts them (its figure 11)."""

    def of(self, kind: StepKind, factor: int, before: float) -> float:
        """Elements of one collective."""
        if kind is SLICE:
            return 0
        if kind is StepKind.ALL_GATHER:
            return factor * before
        return 2 * before if kind is StepKind.ALL_REDUCE else before

    def gathers(self, factors: tuple[int, ...], before: float) -> float:
        """The tile after each."""
        sizes: Iterator[int] = itertools.accumulate(factors, operator.mul)
        return sum(before * size for size in sizes)

    def arrival(self, factor: int, tile: float) -> float:
        """One tile."""
        return tile


@dataclass(frozen=True, slots=True)
class Seconds:
    """Time on a machine, as :mod:`distspmd.plans.cost` counts it for even tiles."""

    machine: Machine
    itemsize: int

    def of(self, kind: StepKind, factor: int, before: float) -> float:
        """Seconds of one collective."""
        if kind is SLICE:
            return 0
        alpha, tree = self.machine.alpha, math.ceil(math.log2(factor))
        beta, copy = self.machine.beta * self.itemsize, self.machine.copy * self.itemsize
        share = before / factor
        if kind is StepKind.ALL_GATHER:
            return tree * alpha + before * ((factor - 1) * beta + copy)
        if kind is StepKind.PERMUTE:
            return 2 * alpha + before * beta
        if kind is StepKind.ALL_REDUCE:
            return 2 * tree * alpha + 2 * (before - share) * beta + before * copy
        calls = tree if kind is StepKind.REDUCE_SCATTER else 2 * (factor - 1)
        return calls * alpha + (before - share) * beta + share * copy

    def gathers(self, factors: tuple[int, ...], before: float) -> float:
        """One call for all."""
        return self.of(StepKind.ALL_GATHER, math.prod(factors), before)

    def arrival(self, factor: int, tile: float) -> float:
        """The bytes that no sequence of steps saves, and the fewest calls."""
        calls = len(primes(factor)) * self.machine.alpha
        return calls + tile * (1 - 1 / factor) * self.machine.beta * self.itemsize


@dataclass(frozen=True)
class Problem:
    """From a weak type to another, of an array with ``extents`` that the parts divide."""

    extents: tuple[int, ...]
    ranks: int
    source: WeakType
    target: WeakType

    def tile(self, held: WeakType) -> float:
        """Elements of a tile."""
        return math.prod(self.extents) / held.tiles


Sequence = tuple[float, tuple[Move, ...]]
"""Collectives, and what they cost together."""


def sequences(
    problem: Problem,
    price: Price,
    effort: int = HEURISTICS.search_types,
    more: int = HEURISTICS.further_types,
    repeats: int = HEURISTICS.search_repeats,
) -> Iterator[Sequence]:
    """Sequences of collectives in the order of their cost, the cheapest first.

    Args:
        problem: source and target.
        price: what a collective costs.
        effort: types to look at for the first sequence. If that is too few, a search that hurries
            to the target looks for any.
        more: types to look at for the others.
        repeats: how many ways to one type are followed.
    """
    search = _Search(problem, price)
    found = False
    for sequence in search.run(1.0, effort, more, repeats):
        found = True
        yield sequence
    if not found:
        yield from itertools.islice(search.run(HEURISTICS.search_hurry, effort, 0, 1), 1)


_ARRIVED = 1 << 30


class _Reached(NamedTuple):
    """What a collective leads to, for how much, and what is left to pay then."""

    held: WeakType
    may_slice: int
    moves: tuple[Move, ...]
    spent: float
    rest: float


_Path = tuple[Any, ...]
"""The moves of a sequence, the last ones behind all before them: ``(path, moves)``, or nothing."""


def _moves(path: _Path) -> tuple[Move, ...]:
    """All moves of a path, the first one first."""
    found: list[tuple[Move, ...]] = []
    while path:
        path, moves = path
        found.append(moves)
    return tuple(itertools.chain.from_iterable(reversed(found)))


class _Search:
    """Best first, by what is spent and what is left to pay at least."""

    def __init__(self, problem: Problem, price: Price) -> None:
        self.problem = problem
        self.price = price
        self.goal = problem.target.parts
        self.surcharge = HEURISTICS.step_surcharge * max(
            price.of(StepKind.ALL_GATHER, 2, 1.0), 1e-30
        )
        self.highest = max(problem.tile(problem.source), problem.tile(problem.target))
        self.sides = tuple(enumerate(problem.extents))
        self.twins = tuple(
            tuple(
                other
                for other in range(at)
                if self.goal[at] == self.goal[other] == 1 and extent == problem.extents[other]
            )
            for at, extent in self.sides
        )
        self.known: dict[tuple[WeakType, int], tuple[_Reached, ...]] = {}
        self.rests: dict[tuple[WeakType, int], float] = {}

    def run(self, weight: float, effort: int, more: int, repeats: int) -> Iterator[Sequence]:
        """Sequences in the order of their cost; a ``weight`` above one hurries to the target.

        The heap has estimates; of equal ones the last comes first.
        """
        begin = _Reached(self.problem.source, 0, (), 0.0, 0.0)
        heap: list[tuple[float, int, float, _Reached, _Path]] = [(0.0, 0, 0.0, begin, ())]
        seen: dict[tuple[WeakType, int], int] = {}
        number = 0
        while heap and effort > 0:
            _, _, spent, reached, before = heapq.heappop(heap)
            path = (before, reached.moves)
            if reached.may_slice == _ARRIVED:
                effort = min(effort, more)
                yield spent, _moves(path)
                continue
            key = (reached.held, reached.may_slice)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > repeats:
                continue
            effort -= 1
            for there in self.from_here(key):
                if seen.get(there[:2], 0) < repeats:
                    number -= 1
                    total = spent + there.spent
                    estimate = total + weight * there.rest
                    heapq.heappush(heap, (estimate, number, total, there, path))

    def from_here(self, key: tuple[WeakType, int]) -> tuple[_Reached, ...]:
        """What one collective leads to, or all gathers at the end."""
        if key not in self.known:
            self.known[key] = tuple(self._successors(*key))
        return self.known[key]

    def _successors(self, held: WeakType, may_slice: int) -> Iterator[_Reached]:
        tile = self.problem.tile(held)
        if held.operands == 1 and not any(
            have % want for have, want in zip(held.parts, self.goal, strict=True)
        ):
            yield self._gathered(held, tile)
        if may_slice < len(self.goal):
            for move in self._slices(held, may_slice):
                yield self._reached(held, tile, move, move.give + 1)
        for move in itertools.chain(self._all_to_alls(held), self._reductions(held)):
            yield self._reached(held, tile, move, len(self.goal))
        for move in self._early_gathers(held, tile):
            yield self._reached(held, tile, move, 0)

    def _reached(self, held: WeakType, tile: float, move: Move, may_slice: int) -> _Reached:
        there = held.after(move)
        spent = self.surcharge + self.price.of(move.kind, move.factor, tile)
        key = (there, may_slice)
        rest = self.rests.get(key)
        if rest is None:
            rest = self.rests[key] = self.rest(*key)
        return _Reached(there, may_slice, (move,), spent, rest)

    def _gathered(self, held: WeakType, tile: float) -> _Reached:
        """All gathers, the smallest factor first: the tiles of the others are smaller then."""
        pairs = enumerate(zip(held.parts, self.goal, strict=True))
        factors = sorted((have // want, at) for at, (have, want) in pairs if have > want)
        moves = tuple(Move(StepKind.ALL_GATHER, factor, take=at) for factor, at in factors)
        spent = self.surcharge * len(moves)
        if moves:
            spent += self.price.gathers(tuple(factor for factor, _ in factors), tile)
        return _Reached(WeakType(self.goal), _ARRIVED, moves, spent, 0.0)

    def _slices(self, held: WeakType, may_slice: int) -> Iterator[Move]:
        free = self.problem.ranks // (held.tiles * held.operands)
        for at, extent in self.sides[may_slice:]:
            if self._has_twin(held, at, may_slice):
                continue
            for factor in divisors(math.gcd(free, extent // held.parts[at])):
                yield Move(SLICE, factor, give=at)

    def _has_twin(self, held: WeakType, at: int, first: int = 0) -> bool:
        """Whether an earlier dimension is just like this one: whole, and whole in the end."""
        return held.parts[at] == 1 and any(
            other >= first and held.parts[other] == 1 for other in self.twins[at]
        )

    def _all_to_alls(self, held: WeakType) -> Iterator[Move]:
        for take, parts in enumerate(held.parts):
            if parts == 1:
                continue
            for give, extent in self.sides:
                if give == take or self._has_twin(held, give):
                    continue
                for factor in divisors(math.gcd(parts, extent // held.parts[give])):
                    yield Move(StepKind.ALL_TO_ALL, factor, take, give)

    def _early_gathers(self, held: WeakType, tile: float) -> Iterator[Move]:
        """Gathers to slice again, where the latency of an all-to-all is worse, as memory allows."""
        for take, parts in enumerate(held.parts):
            for factor in divisors(parts):
                gather, move = (
                    self.price.of(kind, factor, tile)
                    for kind in (StepKind.ALL_GATHER, StepKind.ALL_TO_ALL)
                )
                if gather < move and tile * factor <= self.highest:
                    yield Move(StepKind.ALL_GATHER, factor, take=take)

    def _reductions(self, held: WeakType) -> Iterator[Move]:
        for factor in divisors(held.operands):
            yield Move(StepKind.ALL_REDUCE, factor)
        for give, extent in self.sides:
            if self._has_twin(held, give):
                continue
            for factor in divisors(math.gcd(held.operands, extent // held.parts[give])):
                yield Move(StepKind.REDUCE_SCATTER, factor, give=give)

    def rest(self, held: WeakType, may_slice: int) -> float:
        """No more than what is left to pay."""
        tile = self.problem.tile(held)
        free = self.problem.ranks // (held.tiles * held.operands)
        missing = [
            (at >= may_slice, want // math.gcd(have, want))
            for at, (have, want) in enumerate(zip(held.parts, self.goal, strict=True))
            if have % want
        ]
        steps = self.surcharge * len(missing)
        found = 0.0
        surplus = held.tiles // math.prod(self.goal)
        if surplus > 1:
            found = self.price.of(StepKind.ALL_GATHER, surplus, tile)
        arriving = [factor for sliceable, factor in missing if not sliceable or free == 1]
        smallest = tile / held.operands
        if free > 1 and may_slice < len(self.goal):  # slices may come first: smaller tiles
            smallest /= free
            sliced = 1
            for factor in sorted(factor for sliceable, factor in missing if sliceable):
                sliced *= factor
                if sliced > free:
                    arriving.append(2)
        found += sum(self.price.arrival(factor, smallest) for factor in arriving)
        if held.operands > 1:
            found = max(found, self.price.arrival(held.operands, tile / free))
        return steps + found


@cache
def divisors(number: int) -> tuple[int, ...]:
    """Divisors above one, smallest first."""
    return tuple(factor for factor in range(2, number + 1) if number % factor == 0)


@cache
def primes(number: int) -> tuple[int, ...]:
    """Prime factors, smallest first."""
    for factor in range(2, math.isqrt(number) + 1):
        if number % factor == 0:
            return (factor, *primes(number // factor))
    return (number,) if number > 1 else ()
