"""Maps that combine all of their values become contractions, which combine them in registers.

before -> after:  ``map i, j, k: c[i, j] += a[i, k] * b[k, j]``  ->  ``t = contraction(a, b)``;
``map i, j: c[i, j] = c[i, j] + t[i, j]``. A write with a conflict resolution would lock each
element that it combines a value with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

import numpy as np
import sympy
from dace import SDFG, Memlet, SDFGState
from dace.sdfg import nodes
from dace.subsets import Range, Subset

from distspmd.analysis.accesses import Edge
from distspmd.expressions.ir import (
    Argument,
    Expression,
    IndexValue,
    Operation,
    apply,
    parts,
    replace_leaves,
)
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.map_scopes import enter_map, leave_map

_OPERATIONS = {
    "lambda x, y: x + y": ("sum", "add"),
    "lambda x, y: max(x, y)": ("max", "maximum"),
    "lambda x, y: min(x, y)": ("min", "minimum"),
}
"""What contractions and expressions call the reductions that loops write."""


@dataclass(frozen=True)
class _Combination:
    """A map that combines values.

    Attributes:
        state: where it is.
        entry: of the map.
        tasklet: the only one in it.
        letters: of its parameters, in order, with the first and the last value of each.
    """

    state: SDFGState
    entry: nodes.MapEntry
    tasklet: Computation
    letters: Mapping[str, tuple[str, int, int]]

    def window(self, edge: Edge) -> tuple[str, list[tuple[Any, Any, int]]] | None:
        """Subscripts and ranges of what an edge touches in all iterations."""
        text, ranges, used = "", [], set()
        for first, last, _ in edge.data.subset.ranges:
            own = [s for s in sympy.sympify(first).free_symbols if s.name in self.letters]
            offset = sympy.expand(first - own[0]) if own else sympy.sympify(first)
            if first != last or len(own) > 1 or (own and own[0] in offset.free_symbols):
                return None
            if own and own[0].name in used:
                return None
            used |= {s.name for s in own}
            letter, low, high = self.letters[own[0].name] if own else ("()", 0, 0)
            text += letter
            ranges.append((sympy.expand(offset + low), sympy.expand(offset + high), 1))
        return text, ranges


def combine_in_registers(sdfg: SDFG, tasklets: Sequence[nodes.Tasklet]) -> None:
    """Rewrite such maps in place, of those around some tasklets."""
    chosen = {id(tasklet) for tasklet in tasklets}
    for state in sdfg.states() if tasklets else ():
        for node in [node for node in state.nodes() if id(node) in chosen]:
            entry = state.entry_node(node)
            if isinstance(entry, nodes.MapEntry) and state.entry_node(entry) is None:
                found = _combination(state, entry)
                if found is not None:
                    _rewrite(found)


def _combination(state: SDFGState, entry: nodes.MapEntry) -> _Combination | None:
    inside = state.scope_subgraph(entry, include_entry=False, include_exit=False).nodes()
    if len(inside) != 1 or not isinstance(inside[0], Computation):
        return None
    letters = {}
    for letter, name, (low, high, step) in zip(
        ascii_lowercase, entry.map.params, entry.map.range.ranges, strict=False
    ):
        low, high = map(sympy.sympify, (low, high))
        if not (low.is_Integer and high.is_Integer and step == 1):
            return None
        letters[str(name)] = letter, int(low), int(high)
    alone = len(state.out_edges(inside[0])) == 1 and len(letters) == len(entry.map.params)
    return _Combination(state, entry, inside[0], letters) if alone else None


def _rewrite(found: _Combination) -> None:
    state, sdfg, tasklet = found.state, found.state.sdfg, found.tasklet
    (leaving,) = state.out_edges(tasklet)
    operation = _OPERATIONS.get(str(leaving.data.wcr))
    result = found.window(leaving)
    before = [edge for edge in state.in_edges(tasklet) if not edge.data.is_empty()]
    operands = [found.window(edge) for edge in before]
    assignments = tasklet.assignments()
    if operation is None or result is None or not before or not assignments or None in operands:
        return
    used = {letter for text, _ in filter(None, operands) for letter in text}
    if not {letter for letter, _, _ in found.letters.values()} <= used:
        return  # a letter needs an operand that has its extent
    container = sdfg.arrays[leaving.data.data]
    dtype = np.dtype(container.dtype.type)
    expression = _expression([str(edge.dst_conn) for edge in before], assignments[0][1])
    if dtype.kind not in "fiu" or expression is None:
        return
    node = Contraction(tasklet.label, f"{','.join(o[0] for o in operands if o)}->{result[0]}")
    node.operation, node.expression = operation[0], expression
    node.debuginfo = tasklet.debuginfo
    state.add_node(node)
    for number, (edge, window) in enumerate(zip(before, operands, strict=True)):
        assert window is not None
        source = state.memlet_path(edge)[0].src
        memlet = Memlet(data=edge.data.data, subset=Range(window[1]))
        state.add_edge(source, None, node, f"_in{number}", memlet)
    shape = [high - low + 1 for low, high, _ in result[1]]
    combined, _ = sdfg.add_transient(
        f"{operation[0]}_{str(leaving.data.data).lstrip('_')}",
        shape,
        container.dtype,
        find_new_name=True,
    )
    target = state.memlet_path(leaving)[-1].dst
    scope = state.scope_subgraph(found.entry).nodes()
    state.remove_nodes_from(scope)
    made = state.add_access(combined)
    state.add_edge(node, "_out", made, None, Memlet.from_array(combined, sdfg.arrays[combined]))
    _add_combined(state, made, target, result[1], operation[1], node.debuginfo)


def _add_combined(
    state: SDFGState,
    made: nodes.AccessNode,
    target: nodes.AccessNode,
    window: Sequence[tuple[Any, Any, int]],
    operation: str,
    info: Any,
) -> None:
    """Combine what is there with what was made."""
    sdfg = state.sdfg
    dtype = np.dtype(sdfg.arrays[target.data].dtype.type)
    value = apply(operation, Argument("_old", dtype), Argument("_new", dtype))
    inputs = {"_old": None, "_new": None}
    tasklet = Computation(target.data, (("_out", value),), inputs, {"_out": None})
    tasklet.debuginfo = info
    state.add_node(tasklet)
    moving = [d for d, (low, high, _) in enumerate(window) if low != high]
    names = {d: sympy.Symbol(f"__i{d}") for d in moving}
    lows = [low for low, _, _ in window]
    there = [names[d] + low if d in names else low for d, low in enumerate(lows)]
    here = [names.get(d, sympy.Integer(0)) for d in range(len(window))]

    def element(name: str, index: Sequence[Any]) -> Memlet:
        return Memlet(data=name, subset=Range([(i, i, 1) for i in index]))

    old = state.add_read(target.data)
    if not moving:
        state.add_edge(old, None, tasklet, "_old", element(target.data, there))
        state.add_edge(made, None, tasklet, "_new", element(made.data, here))
        state.add_edge(tasklet, "_out", target, None, element(target.data, there))
        return
    ranges: dict[str, str | Subset] = {
        str(names[d]): f"0:{window[d][1] - window[d][0] + 1}" for d in moving
    }
    entry, leave = state.add_map(target.data, ranges)
    entry.map.debuginfo = info
    enter_map(state, sdfg, entry, old, tasklet, "_old", element(target.data, there))
    enter_map(state, sdfg, entry, made, tasklet, "_new", element(made.data, here))
    leave_map(state, sdfg, leave, tasklet, "_out", element(target.data, there), target)


def _expression(connectors: Sequence[str], value: Expression) -> str | None:
    """What a contraction reduces, in its text form; empty for the product of its operands."""
    place = {name: f"_v{number}" for number, name in enumerate(connectors)}
    arguments = value.arguments if isinstance(value, Operation) else (value,)
    plain = isinstance(value, Argument) or (
        isinstance(value, Operation) and value.name == "multiply"
    )
    if (
        plain
        and [str(getattr(a, "name", "")) for a in arguments] == list(connectors)
        and all(isinstance(a, Argument) and a.dtype == value.dtype for a in arguments)
    ):
        return ""

    if any(isinstance(part, IndexValue) for part in parts(value)):
        return None  # letters count from where the windows begin, once these are aligned

    def leaf_of(leaf: Expression) -> Expression:
        return Argument(place[leaf.name], leaf.dtype) if isinstance(leaf, Argument) else leaf

    return str(replace_leaves(value, leaf_of))
