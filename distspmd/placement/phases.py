"""Phases: loops in which an array may live elsewhere than in the rest of the program.

A loop works on a copy of the array then, which has a home of its own. A schedule names that home
by the array, and by the loop as the one so many loops outside of some space: ``"u in loop 1 around
u.2"`` is the innermost loop around ``u.2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dace import SDFG, SDFGState, data
from dace.sdfg.state import ControlFlowBlock, LoopRegion

from distspmd.analysis.accesses import control_reads, loops_around
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.loop_runs import times
from distspmd.analysis.uses import Use

_KEY = re.compile(r"(\S+) in loop ([1-9]\d*) around (\S+)\Z")


@dataclass(frozen=True)
class LoopHome:
    """A loop in which an array has a home of its own.

    Attributes:
        array: the array.
        level: of the loop: 1 for the innermost one around the space.
        space: name of an iteration space in the loop.
    """

    array: str
    level: int
    space: str

    @classmethod
    def parse(cls, text: object) -> LoopHome | None:
        """The loop that a text names; None where it is the name of an array."""
        found = _KEY.match(text) if isinstance(text, str) else None
        return None if found is None else cls(found[1], int(found[2]), found[3])

    @classmethod
    def of(
        cls, array: str, loop: LoopRegion, spaces: Iterable[IterationSpace], named: frozenset[str]
    ) -> LoopHome | None:
        """How a schedule names a loop; None if no space in it has a name that lasts."""
        for space in spaces:
            around = list(loops_around(space.state)) if space.name in named else []
            for level, other in enumerate(around, 1):
                if other is loop:
                    return cls(array, level, space.name)
        return None

    def __str__(self) -> str:
        return f"{self.array} in loop {self.level} around {self.space}"

    def loop(self, spaces: Iterable[IterationSpace]) -> LoopRegion | None:
        """The loop itself; None if there is none such."""
        state = next((space.state for space in spaces if space.name == self.space), None)
        around = [] if state is None else list(loops_around(state))
        return around[self.level - 1] if self.level <= len(around) else None


def loops_of(uses: Sequence[Use]) -> list[LoopRegion]:
    """The loops around any of some uses, the outer ones first."""
    found: dict[int, LoopRegion] = {}
    for use in uses:
        for loop in reversed(list(loops_around(use.space.state))):
            found.setdefault(id(loop), loop)
    return list(found.values())


def is_in(block: ControlFlowBlock, region: LoopRegion) -> bool:
    """Whether a state, or a loop, is in a loop."""
    return any(loop is region for loop in loops_around(block))


def states_in(loop: LoopRegion) -> Iterator[SDFGState]:
    """The states of a loop and of all loops in it."""
    blocks = loop.all_control_flow_blocks()
    return (block for block in blocks if isinstance(block, SDFGState))


def is_array_of_spaces(sdfg: SDFG, name: str, uses: Sequence[Use]) -> bool:
    """Whether a container is an array that only spaces of the program itself use."""
    container = sdfg.arrays.get(name)
    return (
        isinstance(container, data.Array)
        and not isinstance(container, data.View)
        and all(use.space.state.sdfg is sdfg for use in uses)
        and not any(control_reads(sdfg, name))
    )


def runs_more_often(loop: LoopRegion, uses: Sequence[Use]) -> bool:
    """Whether a loop uses a container more often than it is come to: else a copy spares nothing."""
    often = times(loop)
    return any(is_in(use.space.state, loop) and use.times > often for use in uses)
