"""Copies become maps, and views become arrays that are copied from or to the viewed array.

before -> after:  ``x[2:8] -> y``  ->  ``x -> map -> y``;  ``x -> view -> sum``  ->  ``x -> map ->
array -> sum``.  A copy that changes the shape runs over the common factors of both shapes:
``(4, 6) -> (8, 3)`` over ``(4, 2, 3)``, so that its indices stay affine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import sympy
from dace import SDFG, Memlet, SDFGState, data, subsets
from dace.sdfg import nodes
from dace.sdfg import utils as sdfg_utils

from distspmd.analysis.accesses import Edge, edges_of
from distspmd.analysis.iteration_spaces import source
from distspmd.errors import UnsupportedProgram


@dataclass(frozen=True)
class _Side:
    """One side of a copy: its window, and the order in which its dimensions are walked."""

    node: nodes.AccessNode
    window: subsets.Range
    order: tuple[int, ...]

    @classmethod
    def of(cls, node: nodes.AccessNode, window: subsets.Range, strides: Sequence[Any]) -> _Side:
        """Walk the dimensions of more than one element, those of the largest strides first."""
        several = [d for d, n in enumerate(window.size()) if n != 1]
        if all(sympy.sympify(strides[d]).is_Integer for d in several):
            several.sort(key=lambda d: -int(strides[d]))
        return cls(node, window, tuple(several))

    @property
    def extents(self) -> list[sympy.Expr]:
        sizes = self.window.size()
        return [sympy.sympify(sizes[d]) for d in self.order]

    def walk(self, factors: Sequence[sympy.Expr]) -> list[list[tuple[str, sympy.Expr]]]:
        """Per dimension, the parameters of a map over the factors that move in it, with steps."""
        remaining = [(f"__i{k}", factor) for k, factor in enumerate(factors)]
        moved: list[list[tuple[str, sympy.Expr]]] = [[] for _ in self.window.ranges]
        for d, extent in zip(self.order, self.extents, strict=True):
            covered = sympy.Integer(1)
            while str(covered) != str(extent):  # symbols of one name may differ in type
                name, factor = remaining.pop(0)
                moved[d] = [(known, step * factor) for known, step in moved[d]]
                moved[d].append((name, sympy.Integer(1)))
                covered *= factor
        return moved

    def index(self, factors: Sequence[sympy.Expr]) -> str:
        """Index of the element at the parameters."""
        return ", ".join(
            " + ".join([f"({begin})", *(f"{name} * ({step}) * ({by})" for name, by in moved)])
            for (begin, _, step), moved in zip(self.window.ranges, self.walk(factors), strict=True)
        )

    def jumps(self, factors: Sequence[sympy.Expr], strides: Sequence[Any]) -> dict[str, sympy.Expr]:
        """How far each parameter moves in memory."""
        return {
            name: sympy.simplify(by * step * stride)
            for moved, (_, _, step), stride in zip(
                self.walk(factors), self.window.ranges, strides, strict=True
            )
            for name, by in moved
        }


def views_to_arrays(sdfg: SDFG) -> None:
    """Give each view storage of its own, in place; edges to what it viewed become copies.

    Raises:
        UnsupportedProgram: a view of another type, or one of which a part is written.
    """
    views: dict[str, Any] = {
        name: desc for name, desc in sdfg.arrays.items() if isinstance(desc, data.View)
    }
    for state in sdfg.states():
        for node in list(state.data_nodes()):
            if node.data in views and state.entry_node(node) is None:
                _detach(state, node, views)
    for name, view in views.items():
        sdfg.arrays[name] = data.Array(view.dtype, view.shape, transient=True)


def _detach(state: SDFGState, view: nodes.AccessNode, views: dict[str, Any]) -> None:
    if not any(isinstance(node, nodes.AccessNode) for node in _neighbours(state, view)):
        return  # DaCe copies descriptors of views for temporaries
    edge = sdfg_utils.get_view_edge(state, view)
    viewed = None if edge is None else edge.src if edge.dst is view else edge.dst
    where = source(state, view) or view
    if edge is None or not isinstance(viewed, nodes.AccessNode):
        raise UnsupportedProgram(
            f"{where}: what {view.data!r} is a view of cannot be told. Copy the array instead."
        )
    mine, other = views[view.data], state.sdfg.arrays[viewed.data]
    if mine.dtype != other.dtype:
        raise UnsupportedProgram(
            f"{where}: {view.data!r} is a view of {viewed.data!r} as {mine.dtype}, which cannot be "
            f"partitioned. Convert it: {viewed.data}.astype(...)."
        )
    if edge.src is view:
        _check_written(state, view)
    window = (
        edge.data.get_src_subset(edge, state)
        if edge.dst is view
        else edge.data.get_dst_subset(edge, state)
    ) or _whole(state, viewed)
    steps = [
        step * stride for (_, _, step), stride in zip(window.ranges, other.strides, strict=True)
    ]
    theirs = _Side.of(viewed, window, steps)
    own = _Side.of(view, _whole(state, view), mine.strides)
    factors = _common_factors(theirs.extents, own.extents)
    if factors is None or theirs.jumps(factors, other.strides) != own.jumps(factors, mine.strides):
        raise UnsupportedProgram(
            f"{where}: {view.data!r} is a view of {viewed.data}[{window}] in the shape "
            f"{list(map(str, mine.shape))}, of which no common factors can be told. "
            "Write the copy as a map over the new shape, with // and % in the indices. If DaCe's "
            "parser made it (of np.einsum where an extent is 1, of slices of one element), it "
            "means something else than NumPy does: pass the function itself to distspmd.lower."
        )
    for connectors in (view.in_connectors, view.out_connectors):
        connectors.pop("views", None)
    state.remove_edge(edge)
    _add_map(state, *((theirs, own) if edge.dst is view else (own, theirs)), factors)


def _neighbours(state: SDFGState, node: nodes.Node) -> list[nodes.Node]:
    return [*state.predecessors(node), *state.successors(node)]


def _check_written(state: SDFGState, view: nodes.AccessNode) -> None:
    """A view that is written must be read or written whole: its copy carries all of it."""
    before = nx.ancestors(state.nx, view)
    if any(isinstance(node, nodes.AccessNode) and node.data == view.data for node in before):
        return
    edges = [edge for edge in state.in_edges(view) if not edge.data.is_empty()]
    written = [edge.data.get_dst_subset(edge, state) for edge in edges]
    everything = _whole(state, view)
    whole = any(subset is None or subset.covers(everything) for subset in written)
    if not whole or any(edge.data.dynamic for edge in edges):
        raise UnsupportedProgram(
            f"{source(state, view) or view}: a part of {view.data!r}, a view of another array, is "
            "written. Write into the array itself."
        )


def copies_to_maps(sdfg: SDFG) -> None:
    """Turn each copy outside of maps into a map, in place."""
    for state in sdfg.states():
        _copies_to_maps(state)


def _copies_to_maps(state: SDFGState) -> None:
    for edge in list(edges_of(state)):
        if (
            isinstance(edge.src, nodes.AccessNode)
            and isinstance(edge.dst, nodes.AccessNode)
            and state.entry_node(edge.src) is None
            and not edge.data.is_empty()
        ):
            _copy_to_map(state, edge)


def _copy_to_map(state: SDFGState, edge: Edge) -> None:
    origin, goal = edge.src, edge.dst
    assert isinstance(origin, nodes.AccessNode)
    assert isinstance(goal, nodes.AccessNode)
    taken = edge.data.get_src_subset(edge, state) or _whole(state, origin)
    given = edge.data.get_dst_subset(edge, state) or _whole(state, goal)
    in_order = range(max(len(taken), len(given)), 0, -1)  # the order of the dimensions
    sides = _Side.of(origin, taken, in_order), _Side.of(goal, given, in_order)
    factors = _common_factors(sides[0].extents, sides[1].extents)
    if factors is None:
        raise UnsupportedProgram(
            f"{source(state, goal) or goal}: the copy {origin.data}[{taken}] -> "
            f"{goal.data}[{given}] changes the shape, and cannot be partitioned: no extents divide "
            "those of both."
        )
    wcr: Any = edge.data.wcr
    state.remove_edge(edge)
    _add_map(state, *sides, factors, wcr)


def _add_map(
    state: SDFGState,
    origin: _Side,
    goal: _Side,
    factors: Sequence[sympy.Expr],
    wcr: str | None = None,
) -> None:
    name = f"copy_{origin.node.data}_to_{goal.node.data}"
    _, entry, _ = state.add_mapped_tasklet(
        name,
        {f"__i{k}": f"0:{n}" for k, n in enumerate(factors or [1])},
        {"__inp": Memlet(data=origin.node.data, subset=origin.index(factors))},
        "__out = __inp",
        {"__out": Memlet(data=goal.node.data, subset=goal.index(factors), wcr=wcr)},
        external_edges=True,
        input_nodes={origin.node.data: origin.node},
        output_nodes={goal.node.data: goal.node},
        debuginfo=goal.node.debuginfo,
    )
    entry.map.debuginfo = goal.node.debuginfo


def _whole(state: SDFGState, node: nodes.AccessNode) -> subsets.Range:
    everything: subsets.Range = subsets.Range.from_array(node.desc(state.sdfg))
    return everything


def _common_factors(
    taken: Sequence[sympy.Expr], given: Sequence[sympy.Expr]
) -> list[sympy.Expr] | None:
    """Extents whose groups multiply to those of either side, in order; none of them is 1."""
    if list(map(str, taken)) == list(map(str, given)):
        return list(taken)
    sides = [[int(n) for n in side if n.is_Integer] for side in (taken, given)]
    if len(sides[0]) < len(taken) or len(sides[1]) < len(given):
        return None
    if math.prod(sides[0]) != math.prod(sides[1]):
        return None
    ends = sorted({1, *(math.prod(side[d:]) for side in sides for d in range(len(side)))})
    if any(above % below for below, above in itertools.pairwise(ends)):
        return None
    found = [above // below for below, above in itertools.pairwise(ends)]
    return [sympy.Integer(n) for n in reversed(found)]
