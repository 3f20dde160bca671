"""A temporary whose extents a loop chooses gets the largest of them.

before -> after:  ``for i in range(n): t = float64[i + 1]``  ->  ``t = float64[n]``, of which the
program uses the same part as before.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from dace import SDFG, data
from dace.sdfg import nodes

from distspmd.analysis.accesses import bound_around
from distspmd.analysis.index_bounds import Scope, bound_index
from distspmd.analysis.whole_program import unchanged_control_flow


@unchanged_control_flow()
def widen(sdfg: SDFG) -> None:
    """Widen all temporaries of an SDFG, in place; one whose extents have no bound stays."""
    scopes: dict[str, list[Scope]] = {}
    for state in sdfg.states():
        scope = bound_around(state)
        for node in state.data_nodes():
            scopes.setdefault(node.data, []).append(scope)
    for name, container in list(sdfg.arrays.items()):
        if not container.transient or not isinstance(container, data.Array):
            continue
        shape = [_largest(sympy.sympify(n), scopes.get(name, [])) for n in container.shape]
        if shape != list(container.shape):
            sdfg.arrays[name] = data.Array(container.dtype, shape, transient=True)
            _widen_inside(sdfg, name, container.shape)


def _widen_inside(sdfg: SDFG, name: str, before: Sequence[sympy.Expr]) -> None:
    """Let nested SDFGs that get a container whole know its extents."""
    shape = sdfg.arrays[name].shape
    for state in sdfg.states():
        for node in state.nodes():
            if not isinstance(node, nodes.NestedSDFG):
                continue
            edges = [(e, e.dst_conn) for e in state.in_edges(node)]
            edges += [(e, e.src_conn) for e in state.out_edges(node)]
            for connector in {c for e, c in edges if c and e.data.data == name}:
                inner = node.sdfg.arrays[connector]
                known = {*map(str, node.symbol_mapping)}
                wanted = {str(s) for n in shape for s in sympy.sympify(n).free_symbols}
                if tuple(inner.shape) == tuple(before) and wanted <= known:
                    node.sdfg.arrays[connector] = data.Array(inner.dtype, shape)
                    _widen_inside(node.sdfg, connector, before)


def _largest(extent: sympy.Expr, scopes: Sequence[Scope]) -> sympy.Expr:
    """The largest that an extent becomes in any scope; the extent itself where that is unknown."""
    if extent.is_Integer:
        return extent
    found = [bound_index(extent, scope) for scope in scopes]
    uppers = [ends.upper for ends in found if ends is not None]
    return sympy.Max(*uppers) if uppers and len(uppers) == len(found) else extent
