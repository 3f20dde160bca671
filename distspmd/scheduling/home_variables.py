"""Homes as variables of the problem: one of each container, and one of each loop in which it may
live elsewhere.

Where the variable of a loop takes the layout that the container has around it, the loop works in
place, and nothing is copied. Else a pair of both costs the copies, each time the loop is come to.
Where memory is limited, each layout is two choices of such a variable: of a copy, and of none,
which takes no memory and excludes all other layouts around the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from dace.sdfg.state import LoopRegion
from numpy.typing import NDArray

from distspmd.analysis.loop_runs import times
from distspmd.passes.compilation import Compilation
from distspmd.placement.phases import (
    LoopHome,
    is_array_of_spaces,
    is_in,
    loops_of,
    runs_more_often,
)
from distspmd.scheduling.container_choices import ChoiceCost, ContainerChoice, UseArrays
from distspmd.scheduling.costs import Costs

_SURELY = 1 - 1e-6
"""Of a time: what is below that is less for other reasons than rounding."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A loop in which a container may live elsewhere than around it.

    Attributes:
        loop: the loop.
        name: how a schedule names it.
        uses: of the container in the loop.
        times: how often the loop is come to.
    """

    loop: LoopRegion
    name: LoopHome
    uses: tuple[UseArrays, ...]
    times: int

    @property
    def is_written(self) -> bool:
        """Whether the loop writes the container."""
        return any(not use.is_read for use in self.uses)


def stages_of(compilation: Compilation, data: str, uses: Sequence[UseArrays]) -> list[Stage]:
    """Loops in which a container may live elsewhere, the outer ones first.

    A loop that has all uses of those around it is none, for its home could be theirs.
    """
    own = [use.slot.use for use in uses]
    if not is_array_of_spaces(compilation.sdfg, data, own):
        return []
    if any((use.operands > 1).any() for use in uses):  # which may stay apart in a home
        return []
    found: list[Stage] = []
    seen = {tuple(map(id, uses))}
    for loop in loops_of(own):
        inner = tuple(use for use in uses if is_in(use.slot.use.space.state, loop))
        if tuple(map(id, inner)) in seen or not runs_more_often(loop, [u.slot.use for u in inner]):
            continue
        name = LoopHome.of(data, loop, compilation.spaces, compilation.named)
        if name is not None:
            seen.add(tuple(map(id, inner)))
            found.append(Stage(loop, name, inner, times(loop)))
    return found


@dataclass(frozen=True, eq=False)
class HomeVariable:
    """The layouts of a container, and what they cost with each candidate of each of its uses.

    Attributes:
        container_choice: what it could live in.
        own: what each layout costs by itself.
        pairs: what each costs with candidates of a space, for the uses that have no other home.
        stage: the loop, of a home in a loop.
        link: of such a home with that of what is around: a row for each layout of its own.
        parts: homes in loops within.
        is_twofold: whether its first choices are layouts without a copy, and then those of a copy.
    """

    container_choice: ContainerChoice
    own: Costs
    pairs: list[tuple[str, Costs]]
    stage: Stage | None = None
    link: Costs = field(default_factory=lambda: Costs.none((0, 0)))
    parts: tuple[HomeVariable, ...] = ()
    is_twofold: bool = False

    @classmethod
    def of(
        cls, container_choice: ContainerChoice, stages: Sequence[Stage], is_limited: bool
    ) -> HomeVariable:
        """The home of a container, with those that it may have in loops.

        Args:
            container_choice: what it could live in.
            stages: the loops.
            is_limited: whether memory is.
        """
        pairs = {id(use): (use.space, container_choice.pair(use)) for use in container_choice.uses}
        copying = {
            written: container_choice.copying(written)
            for written in {each.is_written for each in stages}
        }

        def variable(
            stage: Stage | None, uses: Sequence[UseArrays], around: bool = False
        ) -> HomeVariable:
            within = [each for each in stages if each is not stage and _is_within(each, stage)]
            parts = [each for each in within if not any(_is_within(each, o) for o in within)]
            deeper = {id(use) for part in parts for use in part.uses}
            own = [pairs[id(use)] for use in uses if id(use) not in deeper]
            twofold = is_limited and stage is not None
            inner = tuple(variable(part, part.uses, twofold) for part in parts)
            if stage is None:
                return cls(container_choice, container_choice.own(), own, parts=inner)
            link = copying[stage.is_written] * stage.times
            return cls(
                container_choice,
                Costs.none((len(container_choice.candidates) * (1 + twofold),)),
                [(name, costs.repeated(1 + twofold)) for name, costs in own],
                stage,
                _twofold(link, around) if twofold else link,
                inner,
                twofold,
            )

        return variable(None, container_choice.uses)

    @property
    def volumes(self) -> NDArray[np.float64]:
        """Bytes of the largest tile, of each choice."""
        layouts = (
            self.container_choice.layouts.largest.astype(np.float64)
            * self.container_choice.itemsize
        )
        return np.concatenate([np.zeros_like(layouts), layouts]) if self.is_twofold else layouts

    @property
    def name(self) -> str:
        """How a schedule names it."""
        return self.container_choice.data if self.stage is None else str(self.stage.name)

    @property
    def family(self) -> list[HomeVariable]:
        """The home itself, and then all in loops within."""
        return [self, *(member for part in self.parts for member in part.family)]

    def given(
        self, chosen_of: Sequence[int], chosen: Mapping[str, int], around: int | None = None
    ) -> list[ChoiceCost]:
        """What one layout of each of the family costs, which a schedule gives.

        Args:
            chosen_of: layouts of the family, in its order.
            chosen: the candidate of each space.
            around: the layout around the loop, of a home in one.
        """
        choice, rest = chosen_of[0], list(chosen_of[1:])
        seconds, nbytes = float(self.own.seconds[choice]), float(self.own.nbytes[choice])
        for name, costs in self.pairs:
            seconds += float(costs.seconds[choice, chosen[name]])
            nbytes += float(costs.nbytes[choice, chosen[name]])
        if around is not None:
            seconds += float(self.link.seconds[choice, around])
            nbytes += float(self.link.nbytes[choice, around])
        count = len(self.container_choice.candidates)
        tiles = self.container_choice.layouts[[choice % count]]
        is_apart = choice >= count if self.is_twofold else choice != around
        tile = int(tiles.largest[0]) * self.container_choice.itemsize * is_apart
        found = [ChoiceCost(seconds, nbytes, tile, tiles, is_given=is_apart)]
        for part in self.parts:
            size = len(part.family)
            found += part.given(rest[:size], chosen, choice)
            rest = rest[size:]
        return found

    def cost_of(
        self, chosen_of: Sequence[int], chosen: Mapping[str, int], is_limited: bool
    ) -> list[ChoiceCost]:
        """What the family costs: what is chosen, or the one home that the lowering would choose.

        Args:
            chosen_of, chosen: as of :meth:`given`.
            is_limited: whether memory is, so that what is chosen stays where it takes less of it.
        """
        own, given = self.container_choice.cost_of(chosen), self.given(chosen_of, chosen)
        if len(given) == 1 and given[0].is_given and not self.is_twofold:
            told = self.container_choice.cost_of_given(chosen_of[0], chosen)
            least = min(
                given[0], told, key=lambda cost: cost.seconds
            )  # whole copies are read in place
            given = [replace(least, is_given=True)]
        better = sum(each.seconds for each in given) < _SURELY * own.seconds
        smaller = sum(each.tile for each in given) < own.tile
        if better or (is_limited and smaller):
            return given
        # a lowering may let loops work on copies, unless it is told where the container lives
        alone = replace(own, is_given=bool(self.parts) and own.nbytes > 0)
        nothing = ChoiceCost(0.0, 0.0, 0, own.tiles)
        return [alone, *[nothing] * (len(self.family) - 1)]

    def table(self, of: str, candidates: int, chosen: Mapping[str, int]) -> NDArray[np.float64]:
        """Seconds of each layout under each candidate of one space, with the best ones in loops."""
        table: NDArray[np.float64] = np.repeat(self.own.seconds[:, None], candidates, axis=1)
        for name, pair in self.pairs:
            one = pair.seconds if name == of else pair.seconds[:, chosen[name]][:, None]
            table = table + one
        for part in self.parts:
            own = part.table(of, candidates, chosen)
            table = table + (own[:, None, :] + part.link.seconds[:, :, None]).min(axis=0)
        return table


def _is_within(stage: Stage, other: Stage | None) -> bool:
    """Whether a loop is in another one; in the program, where there is no other."""
    if other is None:
        return True
    return stage is not other and is_in(stage.loop, other.loop)


def _twofold(link: Costs, around: bool) -> Costs:
    """What a home in a loop costs with that around it, where each layout is two choices.

    Args:
        link: of copies, where no layout is.
        around: whether those around are two choices, too.
    """
    none = np.where(np.eye(len(link.seconds), dtype=bool), 0.0, np.inf)
    nothing = np.zeros_like(none)
    found = [
        np.concatenate([first, second])
        for first, second in (
            (none, link.seconds),
            (nothing, link.nbytes),
            (nothing, link.traffic),
        )
    ]
    return Costs(*(np.tile(each, (1, 2)) if around else each for each in found))
