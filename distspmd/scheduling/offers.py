"""Which candidates of each space are weighed: the best by themselves, and what neighbours offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.analysis.control_values import is_control_value, runs_once
from distspmd.analysis.pieces import cut_together
from distspmd.analysis.work import Work
from distspmd.layouts.mesh import Mesh
from distspmd.plans.machine import Machine
from distspmd.scheduling import candidates
from distspmd.scheduling.candidates import Dimensions
from distspmd.scheduling.columns import Columns
from distspmd.scheduling.footprints import Candidate, Footprint, Splits, Tilings

OWN, OFFERED = 20, 16
"""Candidates of a space that are best by themselves, and that follow a neighbour."""
ROUNDS = 2
"""Of offers."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What candidates cost by themselves: their work, and all that their tiles hold, moved once."""

    machine: Machine
    works: Mapping[str, Work]
    itemsizes: Mapping[str, int]

    def of(self, footprint: Footprint, mesh: Mesh, given: Sequence[Candidate]) -> Any:
        """Seconds of each candidate."""
        space = footprint.space
        tilings = Tilings.of(space, mesh, given, Columns(1))
        nbytes = np.zeros(len(given))
        for slot in footprint.slots(given):
            held = footprint.boxes(slot.touched, tilings)
            nbytes += held.volumes[:, 0] * self.itemsizes[slot.data]
        work = self.works[space.name]
        working = self.machine.computing(
            work.in_tile(space, tilings.iterations[:, 0], tilings.parts),
            nbytes,
            work.kind,
            tilings.parts.prod(axis=1),
        )
        return self.machine.beta * nbytes + working + work.talking(tilings.parts, self.machine)


def candidates_of(
    footprints: Mapping[str, Footprint],
    mesh: Mesh,
    scores: Scores,
    fixed: Mapping[str, Candidate],
) -> tuple[dict[str, list[Candidate]], list[list[str]]]:
    """Candidates of all spaces on a mesh, and groups of spaces that take one.

    Args:
        footprints: of the spaces by name, in program order.
        mesh: on which they run.
        scores: what orders them.
        fixed: the only candidate of some spaces.
    """
    offers = _Offers(footprints, mesh, scores, fixed)
    return offers.found, offers.tied


Place = tuple[str, int]
"""A space and one of its uses."""


