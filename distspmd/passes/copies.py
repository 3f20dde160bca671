"""Copies become maps, and views become arrays that are copied from or to what they viewed.

before -> after:  ``x[2:8] -> y``  ->  ``x -> map -> y``;  ``x -> view -> sum``  ->  ``x -> map ->
array -> sum``.  A copy that changes the shape runs over the common factors of both shapes:
``(4, 6) -> (8, 3)`` over ``(4, 2, 3)``, so that its indices stay affine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import sympy
from dace import SDFG, Memlet, SDFGState, data, subsets
from dace.sdfg import nodes
from dace.sdfg import utils as sdfg_utils

from distspmd.accesses import Edge, edges_of
from distspmd.errors import UnsupportedProgram
from distspmd.spaces import source


def views_to_arrays(sdfg: SDFG) -> None:
    """Give each view storage of its own, in place; edges to what it viewed become copies.

    Raises:
        UnsupportedProgram: a view of another type, or one of which a part is written.
    """
    views: dict[str, Any] = {
        name: desc for name, desc in sdfg.arrays.items() if isinstance(desc, data.View)
    }
    for state in sdfg.states():
        for node in state.data_nodes():
            if node.data in views and state.entry_node(node) is None:
                _detach(state, node)
    for name, view in views.items():
        sdfg.arrays[name] = data.Array(view.dtype, view.shape, transient=True)


def _detach(state: SDFGState, view: nodes.AccessNode) -> None:
    edge = sdfg_utils.get_view_edge(state, view)
    viewed = None if edge is None else edge.src if edge.dst is view else edge.dst
    where = source(state, view) or view
    if edge is None or not isinstance(viewed, nodes.AccessNode):
        raise UnsupportedProgram(
            f"{where}: what {view.data!r} is a view of cannot be told. Copy the array instead."
        )
    mine, other = view.desc(state.sdfg), viewed.desc(state.sdfg)
    if mine.dtype != other.dtype:
        raise UnsupportedProgram(
            f"{where}: {view.data!r} is a view of {viewed.data!r} as {mine.dtype}, which cannot be "
            f"partitioned. Convert it: {viewed.data}.astype(...)."
        )
    if edge.src is view:
        _check_written(state, view)
    own = edge.data.get_dst_subset(edge, state) if edge.dst is view else None
    own = own if edge.dst is view else edge.data.get_src_subset(edge, state)
    theirs = (
        edge.data.get_src_subset(edge, state)
        if edge.dst is view
        else edge.data.get_dst_subset(edge, state)
    )
    memlet = Memlet(data=viewed.data, subset=theirs or whole(state, viewed))
    memlet.other_subset = own if own is not None and edge.data.other_subset else whole(state, view)
    for connectors in (view.in_connectors, view.out_connectors):
        connectors.pop("views", None)
    state.remove_edge(edge)
    state.add_nedge(edge.src, edge.dst, memlet)


def _check_written(state: SDFGState, view: nodes.AccessNode) -> None:
    """A view that is written must be written whole, or its copy would carry more than that."""
    written = [edge.data.get_dst_subset(edge, state) for edge in state.in_edges(view)]
    everything = whole(state, view)
    if not any(subset is None or subset.covers(everything) for subset in written) or any(
        edge.data.dynamic for edge in state.in_edges(view)
    ):
        raise UnsupportedProgram(
            f"{source(state, view) or view}: a part of {view.data!r}, a view of another array, is "
            "written. Write into the array itself."
        )


def copies_to_maps(state: SDFGState) -> None:
    """Turn each copy at the top level of a state into a map, in place."""
    for edge in list(edges_of(state)):
        if (
            isinstance(edge.src, nodes.AccessNode)
            and isinstance(edge.dst, nodes.AccessNode)
            and state.entry_node(edge.src) is None
            and not edge.data.is_empty()
        ):
            _copy_to_map(state, edge)


def _copy_to_map(state: SDFGState, edge: Edge) -> None:
    taken = edge.data.get_src_subset(edge, state) or whole(state, edge.src)
    given = edge.data.get_dst_subset(edge, state) or whole(state, edge.dst)
    factors = _common_factors(taken.size(), given.size())
    if factors is None:
        raise UnsupportedProgram(
            f"{source(state, edge.dst) or edge.dst}: the copy {edge.src.data}[{taken}] -> "
            f"{edge.dst.data}[{given}] changes the shape, and cannot be partitioned: no extents "
            "divide those of both."
        )
    parameters = [f"__i{k}" for k in range(max(1, len(factors)))]
    _, entry, _ = state.add_mapped_tasklet(
        f"copy_{edge.src.data}_to_{edge.dst.data}",
        {p: f"0:{n}" for p, n in zip(parameters, factors or [1], strict=True)},
        {"__inp": Memlet(data=edge.src.data, subset=_walk(taken, factors))},
        "__out = __inp",
        {"__out": Memlet(data=edge.dst.data, subset=_walk(given, factors), wcr=edge.data.wcr)},
        external_edges=True,
        input_nodes={edge.src.data: edge.src},
        output_nodes={edge.dst.data: edge.dst},
        debuginfo=edge.dst.debuginfo,
    )
    entry.map.debuginfo = edge.dst.debuginfo
    state.remove_edge(edge)


def whole(state: SDFGState, node: nodes.AccessNode) -> subsets.Range:
    """All of the container of an access node."""
    everything: subsets.Range = subsets.Range.from_array(node.desc(state.sdfg))
    return everything


def _common_factors(
    taken: Sequence[sympy.Expr], given: Sequence[sympy.Expr]
) -> list[sympy.Expr] | None:
    """Extents, none 1, whose groups multiply to those of either side, in row-major order."""
    sides = [[sympy.sympify(n) for n in side if n != 1] for side in (taken, given)]
    if list(map(str, sides[0])) == list(map(str, sides[1])):
        return sides[0]
    if not all(n.is_Integer for side in sides for n in side):
        return None
    ends = sorted({1, *(math.prod(map(int, side[d:])) for side in sides for d in range(len(side)))})
    if math.prod(map(int, sides[0])) != math.prod(map(int, sides[1])):
        return None
    if any(above % below for below, above in itertools.pairwise(ends)):
        return None
    found = [above // below for below, above in itertools.pairwise(ends)]
    return [sympy.Integer(n) for n in reversed(found)]


def _walk(subset: subsets.Range, factors: Sequence[sympy.Expr]) -> str:
    """Index of the element at the parameters ``__i0, ...`` of a map over the factors."""
    remaining = [(f"__i{k}", n) for k, n in enumerate(factors)]
    index = []
    for (begin, _, step), extent in zip(subset.ranges, subset.size(), strict=True):
        at, covered = "0", sympy.Integer(1)
        while extent != 1 and covered != extent and str(covered) != str(extent):
            parameter, factor = remaining.pop(0)
            at = f"({at}) * ({factor}) + {parameter}"
            covered *= factor
        index.append(f"({begin}) + ({at}) * ({step})")
    return ", ".join(index)
