"""Copies of windows between the memories of a device and the host, for nodes on the other side.

before -> after:  ``x on the device -> node of the host``
               -> ``x on the device -> [copy] -> x_host -> node of the host``

A node finds its window at the same place of a container that is like the original one. A node that
writes gets the window first, because it may leave some of it as it is.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import networkx as nx
import sympy
from dace import SDFG, Memlet, SDFGState, data, dtypes
from dace.codegen.common import sym2cpp
from dace.sdfg import nodes
from dace.sdfg.utils import dfs_topological_sort
from dace.subsets import Range

from distspmd.analysis.accesses import Edge
from distspmd.passes.tiles import new_name

_HEADER = "#include <distspmd/device/windows.hpp>\n"


@dataclass
class Twins:
    """Containers of an SDFG in the other memory, one for each that needs it."""

    sdfg: SDFG
    names: dict[str, str] = field(default_factory=dict)

    def of(self, name: str, suffix: str) -> str:
        """The twin of a container."""
        if name not in self.names:
            original = self.sdfg.arrays[name]
            twin = copy.deepcopy(original)
            if isinstance(original, data.Scalar):
                twin = data.Array(original.dtype, (1,))
            twin.transient = True
            fixed = not {*map(str, twin.free_symbols)} - {*map(str, _offsets(twin))}
            lifetimes = dtypes.AllocationLifetime
            twin.lifetime = lifetimes.Persistent if fixed else lifetimes.Scope
            unique = new_name(f"{name}_{suffix}", {*self.sdfg.arrays, *self.sdfg.symbols})
            self.sdfg.add_datadesc(unique, twin)
            self.names[name] = unique
        return self.names[name]


def _offsets(container: data.Data) -> set[sympy.Symbol]:
    """Symbols of where a tile begins, which do not change how much memory it takes."""
    found: set[sympy.Symbol] = set()
    for bound in getattr(container, "offset", ()):
        found |= sympy.sympify(bound).free_symbols
    sized = (*container.shape, *getattr(container, "strides", ()), container.total_size)
    return found - {s for size in sized for s in sympy.sympify(size).free_symbols}


def read_through(state: SDFGState, edge: Edge, twins: Twins, suffix: str) -> None:
    """Let a node read a container in its own memory."""
    origin, window = edge.src, edge.data.subset
    twin = state.add_access(twins.of(origin.data, suffix))
    _add_copy(state, origin, twin, window)
    _rename(state, edge, origin.data, twin.data)
    state.remove_edge(edge)
    state.add_edge(twin, None, edge.dst, edge.dst_conn, edge.data)


def write_through(
    state: SDFGState, node: nodes.Node, edge: Edge, twins: Twins, suffix: str
) -> None:
    """Let a node write a container in its own memory, which has the window before.

    Args:
        state: that the node stands in.
        node: the first of the node, where it is a scope.
        edge: by which it writes.
        twins: of the SDFG.
        suffix: of the name of the twin.
    """
    goal, window = edge.dst, edge.data.subset
    name = twins.of(goal.data, suffix)
    before, after = state.add_access(name), state.add_access(name)
    origin = _latest(state, goal, node)
    _add_copy(state, origin, before, window)
    state.add_nedge(before, node, Memlet())
    _rename(state, edge, goal.data, name)
    state.remove_edge(edge)
    state.add_edge(edge.src, edge.src_conn, after, None, edge.data)
    _add_copy(state, after, goal, window)


def _latest(state: SDFGState, goal: nodes.AccessNode, node: nodes.Node) -> nodes.AccessNode:
    """A node of a container that comes after all that write it before, and before another node.

    Writers that nothing puts in order are put before it.
    """
    graph = state.nx
    behind = {*nx.descendants(graph, node), goal}
    earlier = [
        other
        for other in dfs_topological_sort(state)
        if isinstance(other, nodes.AccessNode) and other.data == goal.data and other not in behind
    ]
    origin = state.add_access(goal.data)
    for other in earlier:
        state.add_nedge(other, origin, Memlet())
    return origin


def _rename(state: SDFGState, edge: Edge, name: str, twin: str) -> None:
    for leaf in state.memlet_tree(edge).traverse_children(include_self=True):
        if leaf.edge.data.data == name:
            leaf.edge.data.data = twin


def _add_copy(
    state: SDFGState, origin: nodes.AccessNode, goal: nodes.AccessNode, window: Range
) -> None:
    sdfg = state.sdfg
    array = sdfg.arrays[origin.data]
    strides = getattr(array, "strides", (1,))
    sizes = [end - begin + 1 for begin, end, _ in window.ranges]
    text = [", ".join(str(sym2cpp(sympy.sympify(n))) for n in of) for of in (sizes, strides)]
    code = (
        f"(void)__dace_current_stream;\nconst int64_t __sizes[] = {{{text[0]}}};\n"
        f"const int64_t __steps[] = {{{text[1]}}};\n"
        f"distspmd::copy_window(_in, _out, {array.dtype.bytes}, {len(sizes)}, __sizes, __steps);"
    )
    pointer = dtypes.pointer(array.dtype)
    tasklet = nodes.Tasklet(
        f"copy_{origin.data}_to_{goal.data}",
        {"_in": pointer},
        {"_out": pointer},
        f"{{\n{code}\n}}",
        language=dtypes.Language.CPP,
        side_effects=True,
        code_global=_HEADER,
    )
    state.add_node(tasklet)
    bounds = [(begin, end, 1) for begin, end, _ in window.ranges]
    state.add_edge(origin, None, tasklet, "_in", Memlet(data=origin.data, subset=Range(bounds)))
    leaving = Memlet(data=goal.data, subset=Range(bounds))
    leaving.dynamic = True
    state.add_edge(tasklet, "_out", goal, None, leaving)
