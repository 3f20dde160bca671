"""Operands that lie apart: of each element, at most one rank has one that is not zero.

In ``y[r] += m[r] == e ? a[r] * b[e] : 0``, split along ``e``, the rank whose part of ``e`` has
``m[r]`` has the value of ``y[r]``, and the others have zero. Code that makes zero of zeros can
therefore run on the operands, linear or not: ``silu(y[r]) * y[r]``. So does a space that picks
along ``e`` by the same ``m``, with the same parts: each rank reads the rows that are its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
import sympy
from dace import SDFGState
from dace.sdfg import nodes

from distspmd.analysis.accesses import Access, Dimension, Edge
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.linear_uses import computed
from distspmd.analysis.tiling import Tiling
from distspmd.expressions.evaluation import evaluate
from distspmd.expressions.ir import Argument, Constant, Expression, Operation, apply, parts
from distspmd.layouts.intervals import Interval
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.contraction_loops import parameter
from distspmd.nodes.subscripts import Subscripts

Index = tuple[str | None, ...]
"""The parameter of each dimension that is indexed by a parameter alone."""


@dataclass(frozen=True)
class Owner:
    """Which rank may have an operand that is not zero.

    Attributes:
        member: the container that holds, for each row, what picks.
        axes: of the mesh, along which ranks have different parts.
        parts: values of the member by which each rank is picked.
    """

    member: str
    axes: tuple[str, ...]
    parts: tuple[Interval, ...]


@dataclass(frozen=True)
class Picking:
    """A space that picks: its owner, and the parameters that index the member."""

    owner: Owner
    rows: Index


def picks(space: IterationSpace, tiling: Tiling) -> bool:
    """Whether a space picks along a parameter that is split."""
    node = space.node
    if not isinstance(node, Contraction) or node.pick is None or node.operation != "sum":
        return False
    place = space.parameters.index(parameter(node.pick.letter))
    return any(tiling.mesh[axis] > 1 for axis in tiling.splits[place])


def picking(space: IterationSpace, tiling: Tiling, accesses: Sequence[Access]) -> Picking | None:
    """How a space picks what ranks own, with all its accesses; None where that is not so simple."""
    node = space.node
    if not picks(space, tiling):
        return None
    assert isinstance(node, Contraction)
    assert node.pick is not None
    place = space.parameters.index(parameter(node.pick.letter))
    axes = tuple(axis for axis in tiling.splits[place] if tiling.mesh[axis] > 1)
    connector = f"_in{node.pick.operand}"
    edge = next(e for e in space.state.in_edges(node) if e.dst_conn == connector)
    rows = indices(space, edge.data.data, [a for a in accesses if a.edge is edge])
    alone = sum(e.data.data == edge.data.data for e in space.state.in_edges(node)) == 1
    if None in rows or not alone:
        return None
    ends = zip(tiling.lower[:, place].tolist(), tiling.upper[:, place].tolist(), strict=True)
    return Picking(Owner(edge.data.data, tuple(sorted(axes)), tuple(ends)), rows)


def indices(space: IterationSpace, data: str, accesses: Sequence[Access]) -> Index:
    """The parameter by which all accesses of a space index each dimension of a container.

    None for a dimension where it is not one parameter alone; nothing where there is no access.

    Args:
        space: the space.
        data: the container.
        accesses: those of the space that are looked at.
    """
    own = [access for access in accesses if access.data == data]
    found = []
    for dimensions in zip(*(access.dimensions for access in own), strict=True):
        names = {_parameter(space, dimension) for dimension in dimensions}
        found.append(names.pop() if len(names) == 1 else None)
    return tuple(found)


def _parameter(space: IterationSpace, dimension: Dimension | None) -> str | None:
    if dimension is None or dimension.first != dimension.last:
        return None
    symbol = sympy.sympify(dimension.first)
    return symbol.name if symbol.is_Symbol and symbol.name in space.parameters else None


def adds_up(space: IterationSpace) -> bool:
    """Whether a space is a sum of one operand over some of its dimensions."""
    node = space.node
    if not isinstance(node, Contraction) or node.operation != "sum" or node.pick is not None:
        return False
    alone = len(Subscripts.parse(node.subscripts).operands) == 1
    return alone and (node.reduced is None or isinstance(node.reduced, Argument))


# -- code that makes zero of zeros ----------------------------------------------------------------


def keeps_zero(space: IterationSpace, names: Collection[str]) -> bool:
    """Whether a space writes zeros alone, or adds such up, where it reads zeros of containers."""
    node, state = space.node, space.state
    if isinstance(node, Contraction):
        return _contraction_keeps_zero(state, node, names)
    if isinstance(node, nodes.MapEntry):
        return _map_keeps_zero(state, node, names)
    return False


def _contraction_keeps_zero(state: SDFGState, node: Contraction, names: Collection[str]) -> bool:
    zeros = {
        e.dst_conn.replace("_in", "_v")
        for e in state.in_edges(node)
        if e.dst_conn and e.data.data in names
    }
    chosen = node.pick is not None and f"_v{node.pick.operand}" in zeros
    if node.operation != "sum" or chosen or not zeros:
        return False
    value = node.reduced
    return value is None or _is_zero(value, zeros)


def _map_keeps_zero(state: SDFGState, entry: nodes.MapEntry, names: Collection[str]) -> bool:
    """The same of a map of tasklets, which may pass single elements on."""
    scope = state.scope_subgraph(entry)
    zeros: set[tuple[nodes.Node, str | None]] = set()

    def is_zero(edge: Edge) -> bool:
        if edge.src is entry:
            return edge.data.data in names
        return (edge.src, edge.src_conn) in zeros

    for node in nx.topological_sort(state.nx.subgraph(scope.nodes())):
        before = state.in_edges(node)
        if isinstance(node, nodes.Tasklet):
            code = computed(state, node, np.dtype(np.float64))
            if code is None:
                return False
            given = {e.dst_conn for e in before if e.dst_conn and is_zero(e)}
            zeros |= {(node, name) for name, value in code if _is_zero(value, given)}
        elif isinstance(node, nodes.AccessNode):
            if len(before) != 1 or state.sdfg.arrays[node.data].total_size != 1:
                return False
            zeros |= {(node, None)} if is_zero(before[0]) else set()
        elif isinstance(node, nodes.MapExit):
            return all(is_zero(e) and e.data.wcr is None for e in before)
        elif node is not entry:
            return False
    return False


def _is_zero(value: Expression, zeros: Iterable[str]) -> bool:
    """Whether an expression is zero, whatever else it reads, where some arguments are."""
    names = set(zeros)
    known: dict[int, Constant | None] = {}
    for part in parts(value):
        known[id(part)] = _known(part, names, known)
    found = known[id(value)]
    return found is not None and found.value == 0


def _known(
    part: Expression, zeros: Collection[str], known: dict[int, Constant | None]
) -> Constant | None:
    """The value of a part of an expression, if it is the same whatever else is read."""
    if isinstance(part, Constant):
        return part
    if isinstance(part, Argument):
        return _constant(0, part) if part.name in zeros else None
    if not isinstance(part, Operation):
        return None
    arguments = [known[id(argument)] for argument in part.arguments]
    values = [each.value for each in arguments if each]
    if len(values) < len(arguments):
        one = len(values) == 1 and values[0] == 0
        nothing = one and (part.name == "multiply" or (part.name == "divide" and arguments[0]))
        nothing = nothing or (part.name in _CHOICES and _are_zeros(arguments[-2:]))
        return _constant(0, part) if nothing else None
    try:
        folded = apply(part.name, *(each for each in arguments if each), dtype=part.dtype)
        return _constant(evaluate(folded, {}).item(), part)
    except (KeyError, TypeError):
        return None


def _are_zeros(found: Iterable[Constant | None]) -> bool:
    return all(each is not None and each.value == 0 for each in found)


_CHOICES = ("where", "pick", "pick_from", "pick_between", "pick_stepped")
"""Operations that are one of their last two arguments."""


def _constant(value: object, like: Expression) -> Constant:
    return Constant(np.asarray(value).astype(like.dtype).item(), like.dtype)
