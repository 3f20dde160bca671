"""Other whole numbers in the place of symbols, in blocks whose code is expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping

import sympy
from dace import Memlet, SDFGState
from dace.sdfg import InterstateEdge, nodes
from dace.sdfg.state import (
    AbstractControlFlowRegion,
    ConditionalBlock,
    ControlFlowBlock,
    LoopRegion,
)
from dace.subsets import Range

from distspmd.analysis.loop_values import header_names, names_in
from distspmd.expressions.ir import Expression, IndexValue, replace_leaves
from distspmd.nodes.computation import Computation


def can_put_in(block: ControlFlowBlock, name: str) -> bool:
    """Whether nothing in a block reads a symbol but memlets, edges and expressions of tasklets."""
    if isinstance(block, SDFGState):
        alone = all(isinstance(n, nodes.AccessNode | Computation) for n in block.nodes())
        return name not in names_in(block) or (alone and all(map(_is_known, block.nodes())))
    if isinstance(block, LoopRegion | ConditionalBlock) and name in header_names(block):
        return False
    inside = block.nodes() if isinstance(block, AbstractControlFlowRegion) else []
    return all(can_put_in(each, name) for each in inside)


def _is_known(node: nodes.Node) -> bool:
    return not isinstance(node, Computation) or bool(node.assignments())


def put_in(block: ControlFlowBlock, by: Mapping[str, sympy.Expr]) -> None:
    """Put sums of symbols in the place of symbols, in place."""
    if isinstance(block, SDFGState):
        _put_in_state(block, by)
    elif isinstance(block, AbstractControlFlowRegion):
        for inner in block.nodes():
            put_in(inner, by)
        for edge in block.edges():
            put_in_edge(edge.data, by)


def put_in_edge(edge: InterstateEdge, by: Mapping[str, sympy.Expr]) -> None:
    """The same of what an edge assigns."""
    for name, value in list(edge.assignments.items()):
        text = str(value)
        for old, new in by.items():
            text = re.sub(rf"\b{re.escape(old)}\b", f"({new})", text)
        edge.assignments[name] = text


def _put_in_state(state: SDFGState, by: Mapping[str, sympy.Expr]) -> None:
    for node in state.nodes():
        if isinstance(node, Computation):
            found = node.assignments() or ()
            node.assign(
                tuple((n, replace_leaves(value, lambda x: _leaf(x, by))) for n, value in found)
            )
    for edge in state.edges():
        if not edge.data.is_empty():
            ranges = [tuple(_put(end, by) for end in ends) for ends in edge.data.subset.ranges]
            wcr = edge.data.wcr
            edge.data = Memlet(data=edge.data.data, subset=Range(ranges), wcr=wcr)


def _leaf(leaf: Expression, by: Mapping[str, sympy.Expr]) -> Expression:
    if not isinstance(leaf, IndexValue) or not any(str(n) in by for n, _ in leaf.terms):
        return leaf
    total = sympy.Integer(leaf.constant)
    for name, factor in leaf.terms:
        total += factor * by.get(str(name), sympy.Symbol(str(name)))
    terms = sympy.expand(total).as_coefficients_dict()
    constant = int(terms.pop(sympy.S.One, 0))
    return IndexValue(
        tuple(sorted((str(n), int(f)) for n, f in terms.items())), constant, leaf.dtype
    )


def _put(value: object, by: Mapping[str, sympy.Expr]) -> sympy.Expr:
    known = sympy.sympify(value)
    return known.subs({s: by[s.name] for s in known.free_symbols if s.name in by})
