"""What an iteration of a space computes: operations, and by which kind of code.

The numbers are estimates for comparing schedules: loops whose length is not known before the run
count as :data:`~distspmd.plans.heuristics.HEURISTICS` says, and each branch counts.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from dace import SDFG, SDFGState, dtypes
from dace.sdfg import nodes
from numpy.typing import NDArray

from distspmd.analysis.iteration_spaces import IterationSpace, main_map, parameters_of
from distspmd.analysis.loop_runs import times
from distspmd.analysis.scopes import nodes_inside
from distspmd.expressions.ir import Expression, Operation
from distspmd.expressions.operations import OPERATIONS
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import NEST, Contraction, fastest_implementation
from distspmd.nodes.row_exchange import ExchangedRows
from distspmd.nodes.scatter import Scatter
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Kind

LINE = 64
"""Bytes that a cache gets at once."""


@dataclass(frozen=True)
class Work:
    """What one iteration of a space costs.

    Attributes:
        kind: of the code that runs.
        operations: of floating point, in one iteration.
    """

    kind: Kind
    operations: float


_FUNCTION = 4
"""Additions from which on an operation is a function, which a core does not do at the same pace."""

_PRODUCTS = {"f4": (Kind.SINGLE_PRODUCT, 1), "f8": (Kind.PRODUCT, 1)}
_PRODUCTS |= {"c8": (Kind.SINGLE_PRODUCT, 4), "c16": (Kind.PRODUCT, 4)}
"""Code for products of elements of a type, and multiplications of real numbers in one of them."""


def work_of(space: IterationSpace) -> Work:
    """The work of each iteration of a space."""
    node = space.node
    if isinstance(node, nodes.MapEntry):
        return _loop(space, _of_scope(space.state, node))
    if isinstance(node, Contraction):
        operands = len([edge for edge in space.state.in_edges(node) if edge.dst_conn])
        value = node.reduced
        operations = 1.0 + (_of_expression([value]).sum() if value is not None else operands - 1)
        if fastest_implementation(node, space.state) == NEST:
            return Work(Kind.LOOP, operations)
        return _product(space, operations)
    if isinstance(node, ExchangedRows):
        return Work(Kind.LOOP, 1.0)
    if isinstance(node, Scatter):
        (index,) = (e for e in space.state.in_edges(node) if e.dst_conn == "_in0")
        (written,) = space.state.out_edges(node)
        ratio = index.data.subset.num_elements() / written.data.subset.num_elements()
        return Work(Kind.LOOP, 1.0 + (float(ratio) if sympy.sympify(ratio).is_number else 1.0))
    assert space.expansion is not None
    reduced = len(space.parameters) > max(
        (len(edge.data.subset.size()) for edge in space.state.out_edges(node) if edge.data.subset),
        default=0,
    )
    if reduced and len([e for e in space.state.in_edges(node) if e.dst_conn]) >= 2:
        return _product(space, 2.0)
    state, entry = main_map(space.expansion)
    return _loop(space, _of_scope(state, entry))


def _loop(space: IterationSpace, counted: NDArray[np.float64]) -> Work:
    """A loop with some operations: plain ones, and those of functions."""
    plain, functions = counted
    operations = max(1.0, float(plain + functions))
    if functions <= plain:
        return Work(Kind.LOOP, operations)
    is_single = _written(space) == np.dtype(np.float32)
    return Work(Kind.SINGLE_FUNCTION if is_single else Kind.FUNCTION, operations)


def _written(space: IterationSpace) -> np.dtype[Any] | None:
    """The type of the elements that a space writes; None where memlets do not tell them."""
    state, node = space.state, space.node
    end = state.exit_node(node) if isinstance(node, nodes.MapEntry) else node
    data = next((edge.data.data for edge in state.out_edges(end) if edge.data.data), None)
    return None if data is None else np.dtype(state.sdfg.arrays[data].dtype.type)


def swept_lines(
    space: IterationSpace, index: Sequence[str | None], parts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Bytes of lines that loops go through between two neighbours in a row of an array.

    They are those of the loops within the one that goes along the row. The cache has the line of
    the neighbour still if it holds all of them. 0 where loops go along rows first, or do not go
    through the array in such a simple way.

    Args:
        index: parameter that indexes each dimension of the array.
        parts: of each parameter, in a row for each tiling.
    """
    found = np.zeros(len(parts))
    along = index[-1] if index else None
    if along is None or not isinstance(space.node, nodes.MapEntry):
        return found
    outer = space.parameters.index(along)
    within = [d for d, name in enumerate(space.parameters) if d > outer and name in index]
    ranges = [space.ranges[d] for d in within]
    lengths = [sympy.sympify((each.end - each.begin) / each.step) for each in ranges]
    if not within or not all(length.is_number for length in lengths):
        return found
    each = np.ceil(np.array([float(length) for length in lengths]) / parts[:, within])
    lines: NDArray[np.float64] = LINE * each.prod(axis=1)
    return lines


