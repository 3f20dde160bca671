"""Tilings for the iteration spaces that a schedule does not name, from those that it names.

A space follows its neighbours: where it indexes a dimension that a tiled space has split, it takes
the same mesh and splits that parameter along the same axes; axes that split nothing replicate it.
Work that only makes arguments and has nothing to split runs on rank 0, where they live.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from distspmd.constraints import Use, uses
from distspmd.errors import UnsupportedProgram
from distspmd.mesh import Mesh
from distspmd.schedule import Tiling
from distspmd.spaces import IterationSpace


@dataclass(frozen=True, eq=False)
class Tiled:
    """A space with its tiling, the constraints that follow, and what gave it the tiling."""

    tiling: Tiling
    uses: list[Use]
    chosen_by: str


Offer = tuple[int, IterationSpace, Mesh, list[tuple[str, ...]], str]


def propagate(spaces: Sequence[IterationSpace], tilings: Mapping[str, Tiling]) -> dict[str, Tiled]:
    """Tile all spaces: as given, else after a neighbour, else on rank 0.

    Args:
        spaces: in program order.
        tilings: of the spaces that the schedule names.

    Returns:
        Each space by name, tiled, in program order.
    """
    done = {
        space.name: Tiled(tilings[space.name], uses(space, tilings[space.name]), "the schedule")
        for space in spaces
        if space.name in tilings
    }
    waiting = {
        space.name: (space, uses(space, _alone(space)))
        for space in spaces
        if space.name not in done
    }
    while waiting:
        offers = [offer for space, own in waiting.values() for offer in _offers(space, own, done)]
        if offers:
            _, space, mesh, splits, why = max(offers, key=lambda offer: offer[0])
            done[space.name] = _tiled(space, mesh, splits, why)
        else:
            space, _ = next(iter(waiting.values()))
            done[space.name] = _tiled(space, Mesh(), _whole(space), "rank 0: no neighbour")
        del waiting[space.name]
    return {space.name: done[space.name] for space in spaces}


def _tiled(space: IterationSpace, mesh: Mesh, splits: Sequence[tuple[str, ...]], why: str) -> Tiled:
    """The space with these splits; whole on each rank where they cannot be, for nobody asked."""
    tiling = Tiling.of(space.ranges, mesh, splits)
    try:
        return Tiled(tiling, uses(space, tiling), why)
    except UnsupportedProgram:
        if not any(splits):
            raise
    tiling = Tiling.of(space.ranges, mesh, _whole(space))
    return Tiled(tiling, uses(space, tiling), f"{why}, whole on each rank")


def _whole(space: IterationSpace) -> list[tuple[str, ...]]:
    return [()] * len(space.ranges)


def _alone(space: IterationSpace) -> Tiling:
    return Tiling.of(space.ranges, Mesh(), _whole(space))


def _offers(
    space: IterationSpace, own: Sequence[Use], done: Mapping[str, Tiled]
) -> Iterator[Offer]:
    """What each tiled neighbour suggests, with the number of axes that the space could share."""
    arrays = space.state.sdfg.arrays
    written = {use.data for use in own if use.is_write}
    seen_later = {u.data for tiled in done.values() for u in tiled.uses if not u.is_write}
    final = not written & seen_later and not any(arrays[name].transient for name in written)
    for use in own:
        for name, tiled in done.items():
            for neighbour in tiled.uses:
                if neighbour.data == use.data:
                    mesh, splits = _follow(space, use, neighbour, tiled.tiling)
                    shared = sum(map(len, splits))
                    if final and not shared:
                        mesh, splits = Mesh(), [()] * len(space.parameters)
                        yield 0, space, mesh, splits, "rank 0: where its results live"
                    else:
                        yield shared, space, mesh, splits, f"its neighbour {name}"


def _follow(
    space: IterationSpace, use: Use, neighbour: Use, tiling: Tiling
) -> tuple[Mesh, list[tuple[str, ...]]]:
    """The mesh of a neighbour, and its axes for the parameters that index what it splits."""
    splits: dict[str, tuple[str, ...]] = {}
    for axes, parameter in zip(_axes(neighbour, tiling), use.index, strict=False):
        if parameter is not None and axes and parameter not in splits:
            splits[parameter] = axes
    return neighbour.layout.mesh, [splits.get(parameter, ()) for parameter in space.parameters]


def _axes(use: Use, tiling: Tiling) -> list[tuple[str, ...]]:
    """Axes that split each dimension of a container: those of its parameter, else of its tiles.

    The tiles of a map over a part of an array are no even blocks, and tell no axes.
    """
    by_name = dict(zip(use.space.parameters, tiling.splits, strict=True))
    extents = use.layout.extents
    found = [split.axes for split in use.layout.splits or ()] or [()] * len(extents)
    for d, parameter in enumerate(use.index):
        if parameter is not None:
            found[d] = by_name[parameter]
    return found
