"""Scopes of maps: edges into and out of them, and nested SDFGs that run in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.sdfg import nodes


def enter_map(
    state: SDFGState,
    sdfg: SDFG,
    entry: nodes.MapEntry,
    read: nodes.AccessNode,
    node: nodes.Node,
    connector: str,
    memlet: Memlet,
) -> None:
    """Lead a memlet from an access node through the entry of a map to a node in it."""
    name = read.data
    if entry.add_in_connector(f"IN_{name}"):
        entry.add_out_connector(f"OUT_{name}")
        whole = Memlet.from_array(name, sdfg.arrays[name])
        state.add_edge(read, None, entry, f"IN_{name}", whole)
    state.add_edge(entry, f"OUT_{name}", node, connector, memlet)


def leave_map(
    state: SDFGState,
    sdfg: SDFG,
    leave: nodes.MapExit,
    node: nodes.Node,
    connector: str,
    memlet: Memlet,
    written: nodes.AccessNode,
) -> None:
    """An edge from a node inside of a map to what is written outside."""
    name, own = written.data, written.data
    count = 1
    while not leave.add_in_connector(f"IN_{own}"):
        count += 1
        own = f"{name}_{count}"
    leave.add_out_connector(f"OUT_{own}")
    whole = Memlet.from_array(name, sdfg.arrays[name])
    whole.wcr = memlet.wcr
    state.add_edge(leave, f"OUT_{own}", written, None, whole)
    state.add_edge(node, connector, leave, f"IN_{own}", memlet)


def nest(
    state: SDFGState, inner: SDFG, reads: Sequence[str], writes: Sequence[str], info: Any
) -> nodes.NestedSDFG:
    """Add a nested SDFG whose connectors are its containers."""
    for name in [n for n in inner.arrays if n != inside_name(n)]:
        inner.replace(name, inside_name(name))
    reads, writes = [list(map(inside_name, names)) for names in (reads, writes)]
    symbols = {str(s): str(s) for s in inner.free_symbols if str(s) not in inner.arrays}
    for name in symbols:
        if name not in inner.symbols:
            inner.add_symbol(name, dtypes.int64)
    taken: dict[str, Any] = dict.fromkeys(reads)
    given: dict[str, Any] = dict.fromkeys(writes)
    node = state.add_nested_sdfg(inner, taken, given, symbol_mapping=symbols)
    node.debuginfo = info
    found: nodes.NestedSDFG = node
    return found


def inside_name(name: str) -> str:
    """The name of a container in a nested SDFG: DaCe keeps those of results to results."""
    if hasattr(sympy, name):  # texts of symbols would be taken for what SymPy calls so
        return f"own_{name}__"
    return f"result{name.removeprefix('__return')}__" if name.startswith("__return") else name