def _product(space: IterationSpace, operations: float) -> Work:
    """Products of matrices, by the type of their elements."""
    dtype = _written(space)
    if dtype is None:
        return Work(Kind.LOOP, operations)
    kind, times = _PRODUCTS.get(dtype.str[1:], (Kind.PRODUCT, 1))
    return Work(kind, times * operations)


def _of_scope(state: SDFGState, entry: nodes.MapEntry) -> NDArray[np.float64]:
    """Operations of one iteration of a map, with all that is inside: plain, and of functions."""
    found = np.zeros(2)
    for node in nodes_inside(state, entry):
        if isinstance(node, nodes.CodeNode):
            found += _of_code(node) * _inner(state, node, entry)
    return found


def _inner(state: SDFGState, node: nodes.Node, outer: nodes.MapEntry) -> float:
    """How often a node of a map runs in one iteration of it, for the maps between both."""
    count, entry = 1.0, state.entry_node(node)
    while entry is not None and entry is not outer:
        assert isinstance(entry, nodes.MapEntry)
        _, ranges = parameters_of(entry)
        for extent in ranges:
            count *= _length((extent.end - extent.begin) / extent.step)
        entry = state.entry_node(entry)
    return count


def _length(iterations: sympy.Expr) -> float:
    """Iterations as a number; of what is not known before the run, some."""
    found = sympy.sympify(iterations)
    return max(0.0, float(found)) if found.is_number else float(HEURISTICS.unknown_loop)


def _of_code(node: nodes.CodeNode) -> NDArray[np.float64]:
    if isinstance(node, nodes.NestedSDFG):
        return _of_sdfg(node.sdfg)
    if isinstance(node, Computation):
        known = node.assignments()
        if known is not None:
            return _of_expression([value for _, value in known])
    if isinstance(node, nodes.Tasklet) and node.language is dtypes.Language.Python:
        counted = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare, ast.BoolOp, ast.IfExp)
        body = (ast.walk(line) for line in node.code.code if isinstance(line, ast.AST))
        plain = float(sum(isinstance(part, counted) for parts in body for part in parts))
        return np.array([plain, 0.0])
    return np.array([1.0, 0.0])


def _of_sdfg(sdfg: SDFG) -> NDArray[np.float64]:
    """Operations of a nested SDFG: each state as often as its loops say."""
    found = np.zeros(2)
    for state in sdfg.states():
        each = np.zeros(2)
        for node in state.nodes():
            if not isinstance(node, nodes.CodeNode):
                continue
            count, entry = 1.0, state.entry_node(node)
            while entry is not None:
                assert isinstance(entry, nodes.MapEntry)
                _, ranges = parameters_of(entry)
                lengths = (_length((e.end - e.begin) / e.step) for e in ranges)
                count *= math.prod(lengths)
                entry = state.entry_node(entry)
            each += _of_code(node) * count
        found += each * times(state)
    return found


def _of_expression(values: Iterable[Expression]) -> NDArray[np.float64]:
    """The work of the operations in expressions, each part counted once."""
    seen: set[int] = set()
    pending: list[Any] = list(values)
    found = np.zeros(2)
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if part.arguments:
            work = OPERATIONS[part.name].work if isinstance(part, Operation) else 1
            found[int(work >= _FUNCTION)] += work
            pending += part.arguments
    return found
