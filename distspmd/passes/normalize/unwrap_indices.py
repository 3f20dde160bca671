"""Maps whose indices go around the end of an array become maps over the parts of their range.

before -> after:  ``map i in 0:n: y[i] = x[(i + 1) % n]``  ->  ``map i in 0:n-1: y[i] = x[i + 1]``,
``map i in n-1:n: y[i] = x[i + 1 - n]``.

A quotient ``(a i + b) // c`` is one number on each part of the range of ``i``, and a remainder is
affine there. Where the range is no longer than ``c`` these parts are two, and each becomes a map of
its own: which elements it reads is then known, its loop has no division, and a periodic boundary is
an exchange of halos.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
from dace import SDFG, Memlet, SDFGState, subsets
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge
from distspmd.analysis.whole_program import unchanged_control_flow
from distspmd.dace_compat.exact_ranges import exact
from distspmd.passes.fuse_maps import fuse_with_a_reader

_MOST_MAPS = 64
"""Maps that one may become; beyond, the indices stay as they are along some dimensions."""
_MOST_TOGETHER = 9
"""The same of one that takes in another: three parts along each of two dimensions."""
_QUOTIENTS = ("int_floor", "__int_floor")
_REMAINDERS = ("CMod", "Mod")
"""Of which the first has the sign of the dividend."""


@unchanged_control_flow()
def unwrap_indices(sdfg: SDFG) -> None:
    """Split such maps at the top level, in place, together with what reads their results alone."""
    for state in sdfg.states():
        maps = [node for node in state.nodes() if isinstance(node, nodes.MapEntry)]
        wrapped = [node for node in maps if state.entry_node(node) is None and _cuts(state, node)]
        for entry in wrapped:
            if entry in state.nodes():
                _fuse(sdfg, state, entry)
        for entry in wrapped:
            if entry in state.nodes():
                _unwrap(state, entry, _cuts(state, entry))


def _fuse(sdfg: SDFG, state: SDFGState, entry: nodes.MapEntry) -> None:
    """Let a map take in a reader of what it writes, if that leaves few maps: so no array is shifted
    in memory before it is read."""
    own, leave = _cuts(state, entry), state.exit_node(entry)
    assert leave is not None
    readers = []
    for array in state.successors(leave):
        for reader in state.successors(array):
            if isinstance(reader, nodes.MapEntry) and reader.map.range == entry.map.range:
                theirs = _cuts(state, reader)
                both = [own.get(d, set()) | theirs.get(d, set()) for d in {*own, *theirs}]
                if math.prod(len(cuts) + 1 for cuts in both) <= _MOST_TOGETHER:
                    readers.append(reader)
    fuse_with_a_reader(sdfg, state, entry, readers)


def _cuts(state: SDFGState, entry: nodes.MapEntry) -> dict[int, set[int]]:
    """By parameter, the values at which a quotient in an index of a map becomes another number.

    None for a map that is more than tasklets, and for a parameter that needs too many.
    """
    scope = state.scope_subgraph(entry, include_entry=False, include_exit=False)
    if not all(isinstance(n, nodes.Tasklet | nodes.AccessNode) for n in scope.nodes()):
        return {}
    divisions = set(_divisions(state.scope_subgraph(entry).edges()))
    found: dict[int, set[int]] = {}
    for d, name in enumerate(map(str, entry.map.params)) if divisions else ():
        extent = tuple(map(exact, entry.map.range.ranges[d]))
        if all(end.is_Integer for end in extent) and extent[2] == 1:
            first, last, _ = map(int, extent)
            cuts = {at for each in divisions for at in _cuts_of(each, name, first, last)}
            if cuts:
                found[d] = cuts
    return found


def _cuts_of(division: tuple[sympy.Expr, int], name: str, first: int, last: int) -> Iterator[int]:
    """The value from which on a quotient is another number than before, if it is only one.

    Where there are more, indices do not go around an end: they are those of other dimensions.
    """
    over, under = division
    if (line := _line(over, name)) is None or abs(line[0]) * (last - first) >= under:
        return
    factor, constant = line
    low, high = sorted((factor * at + constant) // under for at in (first, last))
    if low < high:
        at = high * under - constant
        yield -(-at // factor) if factor > 0 else at // factor + 1


def _unwrap(state: SDFGState, entry: nodes.MapEntry, cuts: Mapping[int, set[int]]) -> None:
    """Split a map at some values, along one parameter after the other."""
    parts = [entry]
    for d, own in cuts.items():
        if len(parts) * (len(own) + 1) > _MOST_MAPS:
            continue
        for part in list(parts):
            first, last = map(int, part.map.range.ranges[d][:2])
            begins = [first, *sorted(own)]
            ends = [*(at - 1 for at in begins[1:]), last]
            twins = [part, *(_copied(state, part) for _ in own)]
            for twin, extent in zip(twins, zip(begins, ends, strict=True), strict=True):
                _narrow(state, twin, d, extent)
            parts += twins[1:]


def _divisions(edges: Sequence[Edge]) -> Iterator[tuple[sympy.Expr, int]]:
    """Dividends and divisors of the quotients and remainders in what edges touch."""
    for edge in edges:
        for expression in _ends(edge.data):
            for part in sympy.preorder_traversal(expression):
                if _is_division(part):
                    yield part.args[0], int(part.args[1])


def _ends(memlet: Memlet) -> Iterator[sympy.Expr]:
    for subset in (memlet.subset, memlet.other_subset):
        if isinstance(subset, subsets.Range):
            for ends in subset.ranges:
                yield from map(sympy.sympify, ends)


def _is_division(part: sympy.Basic) -> bool:
    if part.func.__name__ not in (*_QUOTIENTS, *_REMAINDERS):
        return False
    return len(part.args) == 2 and bool(part.args[1].is_Integer and part.args[1] > 0)


def _line(over: sympy.Expr, name: str) -> tuple[int, int] | None:
    """Factor and constant of ``a i + b``; None for anything else."""
    symbols = [s for s in over.free_symbols if s.name == name]
    if len(symbols) != 1 or len(over.free_symbols) != 1:
        return None
    expanded = sympy.expand(over)
    factor = expanded.coeff(symbols[0], 1)
    constant = sympy.expand(expanded - factor * symbols[0])
    if not factor.is_Integer or not constant.is_Integer or not factor:
        return None
    return int(factor), int(constant)


def _copied(state: SDFGState, entry: nodes.MapEntry) -> nodes.MapEntry:
    """The entry of a copy of a map, between the same nodes."""
    scope, leave = state.scope_subgraph(entry), state.exit_node(entry)
    assert leave is not None
    twins: dict[nodes.Node, Any] = {}
    memo: dict[int, object] = {id(state.sdfg): state.sdfg, id(state): state}
    for node in scope.nodes():
        twins[node] = copy.deepcopy(node, memo)
        state.add_node(twins[node])
    twins[leave].map = twins[entry].map
    for edge in (*scope.edges(), *state.in_edges(entry), *state.out_edges(leave)):
        ends = twins.get(edge.src, edge.src), twins.get(edge.dst, edge.dst)
        state.add_edge(ends[0], edge.src_conn, ends[1], edge.dst_conn, copy.deepcopy(edge.data))
    found: nodes.MapEntry = twins[entry]
    return found


def _narrow(state: SDFGState, entry: nodes.MapEntry, d: int, part: tuple[int, int]) -> None:
    """Let a map run over a part of a range, on which quotients are numbers."""
    name = str(entry.map.params[d])
    ranges = list(entry.map.range.ranges)
    ranges[d] = (sympy.Integer(part[0]), sympy.Integer(part[1]), sympy.Integer(1))
    entry.map.range = subsets.Range(ranges)
    for edge in state.scope_subgraph(entry).edges():
        for subset in (edge.data.subset, edge.data.other_subset):
            if isinstance(subset, subsets.Range):
                subset.ranges = [
                    tuple(_resolved(sympy.sympify(end), name, part) for end in ends)
                    for ends in subset.ranges
                ]


def _resolved(expression: sympy.Expr, name: str, part: tuple[int, int]) -> sympy.Expr:
    """An index in which quotients that are one number on a part of a range are that number."""
    found = {}
    for division in filter(_is_division, sympy.preorder_traversal(expression)):
        over, under = division.args[0], int(division.args[1])
        if (line := _line(over, name)) is None:
            continue
        low, high = ((line[0] * at + line[1]) // under for at in part)
        name_of = division.func.__name__
        if low == high and (low >= 0 or name_of == "Mod"):
            is_remainder = name_of in _REMAINDERS
            found[division] = over - low * under if is_remainder else sympy.Integer(low)
    return sympy.expand(expression.xreplace(found)) if found else expression
