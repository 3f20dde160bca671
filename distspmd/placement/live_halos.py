"""Which halos anybody reads: others are not brought up to date after a write.

It is liveness, as of variables: a halo is live behind a write if some way from there reads it
before it is written anew, for that write brings it up to date itself. What may or may not run, and
what loops choose, writes nothing anew here.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from dace.sdfg.state import LoopRegion

from distspmd.analysis.accesses import loops_around, runs_in_each_iteration
from distspmd.analysis.uses import Read, Use
from distspmd.layouts import relations
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout


def is_read_behind(write: Use, part: Layout, core: Layout, uses: Sequence[Use]) -> bool:
    """Whether anything behind a write reads what it would bring up to date of a part of a home.

    All that shares a loop with the write is behind it, on the way around that.

    Args:
        write: one of the uses.
        part: of the home, with halos.
        core: of the home, without. It is always read, for values leave from there.
        uses: of the home, in the order of the program.
    """
    if relations.lies_within(core, part) and relations.leaves_stale(write.layout, core):
        return True  # what a rank writes of another rank's core, where that is
    if min(part.ranks, core.ranks) < part.ranks:
        return True
    held = functools.reduce(relations.hull, part.bounds)
    written = relations.common(write.layout.bounds, held)
    loops, place = [*loops_around(write.space.state)], uses.index(write)
    behind, before = list(uses[place + 1 :]), list(uses[: place + 1])
    for depth, loop in enumerate(loops):
        around = {id(use) for use in uses if loop in loops_around(use.space.state)}
        in_loop = [use for use in behind if id(use) in around]
        found = _is_read_first(in_loop, part, core, written, loops[depth:])
        if found is not None:
            return found
        again = [use for use in before if id(use) in around]
        if _is_read_first(again, part, core, written, loops[depth:]):
            return True
        behind = [use for use in behind if id(use) not in around]
    return bool(_is_read_first(behind, part, core, written, ()))


def _is_read_first(
    uses: Sequence[Use], part: Layout, core: Layout, written: Numbers, loops: Sequence[LoopRegion]
) -> bool | None:
    """Whether halos are read before they are written anew; None where neither happens."""
    for use in uses:
        if any(_reads(other, part, core) for other in uses if other.space is use.space):
            return True
        if _writes_anew(use, written, loops):
            return False
    return None


def _reads(use: Use, part: Layout, core: Layout) -> bool:
    """Whether a use needs elements of a part that some rank does not have in the core."""
    for need in use.needs if use.needs_values else ():
        if need.ranks != part.ranks:
            return True
        read = relations.common(need.bounds, part.bounds)
        inside = relations.common(read, core.bounds[: part.ranks])
        if (relations.volumes(read) > relations.volumes(inside)).any():
            return True
    return False


def _writes_anew(use: Use, boxes: Numbers, loops: Sequence[LoopRegion]) -> bool:
    """Whether a use writes all of each rank's box, in each iteration of just these loops."""
    if isinstance(use, Read) or not use.exact or use.share < 1 or use.layout.partial:
        return False
    state, ranks = use.space.state, len(boxes)
    if [*loops_around(state)] != [*loops] or not runs_in_each_iteration(state):
        return False
    if use.layout.ranks < ranks:
        return False
    kept = relations.common(boxes, use.layout.bounds[:ranks])
    return bool((relations.volumes(kept) == relations.volumes(boxes)).all())
