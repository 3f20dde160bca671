"""Maps run over the indices that they write, if a loop chooses the place of the write.

before -> after:  ``for k: map i in 0:n-k: a[i + k] = x[i]``  ->  ``map i in k:n: a[i] = x[i - k]``.
The part of the map that a rank runs is then the part that it writes, in each iteration of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sympy
from dace import SDFG, SDFGState, subsets, symbolic
from dace.sdfg import nodes
from dace.sdfg.replace import replace_dict

from distspmd.analysis.accesses import Access, bound_around, map_accesses
from distspmd.analysis.whole_program import unchanged_control_flow


@unchanged_control_flow()
def align_maps(sdfg: SDFG) -> None:
    """Shift the parameters of all maps at the top level, in place."""
    for state in sdfg.states():
        loops = bound_around(state).keys()
        if not loops:
            continue
        for node in state.nodes():
            if isinstance(node, nodes.MapEntry) and state.entry_node(node) is None:
                _align(state, node, loops)


def _align(state: SDFGState, entry: nodes.MapEntry, loops: Iterable[str]) -> None:
    parameters = list(map(str, entry.map.params))
    writes = [access for access in map_accesses(state, entry) if access.is_write]
    ranges = list(entry.map.range.ranges)
    for d, parameter in enumerate(parameters):
        shifts = set(_shifts(writes, parameter))
        shift = shifts.pop() if len(shifts) == 1 else sympy.Integer(0)
        names = {symbol.name for symbol in shift.free_symbols}
        if not names & set(loops) or names & set(parameters):
            continue
        begin, end, step = ranges[d]
        ranges[d] = (_sum(begin, shift), _sum(end, shift), step)
        entry.map.range = subsets.Range(ranges)
        old = symbolic.pystr_to_symbolic(parameter)
        text = {parameter: f"({parameter} - ({shift}))"}
        inside = state.scope_subgraph(entry)
        replace_dict(inside, text, {old: old - shift})
        for edge in inside.edges():
            if isinstance(edge.data.subset, subsets.Range):
                edge.data.subset.ranges = [tuple(map(_one, r)) for r in edge.data.subset.ranges]


def _sum(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    return _one(f"({a}) + ({b})")


def _one(expression: sympy.Expr | str) -> sympy.Expr:
    """The expression with one symbol for each name: DaCe's may differ in type, and not cancel."""
    return symbolic.pystr_to_symbolic(str(expression))


def _shifts(writes: Iterable[Access], parameter: str) -> Iterator[sympy.Expr]:
    """What writes add to a parameter that they index with; nan where they do anything else."""
    for access in writes:
        for dimension in access.dimensions:
            if dimension is None:
                yield sympy.nan
                continue
            ends = dimension.first.free_symbols | dimension.last.free_symbols
            for symbol in ends:
                if symbol.name == parameter:
                    single = dimension.first == dimension.last
                    shift = sympy.expand(dimension.first - symbol)
                    yield shift if single and symbol not in shift.free_symbols else sympy.nan