class _Offers:
    """Candidates of all spaces of a program; what spaces that are alike share is done once.

    Attributes:
        found: candidates by space.
        tied: spaces that write pieces of one container, which take one candidate.
    """

    def __init__(
        self,
        footprints: Mapping[str, Footprint],
        mesh: Mesh,
        scores: Scores,
        fixed: Mapping[str, Candidate],
    ) -> None:
        self.footprints, self.mesh, self.scores = footprints, mesh, scores
        self._known: dict[Any, Any] = {}
        self._uses = {name: own.kinds(frozenset()) or [] for name, own in footprints.items()}
        self._users: dict[str, list[Place]] = {}
        dimensions = Dimensions()
        for name, footprint in footprints.items():
            dimensions.add(footprint.space, self._uses[name])
            for place, use in enumerate(self._uses[name]):
                self._users.setdefault(use.data, []).append((name, place))
        self.found: dict[str, list[Candidate]] = {}
        groups = cut_together([footprint.space for footprint in footprints.values()])
        self.tied = [group for group in groups if not {*group} & {*fixed}]
        follow = {name for _, *others in self.tied for name in others}
        self._open: list[str] = []
        for name, footprint in footprints.items():
            space = footprint.space
            whole: Splits = ((),) * len(space.ranges)
            if name in fixed:
                self.found[name] = [fixed[name]]
            elif is_control_value(space.node) or runs_once(space.node):
                self.found[name] = [None if runs_once(space.node) else whole]
            elif name in follow:
                self.found[name] = [whole, None]
            else:
                self._open.append(name)
                own = self._own(footprint, tuple(dimensions.order_of(space)))
                self.found[name] = [*dict.fromkeys([*own, whole, None])]
        for _ in range(ROUNDS if mesh.size > 1 else 0):
            self._exchange()
        self._tie()

    def _tie(self) -> None:
        """Let spaces that write pieces of one container have the candidates of the longest one."""
        for group in self.tied:
            both = [c for c in self.found[group[0]] if all(self._can(name, c) for name in group)]
            self.found |= {name: list(both) for name in group}

    def _can(self, name: str, candidate: Candidate) -> bool:
        footprint = self.footprints[name]
        return footprint.partials(footprint.split(candidate)) is not None

    def _own(self, footprint: Footprint, order: tuple[int, ...]) -> list[Splits]:
        """The best by themselves, and those that split one parameter alone."""
        key = "own", footprint.like, self.scores.works[footprint.space.name], order
        if key not in self._known:
            every = candidates.canonical_splits(footprint.space, self.mesh, order)
            legal = _legal(footprint, every)
            pure = [s for s in legal if sum(map(bool, s)) == 1 and _is_full(self.mesh, s)]
            self._known[key] = [*_best(footprint, self.mesh, self.scores, legal, OWN), *pure]
        own: list[Splits] = self._known[key]
        return own

    def _exchange(self) -> None:
        """Add to each space what follows its neighbours' candidates."""
        before = {name: tuple(own) for name, own in self.found.items()}
        alike = {data: self._alike(users, before) for data, users in self._users.items()}
        for name in self._open:
            offers: dict[Splits, None] = {}
            for place, use in enumerate(self._uses[name]):
                for users in alike[use.data]:
                    other = next((user for user in users if user[0] != name), None)
                    if other is not None:
                        given = self._offered((name, place), other, before[other[0]])
                        offers.update(dict.fromkeys(given))
            known = set(before[name])
            new = tuple(splits for splits in offers if splits not in known)
            best = self._best_offers(self.footprints[name], new)
            room = OWN + 2 * OFFERED - len(before[name])
            self.found[name] = [*before[name], *best[: max(room, 0)]]

    def _alike(
        self, users: Iterable[Place], before: Mapping[str, tuple[Candidate, ...]]
    ) -> list[list[Place]]:
        """Users of a container by what they offer: two different spaces of each kind, or one."""
        found: dict[Any, list[Place]] = {}
        for name, place in users:
            kind = self.footprints[name].like, place, before[name]
            held = found.setdefault(kind, [])
            if len(held) < 2:
                held.append((name, place))
        return [*found.values()]

    def _offered(self, own: Place, other: Place, given: tuple[Candidate, ...]) -> Sequence[Splits]:
        """What candidates of another space are as candidates of one."""
        mine, theirs = (self.footprints[name] for name, _ in (own, other))
        key = "offered", mine.like, own[1], theirs.like, other[1], given
        if key not in self._known:
            use, neighbour = (self._uses[name][place] for name, place in (own, other))
            self._known[key] = [
                candidates.offered(mine.space, use, neighbour, splits)
                for splits in given
                if isinstance(splits, tuple)
            ]
        found: list[Splits] = self._known[key]
        return found

    def _best_offers(self, footprint: Footprint, new: tuple[Splits, ...]) -> Sequence[Splits]:
        space = footprint.space
        key = "best", footprint.like, self.scores.works[space.name], new
        if key not in self._known:
            possible = [s for s in new if candidates.possible(space, self.mesh, s)]
            legal = _legal(footprint, possible)
            self._known[key] = _best(footprint, self.mesh, self.scores, legal, OFFERED)
        found: list[Splits] = self._known[key]
        return found


def _is_full(mesh: Mesh, splits: Splits) -> bool:
    return sum(map(len, splits)) == len(mesh.axes)


def _legal(footprint: Footprint, every: Iterable[Splits]) -> list[Splits]:
    return [splits for splits in every if footprint.partials(footprint.split(splits)) is not None]


def _best(
    footprint: Footprint, mesh: Mesh, scores: Scores, given: Sequence[Splits], most: int
) -> list[Splits]:
    """Those of least cost by themselves, the first of equals first."""
    if len(given) <= most:
        return list(given)
    order = np.argsort(scores.of(footprint, mesh, given), kind="stable")
    return [given[place] for place in order[:most]]
