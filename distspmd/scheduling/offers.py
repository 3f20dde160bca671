"""Which candidates of each space are weighed: the best by themselves, and what neighbours offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.work import Kind, Work
from distspmd.layouts.mesh import Mesh
from distspmd.plans.machine import Machine
from distspmd.scheduling import boxes, candidates
from distspmd.scheduling.candidates import Dimensions
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
        tilings = Tilings.of(space, mesh, given, ranks=1)
        nbytes = np.zeros(len(given))
        for slot in footprint.slots(given):
            stack = footprint.boxes(slot.touched, tilings)
            nbytes += boxes.volumes(stack)[:, 0] * self.itemsizes[slot.data]
        return self.machine.beta * nbytes + compute_seconds(
            self.machine, self.works[space.name], tilings.iterations[:, 0], nbytes
        )


def compute_seconds(machine: Machine, work: Work, iterations: Any, nbytes: Any) -> Any:
    """Seconds of tiles, as :meth:`Machine.computing` has them, of many at once."""
    each = machine.product if work.kind is Kind.PRODUCT else machine.operation
    return machine.launch + np.maximum(iterations * work.operations * each, nbytes * machine.stream)


def candidates_of(
    footprints: Mapping[str, Footprint],
    mesh: Mesh,
    scores: Scores,
    fixed: Mapping[str, Candidate],
) -> dict[str, list[Candidate]]:
    """Candidates of all spaces on a mesh.

    Args:
        footprints: of the spaces by name, in program order.
        mesh: on which they run.
        scores: what orders them.
        fixed: the only candidate of some spaces.
    """
    dimensions = Dimensions()
    for footprint in footprints.values():
        dimensions.add(footprint.space, footprint.kinds(frozenset()) or [])
    found: dict[str, list[Candidate]] = {}
    for name, footprint in footprints.items():
        space = footprint.space
        whole: Splits = ((),) * len(space.ranges)
        if name in fixed:
            found[name] = [fixed[name]]
        elif is_control_value(space.node):
            found[name] = [whole]
        else:
            every = candidates.canonical_splits(space, mesh, dimensions.order_of(space))
            possible = _legal(footprint, every)
            best = _best(footprint, mesh, scores, possible, OWN)
            pure = [s for s in possible if sum(map(bool, s)) == 1 and _is_full(mesh, s)]
            found[name] = [*dict.fromkeys([*best, *pure, whole, None])]
    if mesh.size > 1:
        for _ in range(ROUNDS):
            _exchange_offers(footprints, mesh, scores, found, fixed)
    return found


def _is_full(mesh: Mesh, splits: Splits) -> bool:
    return sum(map(len, splits)) == len(mesh.axes)


def _legal(footprint: Footprint, every: Iterable[Splits]) -> list[Splits]:
    return [splits for splits in every if footprint.kinds(footprint.split(splits)) is not None]


def _best(
    footprint: Footprint, mesh: Mesh, scores: Scores, given: Sequence[Splits], most: int
) -> list[Splits]:
    """Those of least cost by themselves, the first of equals first."""
    if len(given) <= most:
        return list(given)
    order = np.argsort(scores.of(footprint, mesh, given), kind="stable")
    return [given[place] for place in order[:most]]


def _exchange_offers(
    footprints: Mapping[str, Footprint],
    mesh: Mesh,
    scores: Scores,
    found: dict[str, list[Candidate]],
    fixed: Mapping[str, Candidate],
) -> None:
    """Add to each space what follows its neighbours' candidates, in place."""
    users: dict[str, list[tuple[str, Any]]] = {}
    for name, footprint in footprints.items():
        for use in footprint.kinds(frozenset()) or []:
            users.setdefault(use.data, []).append((name, use))
    before = {name: list(own) for name, own in found.items()}
    for name, footprint in footprints.items():
        space = footprint.space
        if name in fixed or is_control_value(space.node):
            continue
        offers: dict[Splits, None] = {}
        for use in footprint.kinds(frozenset()) or []:
            for other, theirs in users[use.data]:
                if other != name:
                    for splits in before[other]:
                        if isinstance(splits, tuple):
                            offers[candidates.offered(space, use, theirs, splits)] = None
        known = set(before[name])
        new = [s for s in offers if s not in known and candidates.possible(space, mesh, s)]
        best = _best(footprint, mesh, scores, _legal(footprint, new), OFFERED)
        room = OWN + 2 * OFFERED - len(before[name])
        found[name] = [*before[name], *best[: max(room, 0)]]


def is_splittable(space: IterationSpace) -> bool:
    """Whether several ranks could share the iterations of a space."""
    return any(count > 1 for count in candidates.iterations(space))
