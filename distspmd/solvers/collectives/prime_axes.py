"""The prime factors of mesh axes, called *digits*, and which of them split which dimension.

A rank is a number in mixed radix, and each digit has a prime base. A layout of blocks is a stack of
digits for each dimension, with the minor digit on top. A collective of the normal form takes digits
from the top of one stack and puts them on another. A sequence of weak types is *realised* if the
digits can be chosen such that the final stacks are those of the target; no permutation of ranks is
then needed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.solvers.collectives.search import Move, WeakType, primes


@dataclass(frozen=True, slots=True)
class Digit:
    """Digit ``rank // stride % base`` of a rank."""

    base: int
    stride: int
    name: str


Stack = tuple[Digit, ...]
"""Digits that cut a dimension, minor first."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Which digits cut each dimension, and over which the array is partial."""

    stacks: tuple[Stack, ...]
    partial: Stack = ()

    @property
    def weak(self) -> WeakType:
        """What is left when the order of the ranks is forgotten."""
        parts = tuple(size(stack) for stack in self.stacks)
        return WeakType(parts, size(self.partial))


def size(stack: Sequence[Digit]) -> int:
    """Number of values that the digits take."""
    return math.prod(digit.base for digit in stack)


def refinements(source: Mesh, target: Mesh) -> Iterator[tuple[Digit, ...]]:
    """Digits that both meshes are made of, minor first; none where their axes cut across.

    An axis whose size has different prime factors has several orders of digits.
    """
    cuts = sorted(_strides(source) | _strides(target))
    if any(high % low for low, high in itertools.pairwise(cuts)):
        return
    orders = [list(_orders(primes(high // low))) for low, high in itertools.pairwise(cuts)]
    for order in itertools.product(*orders):
        bases = [base for segment in order for base in segment]
        strides = list(itertools.accumulate(bases, lambda a, b: a * b, initial=1))
        digits = zip(bases, strides, strict=False)
        yield tuple(_named([Digit(base, stride, "") for base, stride in digits], source))


def _orders(bases: tuple[int, ...], most: int = 16) -> Iterator[tuple[int, ...]]:
    """Different orders of bases, smallest first; not all of them where there are very many."""
    if not bases:
        yield ()
        return
    for first in sorted(set(bases)):
        at = bases.index(first)
        rest = (*bases[:at], *bases[at + 1 :])
        for order in itertools.islice(_orders(rest, most), most):
            yield (first, *order)


def _strides(mesh: Mesh) -> set[int]:
    return {*itertools.accumulate(reversed(mesh.shape), lambda a, b: a * b, initial=1)}


def of_axis(digits: Sequence[Digit], mesh: Mesh, axis: str) -> Stack:
    """Digits of an axis, minor first."""
    after = mesh.shape[mesh.names.index(axis) + 1 :]
    low = math.prod(after)
    high = low * mesh[axis]
    return tuple(digit for digit in digits if low <= digit.stride < high)


def _named(digits: list[Digit], mesh: Mesh) -> Iterator[Digit]:
    """An axis of one digit gives it its name; several are numbered, minor first."""
    names: dict[Digit, str] = {}
    for axis in mesh.names:
        own = of_axis(digits, mesh, axis)
        for number, digit in enumerate(own, start=1):
            name = axis if len(own) == 1 else f"{axis}{number}"
            names[digit] = f"{name}_" if name in mesh.names and len(own) > 1 else name
    return (replace(digit, name=names[digit]) for digit in digits)


def placement(layout: Layout, digits: Sequence[Digit]) -> Placement:
    """The digits of a layout of blocks."""
    assert layout.splits is not None
    stacks = tuple(
        tuple(digit for axis in split.axes for digit in of_axis(digits, layout.mesh, axis))
        for split in layout.splits
    )
    if layout.partial is None:
        return Placement(stacks)
    if layout.partial.axes is None:
        used = {digit for stack in stacks for digit in stack}
        return Placement(stacks, tuple(digit for digit in digits if digit not in used))
    axes = reversed(layout.partial.axes)
    return Placement(
        stacks, tuple(digit for axis in axes for digit in of_axis(digits, layout.mesh, axis))
    )


def realise(
    moves: Sequence[Move],
    source: Placement,
    target: Placement,
    digits: Sequence[Digit],
    effort: int = 400,
) -> tuple[Placement, ...] | None:
    """The placement after each collective, if the digits can be chosen so that no rank permutes."""
    return _Realisation(moves, source, target, digits, effort).placements()


class _Realisation:
    def __init__(
        self,
        moves: Sequence[Move],
        source: Placement,
        target: Placement,
        digits: Sequence[Digit],
        effort: int,
    ) -> None:
        self.moves, self.source, self.target, self.digits = moves, source, target, digits
        self.effort = effort
        weak = [source.weak]
        for move in moves:
            weak.append(weak[-1].after(move))
        lowest = weak[-1].parts
        self.lowest = [lowest]
        for held in reversed(weak[:-1]):
            lowest = tuple(map(min, lowest, held.parts))
            self.lowest.append(lowest)
        self.lowest.reverse()

    def placements(self) -> tuple[Placement, ...] | None:
        """Depth first, the digits that the target has in a dimension before the others."""
        return self._from(0, self.source)

    def _from(self, at: int, held: Placement) -> tuple[Placement, ...] | None:
        self.effort -= 1
        if self.effort < 0 or not self._agrees(at, held):
            return None
        if at == len(self.moves):
            return () if held.stacks == self.target.stacks else None
        for after in self._after(self.moves[at], held):
            rest = self._from(at + 1, after)
            if rest is not None:
                return (after, *rest)
        return None

    def _agrees(self, at: int, held: Placement) -> bool:
        """Whether what no later collective touches is as in the target."""
        return all(
            bottom(stack, lowest) == bottom(goal, lowest)
            for stack, goal, lowest in zip(
                held.stacks, self.target.stacks, self.lowest[at], strict=True
            )
        )

    def _after(self, move: Move, held: Placement) -> Iterator[Placement]:
        stacks, partial = list(held.stacks), held.partial
        if move.take >= 0:
            taken = top(stacks[move.take], move.factor)
            if taken is None:
                return
            stacks[move.take] = stacks[move.take][len(taken) :]
            choices: Iterator[Stack] = (
                itertools.permutations(taken) if move.give >= 0 else iter([()])
            )
        elif move.kind is StepKind.COPY:
            used = {digit for stack in (*stacks, partial) for digit in stack}
            free = [digit for digit in self.digits if digit not in used]
            choices = self._chosen(free, move)
        else:
            choices = self._chosen(list(partial), move)
        for chosen in choices:
            after = list(stacks)
            if move.give >= 0:
                after[move.give] = (*chosen, *stacks[move.give])
            left = tuple(digit for digit in partial if digit not in chosen)
            yield Placement(tuple(after), left)

    def _chosen(self, free: list[Digit], move: Move) -> Iterator[Stack]:
        """Digits for a number of parts, in all orders, those of the target first."""
        goal = self.target.stacks[move.give] if move.give >= 0 else ()
        free.sort(key=lambda digit: goal.index(digit) if digit in goal else len(goal))
        wanted = sorted(primes(move.factor))
        for chosen in itertools.permutations(free, len(wanted)):
            if sorted(digit.base for digit in chosen) == wanted:
                yield chosen


def top(stack: Stack, parts: int) -> Stack | None:
    """The minor digits that give a number of parts, if some do."""
    for count in range(len(stack) + 1):
        if size(stack[:count]) == parts:
            return stack[:count]
    return None


def bottom(stack: Stack, parts: int) -> Stack | None:
    """The major digits that give a number of parts, if some do."""
    for count in range(len(stack), -1, -1):
        if size(stack[count:]) == parts:
            return stack[count:]
    return None
