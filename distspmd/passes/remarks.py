"""What a lowering says beside its tables: what a program lacks, runs whole, or moves much."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import numpy as np
from dace.sdfg.state import LoopRegion
from numpy.typing import NDArray

from distspmd.analysis.accesses import loops_around
from distspmd.analysis.elements import CHOSEN
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.loop_orders import order_of
from distspmd.analysis.loop_runs import busiest, sweeps
from distspmd.analysis.rank_boxes import names_in
from distspmd.analysis.uses import Read, Use
from distspmd.layouts import relations
from distspmd.nodes.lapack import Lapack
from distspmd.nodes.lapack_together import LapackTogether
from distspmd.passes.compilation import Compilation
from distspmd.placement.homes import Home, holds_much, moves
from distspmd.plans.dealt_matrix import TOGETHER
from distspmd.plans.tile_work import TileWork
from distspmd.runtime.compilers.scalapack import NO_SCALAPACK, find_scalapack
from distspmd.schedule import ANY, OnMesh, axes_of, is_pattern

_WEIGHTY = 0.05
"""The part of the work from which on a loop that stays in order is told of."""
_PANELS = 2
"""Times that each rank may get all of a container in a sweep of a loop: there, and back."""


def remarks(compilation: Compilation, work: Mapping[str, TileWork]) -> list[str]:
    """Sentences for the user.

    Args:
        compilation: with homes and tilings.
        work: of the busiest rank in each space.
    """
    return [
        *_missing_dimensions(compilation),
        *_whole_spaces(compilation, work),
        *_without_library(compilation, work),
        *_serial_loops(compilation, work),
        *_moved_in_loops(compilation),
        *_uneven_homes(compilation),
        *_uneven_in_total(compilation),
    ]


def _missing_dimensions(compilation: Compilation) -> list[str]:
    """Dimensions that patterns split first along some axis, and no space has."""
    own = {name for space in compilation.spaces for name in (*space.dimensions, *space.parameters)}
    found = []
    for key, asked in compilation.schedule.items():
        if not isinstance(asked, OnMesh) or not is_pattern(key):
            continue
        by_axis: dict[str, list[str]] = {}
        for name, axes in asked.split.items():
            for axis in axes_of(asked.mesh, axes, str(key)):
                by_axis.setdefault(axis, []).append(name)
        for axis, (first, *others) in by_axis.items():
            there = [name for name in others if name in own]
            if there and first != ANY and first not in own and asked.mesh[axis] > 1:
                found.append(
                    f"No iteration space has the dimension {first!r}, which {key!r} splits first "
                    f"along {axis!r}: only {', '.join(there)} is split."
                )
    return list(dict.fromkeys(found))


def _whole_spaces(compilation: Compilation, work: Mapping[str, TileWork]) -> list[str]:
    """The spaces that no rank shares with another, where ranks could."""
    alone: dict[str, list[str]] = {}
    for space in compilation.spaces:
        tiling = compilation.tiled[space.name].tiling
        several = any(extent.begin + extent.step < extent.end for extent in space.ranges)
        if several and space.name in compilation.named and math.prod(tiling.parts) == 1:
            where = "rank 0" if tiling.mesh.size == 1 else "each of its ranks"
            alone.setdefault(where, []).append(space.name)
    machine = compilation.machine
    seconds = {
        where: sum(work[name].seconds(machine) for name in names) for where, names in alone.items()
    }
    return [
        f"Not split, and run whole by {where}: {', '.join(names)} "
        f"({seconds[where]:.1e} s of a run, as predicted)."
        for where, names in alone.items()
    ]


def _without_library(compilation: Compilation, work: Mapping[str, TileWork]) -> list[str]:
    """Functions of one matrix that ranks would share if there were a library for it."""
    seconds = {name: each.seconds(compilation.machine) for name, each in work.items()}
    total = sum(seconds.values())
    found = []
    for space in compilation.spaces:
        node = space.node
        if not isinstance(node, Lapack) or isinstance(node, LapackTogether) or node.batch:
            continue
        row = TOGETHER.get(node.function)
        is_much = (
            max(compilation.ranks, compilation.there_are) > 1
            and seconds[space.name] >= _WEIGHTY * total
        )
        if row and row.library and is_much and find_scalapack() is None:
            found.append(
                f"{space.name} ({space.source or node.function}) is not split: {row.title} of one "
                f"matrix are found by {row.library}, of which there is none: {NO_SCALAPACK}."
            )
    return found


def _serial_loops(compilation: Compilation, work: Mapping[str, TileWork]) -> list[str]:
    """Outermost loops that no rank shares with another, and that are much of the work."""
    inside: dict[LoopRegion, list[IterationSpace]] = {}
    for space in compilation.spaces:
        for loop in loops_around(space.state):
            inside.setdefault(loop, []).append(space)
    machine = compilation.machine
    seconds = {name: each.seconds(machine) for name, each in work.items()}
    total = sum(seconds.values())
    whole = {
        loop: sum(seconds[space.name] for space in spaces) / total
        for loop, spaces in inside.items()
        if total and order_of(loop)
        if all(math.prod(compilation.tiled[s.name].tiling.parts) == 1 for s in spaces)
    }
    return [
        _serial_sentence(loop, next((s for s in inside[loop] if s.source), inside[loop][0]), share)
        for loop, share in whole.items()
        if share >= _WEIGHTY and not any(outer in whole for outer in loops_around(loop))
    ]


def _serial_sentence(loop: LoopRegion, first: IterationSpace, share: float) -> str:
    """Why a loop is serial, and what a user can write; a loop with a condition has no variable."""
    name = loop.loop_variable
    called = f"the loop over {name!r}" if name else "the while loop"
    said = f"{first.where}: {called} is not split, with {share:.0%} of the predicted work"
    promise = "If its iterations do not need each other, write: for {} in distspmd.map[first:end]"
    return f"{said}: {order_of(loop)}." + (f" {promise.format(name)}" if name else "")


def _moved_in_loops(compilation: Compilation) -> list[str]:
    """Containers that loops move more of than an expert would.

    A transpose between two sweeps moves each element at most once, and a panel that all ranks get
    is small beside what is computed with it: a sweep that gives each rank all panels, there and
    back, moves twice as much as the container has for each of them.
    """
    found = []
    for name, home in compilation.homes.items():
        dtype = compilation.dtypes[name]
        nbytes = sum(w * move.bound.nbytes for w, move in moves(home, dtype) if w > 1)
        spaces = {use.space.name: use.space for use in home.uses if use.times > 1}
        often = {use.space.name: use.times for use in home.uses}
        each = {own: float(busiest(space, _one_part(space))[0]) for own, space in spaces.items()}
        computed = sum(often[own] * iterations for own, iterations in each.items())
        whole = math.prod(home.layout.extents) * dtype.itemsize
        if not spaces or not nbytes:
            continue
        if nbytes > computed * dtype.itemsize:
            why = "more than an element for each of the iterations that use it"
        elif nbytes > _PANELS * compilation.ranks * whole * _sweeps(home):
            why = f"more than {_PANELS} times for each rank"
        else:
            continue
        found.append(_sentence(compilation, home, spaces, nbytes, why))
    return found


def _sweeps(home: Home) -> float:
    """How often loops begin that choose what is read of a container; without end where none do.

    Nor do they of what is made anew in each iteration.
    """
    if home.caller is None and all(use.times > 1 for use in home.uses):
        return math.inf
    reads = [use for use in home.uses if isinstance(use, Read) and use.moved]
    found = (sweeps(use.space.state, set().union(*map(names_in, use.accesses))) for use in reads)
    return max(found, default=math.inf)


def _sentence(
    compilation: Compilation,
    home: Home,
    spaces: Mapping[str, IterationSpace],
    nbytes: float,
    why: str,
) -> str:
    whole = math.prod(home.layout.extents) * compilation.dtypes[home.data].itemsize
    first = next(iter(spaces.values()))
    named = [name for name in spaces if name in compilation.named]
    ones = ", ".join(f"{name!r}: {_ones(spaces[name])}" for name in named)
    instead = f" With {{{ones}}} rank 0 has all of it there, and none moves in them." * bool(named)
    return (
        f"{first.where}: loops move {nbytes:,.0f} bytes of {home.data!r}, {nbytes / whole:.1f} "
        f"times all of it, which is {why}. "
        "Split the spaces of these loops along what they do not run over, and all alike; "
        f"lower(..., ranks={compilation.ranks}) searches.{instead}"
    )


def _uneven_homes(compilation: Compilation) -> list[str]:
    """Containers of which one rank holds much more than others, and the use because of which."""
    found = []
    for name, home in compilation.homes.items():
        held = home.layout.volumes * compilation.dtypes[name].itemsize
        if (much := holds_much(held)) is None:
            continue
        rank, times = much
        use = min(home.uses, key=lambda use: _volume_without(use, home, rank))
        found.append(
            f"{use.space.where}: rank {rank} holds {held[rank]:,} bytes of {name!r}, {times:.1f} "
            f"times as much as the ranks that hold any on the average, because of the space "
            f"{use.space.name!r}. Copy what it touches into an array of its own, or give {name!r} "
            "a home in the schedule."
        )
    return found


def _uneven_in_total(compilation: Compilation) -> list[str]:
    """The rank that holds much more of all containers together than the others."""
    ranks = max((home.layout.ranks for home in compilation.homes.values()), default=1)
    held = np.zeros(ranks, np.int64)
    most: tuple[int, str] = 0, ""
    each = {}
    for name, home in compilation.homes.items():
        own = each[name] = np.zeros(ranks, np.int64)
        own[: home.layout.ranks] = home.layout.volumes * compilation.dtypes[name].itemsize
        held += own
    if (much := holds_much(held)) is None or any(holds_much(own) for own in each.values()):
        return []
    rank, times = much
    most = max((int(own[rank]), name) for name, own in each.items())
    where = compilation.homes[most[1]].uses[0].space.where
    return [
        f"{where}: rank {rank} holds {held[rank]:,} bytes in all, {times:.1f} times as much as the "
        f"ranks that hold any on the average; most of it is {most[1]!r} ({most[0]:,} bytes)."
    ]


def _volume_without(use: Use, home: Home, rank: int) -> int:
    """What a rank would have to hold without a use."""
    others = [other.tiles for other in home.uses if other is not use]
    boxes = [own.bounds[rank] for own in others if rank < own.ranks]
    within = [
        box[None] for box in boxes if (relations.common(box, home.layout.bounds[rank]) == box).all()
    ]
    return int(relations.volumes(functools.reduce(relations.hull, within))[0]) if within else 0


def _one_part(space: IterationSpace) -> NDArray[np.int64]:
    return np.ones((1, len(space.parameters)), np.int64)


def _ones(space: IterationSpace) -> str:
    """Parts of one for each parameter that the program gave the space."""
    own = sum(not parameter.startswith(CHOSEN) for parameter in space.parameters)
    return str((1,) * max(1, own))
