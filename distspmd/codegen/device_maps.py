"""Maps as kernels of a device: one thread for each element that no other thread writes.

before -> after:  ``map[i, j]``  ->  ``device map[thread] -> sequential map[i = f(thread), j = ..]``

Parameters along which a map reduces, and those whose ranges depend on others, are loops of each
thread, which combines operands in order: there are no atomic operations, and results have the same
bits each time. A kernel has one dimension of 64-bit indices, so extents have no limit of their own.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Container, Iterator
from typing import Any

import sympy
from dace import SDFG, Memlet, SDFGState, data, dtypes, symbolic
from dace.memlet import Memlet as MemletType
from dace.sdfg import nodes
from dace.subsets import Range

from distspmd.errors import UnsupportedProgram

BLOCK = 256
"""Threads of a block."""

MOST_OWN = 1024
"""Elements of a container that each thread has for itself, at most."""

_THREAD = "__element"


def host_functions(program: SDFG) -> frozenset[str]:
    """Functions that a program brings along, which are compiled for the host."""
    codes = [c for sdfg in program.all_sdfgs_recursive() for c in sdfg.global_code.values()]
    found = {name for code in codes for name in _DEFINED.findall(code.as_string)}
    return frozenset(found - _CONTROL)


_DEFINED = re.compile(r"\b([A-Za-z_]\w*)\s*\([^;{}()]*\)\s*(?:const\s*)?\{")
_NAMES = re.compile(r"[A-Za-z_]\w*")
_CONTROL = {"if", "for", "while", "switch"}


def is_written_for_devices(state: SDFGState, entry: nodes.MapEntry) -> bool:
    """Whether a map is a kernel as it stands: a map over blocks, with maps over their threads."""
    if entry.map.schedule is not dtypes.ScheduleType.GPU_Device:
        return False
    inside = [*state.scope_subgraph(entry).nodes()]
    for sdfg in _nested(state, entry):
        inside += [node for block in sdfg.states() for node in block.nodes()]
    return any(
        isinstance(node, nodes.MapEntry) and node.map.schedule in _OF_THREADS for node in inside
    )


def refuse_kernels(program: SDFG) -> None:
    """See to it that the host can run a program.

    Raises:
        UnsupportedProgram: some map was written for a device.
    """
    for node, state in program.all_nodes_recursive():
        if not (isinstance(node, nodes.MapEntry) and isinstance(state, SDFGState)):
            continue
        if is_written_for_devices(state, node):
            raise UnsupportedProgram(
                f"the map {node.map.label!r} was written for GPUs, with threads of its own. "
                "Compile the program with device='cuda', or 'emulated' to try it on the host."
            )


def refuse_shared_copies(state: SDFGState, entry: nodes.MapEntry) -> None:
    """See to it that the threads of a kernel fill and read what they share by tasklets.

    DaCe writes a copy from array to array for a block of threads whose size it supposes, not for
    the one that the kernel has: it may then read beyond the array, or leave elements out.

    Raises:
        UnsupportedProgram: an edge copies to memory that threads share, or from there.
    """
    graphs: list[tuple[Any, SDFG]] = [(state.scope_subgraph(entry), state.sdfg)]
    graphs += [(block, sdfg) for sdfg in _nested(state, entry) for block in sdfg.states()]
    for graph, sdfg in graphs:
        for node in graph.nodes():
            if not isinstance(node, nodes.AccessNode):
                continue
            if sdfg.arrays[node.data].storage is not dtypes.StorageType.GPU_Shared:
                continue
            into = [e for e in graph.in_edges(node) if isinstance(e.src, _COPIED_FROM)]
            out_of = [e for e in graph.out_edges(node) if isinstance(e.dst, _COPIED_TO)]
            if any(not e.data.is_empty() for e in (*into, *out_of)):
                raise UnsupportedProgram(
                    f"the kernel {entry.map.label!r} copies whole parts of {node.data!r}, which "
                    "the threads of a block share, by an edge from array to array. Write the copy "
                    "as a map over threads with a tasklet that moves an element."
                )


_COPIED_FROM = (nodes.AccessNode, nodes.MapEntry)
_COPIED_TO = (nodes.AccessNode, nodes.MapExit)
_OF_THREADS = (
    dtypes.ScheduleType.GPU_ThreadBlock,
    dtypes.ScheduleType.GPU_ThreadBlock_Dynamic,
)


def refusal(
    state: SDFGState, entry: nodes.MapEntry, shared: Container[str], functions: frozenset[str]
) -> str:
    """Why a device cannot run a map; empty if it can.

    Args:
        state: that it stands in.
        entry: the map.
        shared: containers of the SDFG that are accessed outside of maps.
        functions: what :func:`host_functions` found in the program.
    """
    if any(not connector.startswith("IN_") for connector in entry.in_connectors):
        return "data decide its range"
    if any(not _is_positive(step) for _, _, step in entry.map.range.ranges):
        return "its step is not a positive number"
    if any(_size(one) == 0 for one in entry.map.range.ranges):
        return "it has no iteration"
    inside = state.scope_subgraph(entry).nodes()
    nodes_of = [(node, state.sdfg) for node in inside]
    for sdfg in _nested(state, entry):
        nodes_of += [(node, sdfg) for block in sdfg.states() for node in block.nodes()]
        for edge in sdfg.all_interstate_edges():
            texts = [*edge.data.assignments.values(), edge.data.condition.as_string]
            if why := _calls(" ".join(texts), functions):
                return why
    found = (_refusal_of(node, sdfg, functions) for node, sdfg in nodes_of)
    common = (
        f"its body has a node of {node.data}, which it shares with others"
        for node in inside
        if isinstance(node, nodes.AccessNode) and node.data in shared
    )
    return next(filter(None, (*common, *found)), "")


def _refusal_of(node: nodes.Node, sdfg: SDFG, functions: frozenset[str]) -> str:
    if isinstance(node, nodes.LibraryNode):
        return f"it has the node {node.label!r}, which is a function of the host"
    if isinstance(node, nodes.Tasklet) and (node.side_effects or node.code_global.as_string):
        return f"{node.label!r} is a function of the host"
    if isinstance(node, nodes.Tasklet) and (why := _calls(node.code.as_string, functions)):
        return why
    if isinstance(node, nodes.AccessNode) and node.data in sdfg.arrays:
        container = sdfg.arrays[node.data]
        if not isinstance(container, data.Array | data.Scalar):
            return f"{node.data} is no array"
        if container.transient and not _fits_a_thread(container):
            return f"each iteration has {node.data} of {container.total_size} elements for itself"
    return ""


def _calls(code: str, functions: frozenset[str]) -> str:
    """What code calls that only the host has, as a reason; empty if nothing."""
    called = functions.intersection(_NAMES.findall(code))
    return f"its body calls {min(called)}, which is compiled for the host" if called else ""


def _is_positive(step: object) -> bool:
    return bool(sympy.sympify(step).is_positive)


def _fits_a_thread(container: data.Data) -> bool:
    size = sympy.sympify(container.total_size)
    return bool(size.is_Integer) and int(size) <= MOST_OWN


def _nested(state: SDFGState, entry: nodes.MapEntry) -> Iterator[SDFG]:
    """SDFGs that are nested in a map, at any depth."""
    for node in state.scope_subgraph(entry).nodes():
        if isinstance(node, nodes.NestedSDFG):
            yield from node.sdfg.all_sdfgs_recursive()


def run_on_device(state: SDFGState, entry: nodes.MapEntry) -> tuple[str, ...]:
    """Make a map a kernel, in place; the parameters over which each thread loops."""
    kept = independent(state, entry)
    kernel = nodes.Map(f"{entry.map.label}_kernel", [_THREAD], Range([(0, 0, 1)]))
    kernel.schedule = dtypes.ScheduleType.GPU_Device
    kernel.gpu_block_size = [BLOCK, 1, 1]
    _privatise(state, entry)
    ranges = list(zip(entry.map.params, entry.map.range.ranges, strict=True))
    sizes = {name: _size(one) for name, one in ranges if name in kept}
    threads = sympy.Mul(*sizes.values())
    kernel.range = Range([(0, threads - 1, 1)])
    rest: sympy.Expr = symbolic.pystr_to_symbolic(_THREAD)
    places: dict[str, sympy.Expr] = {}
    for name in reversed([name for name in sizes if sizes[name] != 1]):
        is_outermost = name == next(n for n in sizes if sizes[n] != 1)
        places[name] = rest if is_outermost else rest % sizes[name]
        rest = symbolic.int_floor(rest, sizes[name])
    new = []
    for name, (begin, end, step) in ranges:
        at = begin + step * places.get(name, sympy.Integer(0))
        new.append((at, at, 1) if name in kept else (begin, end, step))
    entry.map.range = Range(new)
    entry.map.schedule = dtypes.ScheduleType.Sequential
    _wrap(state, entry, kernel)
    return tuple(name for name, _ in ranges if name not in kept)


def _size(one: tuple[sympy.Expr, sympy.Expr, sympy.Expr]) -> sympy.Expr:
    begin, end, step = map(sympy.sympify, one)
    count = end - begin + 1 if step == 1 else symbolic.int_floor(end - begin + step, step)
    return count if count.is_Integer and count >= 0 else sympy.Max(0, count)


def independent(state: SDFGState, entry: nodes.MapEntry) -> frozenset[str]:
    """Parameters of a map whose values write elements of their own, and do not bound others."""
    params = set(entry.map.params)
    found = {
        name
        for name, one in zip(entry.map.params, entry.map.range.ranges, strict=True)
        if not params
        & {str(symbol) for bound in one for symbol in sympy.sympify(bound).free_symbols}
    }
    for memlet in _reducing(state, entry):
        found &= _determined(memlet, params)
    return frozenset(found)


def _reducing(state: SDFGState, entry: nodes.MapEntry) -> Iterator[MemletType]:
    """Memlets of a map that combine what is written with what is there."""
    leaving = state.exit_node(entry)
    for edge in state.in_edges(leaving):
        leaf = state.memlet_path(edge)[0]
        inside = isinstance(leaf.src, nodes.NestedSDFG) and any(
            other.data.wcr is not None
            for nested in leaf.src.sdfg.all_sdfgs_recursive()
            for block in nested.states()
            for other in block.edges()
        )
        if edge.data.wcr is not None or leaf.data.wcr is not None or inside:
            yield edge.data


def _determined(memlet: MemletType, params: set[str]) -> set[str]:
    """Parameters that alone choose the index in some dimension, another for each value."""
    found = set()
    for begin, end, _ in memlet.subset.ranges:
        begin, end = sympy.sympify(begin), sympy.sympify(end)
        own = [symbol for symbol in begin.free_symbols if str(symbol) in params]
        if begin == end and len(own) == 1 and sympy.expand(begin).diff(own[0]).is_nonzero:
            found.add(str(own[0]))
    return found


def _privatise(state: SDFGState, entry: nodes.MapEntry) -> None:
    """Let each thread have what iterations have for themselves, and run inner maps in order."""
    inside = state.scope_subgraph(entry)
    for node in inside.nodes():
        if isinstance(node, nodes.AccessNode):
            _own(state.sdfg.arrays[node.data])
        if isinstance(node, nodes.MapEntry):
            node.map.schedule = dtypes.ScheduleType.Sequential
    for sdfg in _nested(state, entry):
        for container in sdfg.arrays.values():
            _own(container)
        for node, _ in sdfg.all_nodes_recursive():
            if isinstance(node, nodes.MapEntry):
                node.map.schedule = dtypes.ScheduleType.Sequential
    graphs = [inside, *(block for sdfg in _nested(state, entry) for block in sdfg.states())]
    for edge in (edge for graph in graphs for edge in graph.edges()):
        if edge.data.wcr is not None:
            edge.data.wcr_nonatomic = True


def _own(container: data.Data) -> None:
    if container.transient:
        container.storage = dtypes.StorageType.Register
        container.lifetime = dtypes.AllocationLifetime.Scope


def _wrap(state: SDFGState, entry: nodes.MapEntry, kernel: nodes.Map) -> None:
    """Put a map into another one, which has the same memlets at its borders."""
    leaving = state.exit_node(entry)
    assert leaving is not None, "every map has an end"
    outer, outer_exit = nodes.MapEntry(kernel), nodes.MapExit(kernel)
    state.add_node(outer)
    state.add_node(outer_exit)
    for edge in list(state.in_edges(entry)):
        state.remove_edge(edge)
        if edge.dst_conn is None:
            state.add_nedge(edge.src, outer, Memlet())
            continue
        name = edge.dst_conn.removeprefix("IN_")
        outer.add_in_connector(edge.dst_conn)
        outer.add_out_connector(f"OUT_{name}")
        state.add_edge(edge.src, edge.src_conn, outer, edge.dst_conn, edge.data)
        state.add_edge(outer, f"OUT_{name}", entry, edge.dst_conn, copy.deepcopy(edge.data))
    if not state.in_edges(entry):
        state.add_nedge(outer, entry, Memlet())
    for edge in list(state.out_edges(leaving)):
        state.remove_edge(edge)
        if edge.src_conn is None:
            state.add_nedge(outer_exit, edge.dst, Memlet())
            continue
        name = edge.src_conn.removeprefix("OUT_")
        outer_exit.add_in_connector(f"IN_{name}")
        outer_exit.add_out_connector(edge.src_conn)
        state.add_edge(leaving, edge.src_conn, outer_exit, f"IN_{name}", copy.deepcopy(edge.data))
        state.add_edge(outer_exit, edge.src_conn, edge.dst, edge.dst_conn, edge.data)
    if not state.out_edges(leaving):
        state.add_nedge(leaving, outer_exit, Memlet())
