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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from dace import SDFG, Memlet, SDFGState, subsets
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge
from distspmd.analysis.whole_program import unchanged_control_flow
from distspmd.dace_compat.exact_ranges import exact
from distspmd.layouts import relations
from distspmd.layouts.intervals import Numbers
from distspmd.passes.normalize.split_reads import lead_apart

_MOST_MAPS = 64
"""Maps that one may become; beyond, the indices stay as they are along some dimensions."""
MOST_TOGETHER = 27
"""The same of one that takes in another: three parts along each of three dimensions."""
_QUOTIENTS = ("int_floor", "__int_floor")
REMAINDERS = ("CMod", "Mod")
"""Of which the first has the sign of the dividend."""


@unchanged_control_flow()
def unwrap_indices(sdfg: SDFG) -> None:
    """Split such maps at the top level, in place."""
    for state in filter(goes_around, sdfg.states()):
        maps = [node for node in state.nodes() if isinstance(node, nodes.MapEntry)]
        wrapped = [node for node in maps if state.entry_node(node) is None and cuts_of(state, node)]
        for entry in wrapped:
            _unwrap(state, entry, cuts_of(state, entry))


def goes_around(state: SDFGState) -> bool:
    """Whether an index in a state is a quotient or a remainder."""
    return any(True for edge in state.edges() for _ in _divisions(_ends(edge.data)))


def cuts_of(state: SDFGState, entry: nodes.MapEntry) -> dict[int, set[int]]:
    """By parameter, the values at which a quotient in an index of a map becomes another number.

    None for a map that is more than tasklets, and for a parameter that needs too many.
    """
    scope = state.scope_subgraph(entry, include_entry=False, include_exit=False)
    if not all(isinstance(n, nodes.Tasklet | nodes.AccessNode) for n in scope.nodes()):
        return {}
    ends = [end for edge in state.scope_subgraph(entry).edges() for end in _ends(edge.data)]
    leave = state.exit_node(entry)
    assert leave is not None, "every map has an end"
    written = [end for edge in state.in_edges(leave) for end in _ends(edge.data)]
    return cuts_in(entry, ends, written)


def cuts_in(
    entry: nodes.MapEntry, indices: Sequence[sympy.Expr], written: Sequence[sympy.Expr]
) -> dict[int, set[int]]:
    """By parameter of a map, the values at which a quotient in some indices becomes another.

    Args:
        entry: of the map.
        indices: that may have quotients.
        written: indices of what the map writes, which has to be a box for each part of the range.
    """
    divisions, whole = set(_divisions(indices)), _inner_ones(entry, written)
    found: dict[int, set[int]] = {}
    for d, (name, extent) in enumerate(_extents(entry).items()) if divisions else ():
        if name in whole:
            continue
        cuts = {at for each in divisions for at in _cuts_of(each, name, *extent)}
        if cuts:
            found[d] = cuts
    return found


def _inner_ones(entry: nodes.MapEntry, written: Sequence[sympy.Expr]) -> set[str]:
    """Parameters that move an index less than another one does, such as ``j`` in ``7 * i + j``.

    A part of their range is written in runs, between which other parts write.
    """
    found: set[str] = set()
    for index in written:
        own = {s.name for s in index.free_symbols} & {*map(str, entry.map.params)}
        if len(own) < 2:
            continue
        factors = {s.name: sympy.expand(index).coeff(s, 1) for s in index.free_symbols}
        known = {name: abs(factors[name]) for name in own if factors[name].is_Integer}
        most = [name for name, factor in known.items() if factor == max(known.values())]
        is_line = known.keys() == own and len(most) == 1
        found |= own - {*most} if is_line else own
    return found


def all_are_cut(
    entry: nodes.MapEntry, indices: Sequence[sympy.Expr], written: Sequence[sympy.Expr]
) -> bool:
    """Whether no quotient or remainder is left in indices of a map when it is cut."""
    inner = _inner_ones(entry, written)
    extents = {name: own for name, own in _extents(entry).items() if name not in inner}
    for over, under in _divisions(indices):
        names = [s.name for s in over.free_symbols]
        line = _line(over, names[0]) if len(names) == 1 and names[0] in extents else None
        if line is None or abs(line[0]) * (extents[names[0]][1] - extents[names[0]][0]) >= under:
            return False
    return True


def _extents(entry: nodes.MapEntry) -> dict[str, tuple[int, int]]:
    """First and last value of the parameters of a map that take each value between."""
    found: dict[str, tuple[int, int]] = {}
    for name, ends in zip(map(str, entry.map.params), entry.map.range.ranges, strict=True):
        first, last, step = map(exact, ends)
        if first.is_Integer and last.is_Integer and step == 1:
            found[name] = int(first), int(last)
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
    for part in parts if len(parts) > 1 else ():
        _keep_ends_apart(state, part)


def _keep_ends_apart(state: SDFGState, entry: nodes.MapEntry) -> None:
    """Let what lies far from the other reads of an array enter a map by an edge of its own.

    The first row of a periodic array needs the last one, and nothing of what is between.
    """
    for edge in list(state.in_edges(entry)):
        if not edge.dst_conn or not edge.dst_conn.startswith("IN_"):
            continue
        groups: list[tuple[Numbers, list[Edge]]] = []
        for inner in state.out_edges_by_connector(entry, "OUT_" + edge.dst_conn[3:]):
            box = _box(inner.data, _extents(entry))
            if box is None:
                groups = []
                break
            for n, (near, found) in enumerate(groups):
                both = relations.hull(near, box)
                apart = relations.volumes(near).sum() + relations.volumes(box).sum()
                if relations.volumes(both).sum() <= 2 * apart:
                    groups[n] = both, [*found, inner]
                    break
            else:
                groups.append((box, [inner]))
        lead_apart(state, entry, edge, [found for _, found in groups[1:]])


def _box(memlet: Memlet, extents: Mapping[str, tuple[int, int]]) -> Numbers | None:
    """What a memlet reads in all iterations, of indices that are sums of parameters."""
    found = []
    for ends in memlet.subset.ranges:
        line = sympy.expand(sympy.sympify(ends[0]))
        low = high = line.as_coefficients_dict()[1]
        for symbol in line.free_symbols:
            factor, (first, last) = line.coeff(symbol, 1), extents.get(symbol.name, (0, None))
            if last is None or not factor.is_Integer:
                return None
            low += factor * (first if factor > 0 else last)
            high += factor * (last if factor > 0 else first)
        low, high = sympy.expand(low), sympy.expand(high + ends[1] - ends[0])
        if not low.is_Integer or not high.is_Integer:
            return None
        found.append((int(low), int(high) + 1))
    return np.array([found], np.int64)


def _divisions(indices: Iterable[sympy.Expr]) -> Iterator[tuple[sympy.Expr, int]]:
    """Dividends and divisors of the quotients and remainders in indices."""
    for index in indices:
        for part in sympy.preorder_traversal(index):
            if _is_division(part):
                yield part.args[0], int(part.args[1])


def _ends(memlet: Memlet) -> Iterator[sympy.Expr]:
    for subset in (memlet.subset, memlet.other_subset):
        if isinstance(subset, subsets.Range):
            for ends in subset.ranges:
                yield from map(sympy.sympify, ends)


def _is_division(part: sympy.Basic) -> bool:
    if part.func.__name__ not in (*_QUOTIENTS, *REMAINDERS):
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
            is_remainder = name_of in REMAINDERS
            found[division] = over - low * under if is_remainder else sympy.Integer(low)
    return sympy.expand(expression.xreplace(found)) if found else expression
