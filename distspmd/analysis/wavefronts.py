"""Loops in order whose iterations can run as a pipeline: each needs a rim of those just before it.

``for i: for j: H[i, j] = f(H[i - 1, j], H[i, j - 1])`` is cut into blocks of ``j``. Rank after rank
runs its values of ``i`` for a block, and the next one needs of that the last row. This is right
where no iteration needs what a later block of an earlier one touches: where all distances between
iterations that touch one element are not negative, in ``i`` and in ``j + skew * i``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy
from dace import SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion

from distspmd.analysis.accesses import Access, bound_around_loop
from distspmd.analysis.dependences import (
    LoopRange,
    accesses_of,
    carried_between,
    first_turning_back,
)
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.loop_values import own_names
from distspmd.analysis.uses import Update, Use
from distspmd.layouts.layout import Layout
from distspmd.nodes.handing_on import Rim, handed_on, loop_of
from distspmd.plans.pipeline import Handing

_SKEWS = range(4)
"""Values by which each iteration may begin the inner loop earlier than the one before."""


@dataclass(frozen=True)
class Wavefront:
    """How a loop runs as a pipeline.

    Attributes:
        inner: the loop in it whose values are cut into blocks.
        skew: values of that loop by which each iteration begins it earlier.
        rims: what later iterations read of earlier ones.
        reduced: containers with which iterations only combine values, in any order.
    """

    inner: LoopRegion
    skew: int
    rims: tuple[Rim, ...]
    reduced: frozenset[str] = frozenset()


def wavefront_of(
    loop: LoopRegion,
    values: LoopRange,
    own: Collection[str],
    kinds: Mapping[int, str] | None = None,
) -> Wavefront | None:
    """How a loop can run as a pipeline; None where it cannot.

    Args:
        loop: a loop that only writes containers.
        values: of its variable.
        own: names of which each iteration has its own value.
        kinds: the reduction that an edge is a part of, by its identity.
    """
    inner = _inner(loop, own)
    across = None if inner is None else LoopRange.of(inner)
    if inner is None or across is None or abs(values.step * across.step) != 1:
        return None
    ends = values.first, values.last, across.first, across.last
    changing = {str(loop.loop_variable), *bound_around_loop(loop), *_assigned(loop)}
    if changing & {str(symbol) for end in ends for symbol in end.free_symbols}:
        return None
    handed = {name for name in own if name in loop.sdfg.arrays} | _assigned(inner)
    if not handed <= own_names(inner, own):
        return None
    accesses = [access for access in accesses_of(loop) if access.data not in own]
    reduced = _reduced(accesses, kinds or {})
    accesses = [access for access in accesses if access.data not in reduced]
    rims = _rims(loop, inner, accesses, values)
    if rims is None:
        return None
    variable = str(inner.loop_variable), across.step
    for skew in _SKEWS:
        if first_turning_back(loop, values, variable, skew, reduced.union(own)) is None:
            return Wavefront(inner, skew, rims, reduced)
    return None


def _reduced(accesses: Sequence[Access], kinds: Mapping[int, str]) -> frozenset[str]:
    """Containers of which all accesses are parts of reductions of one kind."""
    found: dict[str, set[str | None]] = {}
    for access in accesses:
        found.setdefault(access.data, set()).add(kinds.get(id(access.edge)))
    return frozenset(data for data, own in found.items() if len(own) == 1 and None not in own)


def _inner(loop: LoopRegion, own: Collection[str]) -> LoopRegion | None:
    """The one loop in a loop, beside which it does nothing; its statements are tasklets alone."""
    blocks = loop.nodes()
    loops = [block for block in blocks if isinstance(block, LoopRegion)]
    empty = all(
        isinstance(b, SDFGState) and not b.nodes() for b in blocks if not isinstance(b, LoopRegion)
    )
    assigned = {name for edge in loop.edges() for name in edge.data.assignments}
    if len(loops) != 1 or not empty or not assigned <= {*own}:
        return None
    plain = (nodes.AccessNode, nodes.Tasklet)
    for state in loops[0].states():
        if not all(isinstance(node, plain) for node in state.nodes()):
            return None
    return loops[0]


def _assigned(loop: LoopRegion) -> set[str]:
    return {n for e in loop.all_interstate_edges(recursive=False) for n in e.data.assignments}


def _rims(
    loop: LoopRegion, inner: LoopRegion, accesses: Sequence[Access], values: LoopRange
) -> tuple[Rim, ...] | None:
    """What iterations hand on of each container; None where that is more than a rim."""
    names = str(loop.loop_variable), str(inner.loop_variable)
    ends = sympy.expand(values.first + values.last)
    if values.step < 0 and not ends.is_Integer:
        return None
    found = []
    for data in dict.fromkeys(access.data for access in accesses if access.is_write):
        own = [access for access in accesses if access.data == data]
        written = {_written(access, *names) for access in own if access.is_write}
        rim = written.pop() if len(written) == 1 else None
        if rim is None:
            return None
        depth = 0
        for read in (access for access in own if not access.is_write):
            place = _place(read, rim.along, names[0])
            if place is not None:
                depth = max(depth, values.step * (rim.place - place))
            elif _is_carried(loop, [a for a in own if a.is_write], read):
                return None
        turned = int(ends) if values.step < 0 else 0
        found.append(replace(rim, depth=depth, place=turned + rim.place, sign=values.step))
    return tuple(found)


def _place(read: Access, along: int, name: str, sign: int = 1) -> int | None:
    """What is added to a variable in an index of one element; None where that is no number."""
    dimension = read.dimensions[along]
    if dimension is None or dimension.first != dimension.last:
        return None
    found = _offset(dimension.first, name, sign)
    return int(found) if found is not None and found.is_Integer else None


def _is_carried(loop: LoopRegion, writes: Sequence[Access], read: Access) -> bool:
    return any(carried_between(loop, *pair, {}) for w in writes for pair in ((w, read), (read, w)))


def _written(access: Access, outer: str, inner: str) -> Rim | None:
    """Where an iteration writes, as a rim without depth; None where that is not so simple."""
    at: dict[str, tuple[int, int]] = {}
    others = []
    for d, dimension in enumerate(access.dimensions):
        if dimension is None or dimension.step != 1 or access.reduction is not None:
            return None
        first, last = map(sympy.sympify, (dimension.first, dimension.last))
        if (whole := _whole(access, first, last, outer, inner)) is not None:
            others.append((d, *whole))
            continue
        places = {n: p for n in (outer, inner) if (p := _offset(first, n)) is not None}
        if first != last or len(places) != 1:
            return None
        ((name, place),) = places.items()
        if name in at or not place.is_Integer:
            return None
        at[name] = d, int(place)
    if at.keys() != {outer, inner}:
        return None
    return Rim(access.data, *at[outer], 0, *at[inner], tuple(others))


def _whole(
    access: Access, first: sympy.Expr, last: sympy.Expr, outer: str, inner: str
) -> tuple[int, int] | None:
    """First and last index in a dimension that each iteration writes all of; else None."""
    if first.is_Integer and last.is_Integer:
        return int(first), int(last)
    (*names,) = (s.name for s in first.free_symbols)
    ends = (
        access.scope.get(names[0]) if len(names) == 1 and names[0] not in (outer, inner) else None
    )
    offset = _offset(first, names[0]) if ends is not None and first == last else None
    if ends is None or ends.step != 1 or offset is None:
        return None
    low, high = (sympy.expand(end + offset) for end in (ends.lower, ends.upper))
    return (int(low), int(high)) if low.is_Integer and high.is_Integer else None


def _offset(index: sympy.Expr, name: str, sign: int = 1) -> sympy.Expr | None:
    """What is added to a variable, or its opposite, in an index; None where that is another."""
    symbols = [s for s in sympy.sympify(index).free_symbols if s.name == name]
    if len(symbols) != 1:
        return None
    rest = sympy.expand(index - sign * symbols[0])
    return None if symbols[0] in rest.free_symbols else rest


def handing_of(space: IterationSpace) -> Handing | None:
    """What ranks hand on that share a space, whose sizes are numbers; None if it has no order."""
    body = handed_on(space.state, space.node)
    if body is None:
        return None
    nested, mark = body
    values = LoopRange.of(loop_of(nested, mark))
    assert values is not None
    count = sympy.sympify(values.count)
    nbytes = sum(rim.elements * nested.sdfg.arrays[rim.data].dtype.bytes for rim in mark.rims)
    return Handing(max(0, int(count)) if count.is_Integer else 1, int(mark.skew), int(nbytes))


def rims_of(space_state: SDFGState, entry: nodes.Node) -> dict[str, Rim]:
    """What iterations of a map hand on, by the containers that the state names; none of others."""
    body = handed_on(space_state, entry)
    if body is None:
        return {}
    nested, mark = body
    names = {e.dst_conn: str(e.data.data) for e in space_state.in_edges(nested) if e.dst_conn}
    return {names[rim.data]: rim for rim in mark.rims if rim.depth and rim.data in names}


def without_rims(space: IterationSpace, found: Sequence[Use]) -> list[Use]:
    """Uses, of which those that ranks hand rims on of need no rim before the space begins."""
    rims = rims_of(space.state, space.node)
    begin = int(space.ranges[0].begin) if rims else 0
    return [
        replace(use, brought=_brought(use, rims[use.data], begin))
        if isinstance(use, Update) and use.data in rims
        else use
        for use in found
    ]


def _brought(use: Update, rim: Rim, begin: int) -> tuple[Layout, ...]:
    """What of its tiles a space needs before it begins: all but the rim that is handed on."""
    works, written = use.works_on.bounds, use.layout.bounds
    handed = written.copy()
    if rim.sign > 0:
        handed[:, rim.along, 0] = np.maximum(works[:, rim.along, 0], begin + rim.place)
        handed[:, rim.along, 1] = written[:, rim.along, 0]
    else:
        handed[:, rim.along, 0] = written[:, rim.along, 1]
        handed[:, rim.along, 1] = np.minimum(works[:, rim.along, 1], rim.place - begin + 1)
    left = works.copy()
    found = []
    for d in (rim.along, *(d for d in range(works.shape[1]) if d != rim.along)):
        for side in (0, 1):
            part = left.copy()
            part[:, d, 1 - side] = handed[:, d, side]
            part[(part[..., 1] <= part[..., 0]).any(axis=1)] = 0
            found.append(part)
        left[:, d] = handed[:, d]
    mesh, extents = use.works_on.mesh, use.works_on.extents
    return tuple(Layout.of_bounds(mesh, extents, part) for part in found if part.any())


def reads_rim(read: Access, rim: Rim, parameter: str) -> bool:
    """Whether an access reads what earlier iterations have written."""
    place = _place(read, rim.along, parameter, rim.sign)
    return place is not None and rim.sign * (rim.place - place) > 0
