"""Where a program for a device keeps its containers, and which of its nodes run there.

After lowering, and before code is generated: what maps and reductions work on lies in the memory
of the device, and they run there. Values that control flow reads, and what only the host can do,
are on the host, which copies the windows that it needs. Containers that only distributed memlets
touch stay where the caller has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sympy
from dace import SDFG, SDFGState, data, dtypes
from dace.libraries import blas
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.state import ConditionalBlock, LoopRegion

from distspmd.analysis.accesses import Edge
from distspmd.codegen import device_maps
from distspmd.codegen.device_copies import Twins, read_through, write_through
from distspmd.codegen.element_kernels import replace_map
from distspmd.codegen.map_stages import map_stage
from distspmd.codegen.row_groups import fuse_rows
from distspmd.errors import UnsupportedProgram
from distspmd.lowering import CONTEXT
from distspmd.nodes.blas_products import LOOPS
from distspmd.nodes.device_calls import DeviceCall
from distspmd.nodes.device_kernels import KERNEL, can_be_kernel
from distspmd.nodes.device_products import call_cublas, can_call_cublas
from distspmd.nodes.device_reductions import DEVICE, can_run_on_device
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet

MOST_ON_HOST = 64
"""Elements of the largest containers that the host reads for a value of control flow."""

_Key = tuple[int, str]
"""A container: the identity of its SDFG, and its name."""


@dataclass(frozen=True)
class PlacedSpace:
    """How a node of the program runs.

    Attributes:
        label: of the node.
        place: ``"device"`` or ``"host"``.
        remark: why it runs there, or how.
    """

    label: str
    place: str
    remark: str = ""


@dataclass
class Placement:
    """What was decided for a program.

    Attributes:
        arguments: those of the program's arguments that the device's memory holds.
        anywhere: those that only distributed memlets touch, in whatever memory they are.
        spaces: nodes of the program, in its order.
        calls_products: whether some of them are calls of the library of products.
        kernels: texts of CUDA of kernels of our own, each once.
    """

    arguments: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()
    spaces: list[PlacedSpace] = field(default_factory=list)
    calls_products: bool = False
    kernels: tuple[str, ...] = ()


def place(program: SDFG, slow: Mapping[str, str] | None = None, exact: bool = False) -> Placement:
    """Place a lowered program on a device, in place; its library nodes have their implementations.

    Args:
        program: that :func:`expand_for_device` has prepared.
        slow: what that returned: of nodes that become slow kernels, why so.
        exact: whether results must have the bits that they have on the host.

    Raises:
        UnsupportedProgram: it has something that can neither be placed nor be copied.
    """
    for node, state in library_nodes(program):
        node.expand(state)
    placing = _Placing(program, slow or {}, exact)
    placing.decide()
    placing.copy_windows()
    placing.store()
    texts = [str(call.definition) for _, call in placing.calls]
    calls_products = not all(texts)
    texts += [text for state, entry in placing.kernels if (text := placing.run(state, entry))]
    return Placement(
        placing.arguments(),
        placing.anywhere(),
        placing.spaces,
        calls_products=calls_products,
        kernels=tuple(dict.fromkeys(filter(None, texts))),
    )


def expand_for_device(
    program: SDFG,
    precision: str = "full",
    without: str = "",
    exact: bool = False,
    symbols: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, str]:
    """Expand the library nodes that a device can run; others keep their implementations.

    Args:
        program: the lowered program.
        precision: of products: one of :data:`distspmd.nodes.device_products.PRECISIONS`.
        without: why there is no library of products; empty if there is one.
        exact: whether reductions have an order that nobody may change.
        symbols: values of symbols, on each rank.

    Returns:
        of nodes that would be calls of that library, by their labels, why they are not.
    """
    slow = {}
    outside = _outside_of_maps(program)
    for sdfg in outside:
        fuse_rows(sdfg, _read_by_control_flow(sdfg), exact, symbols or {})
    for node, state in library_nodes(program):
        of_host = any(state.sdfg is sdfg for sdfg in outside)  # not of each iteration of a map
        if of_host and can_call_cublas(node, state):
            if not without:
                call_cublas(node, state, precision)
                continue
            slow[node.label] = without
        if of_host and can_be_kernel(node, state):
            node.implementation = KERNEL
        elif can_run_on_device(node, state):
            node.implementation = DEVICE
        elif isinstance(node, blas.MatMul):
            node.implementation = LOOPS
        else:
            continue
        before = set(state.nodes())
        node.expand(state)
        for one in set(state.nodes()) - before:
            _name_last_map(one, node.label)
    return slow


def _name_last_map(nested: nodes.Node, label: str) -> None:
    """Let the map that computes the result have the name of the node that was expanded."""
    if isinstance(nested, nodes.NestedSDFG):
        (last,) = (s for s in nested.sdfg.states() if not nested.sdfg.out_edges(s))
        for node in last.nodes():
            if isinstance(node, nodes.MapEntry):
                node.map.label = label


def library_nodes(program: SDFG) -> list[tuple[nodes.LibraryNode, SDFGState]]:
    """Library nodes that stand in no map of their SDFG, but distributed memlets."""
    return [
        (node, state)
        for node, state in program.all_nodes_recursive()
        if isinstance(node, nodes.LibraryNode)
        and isinstance(state, SDFGState)
        and not isinstance(node, DistributedMemlet | FetchedMemlet)
        and state.entry_node(node) is None
    ]


def _outside_of_maps(program: SDFG) -> list[SDFG]:
    """A program, and the SDFGs that are nested in it and in no map."""
    found = [program]
    for sdfg in found:  # it grows
        for state in sdfg.states():
            found += [n.sdfg for n in _tops(state) if isinstance(n, nodes.NestedSDFG)]
    return found


class _Placing:
    """The decisions about one program."""

    def __init__(self, program: SDFG, slow: Mapping[str, str], exact: bool) -> None:
        self.program, self.slow, self.exact = program, slow, exact
        self._functions = device_maps.host_functions(program)
        self.spaces: list[PlacedSpace] = []
        self.kernels: list[tuple[SDFGState, nodes.MapEntry]] = []
        self.calls: list[tuple[SDFGState, DeviceCall]] = []
        self._outer: dict[_Key, _Key] = {}
        self._graphs: list[SDFG] = [program]
        self._by_id: dict[int, SDFG] = {}
        self._on_host: set[_Key] = set()
        self._untouched: set[_Key] = set()
        self._kept: set[_Key] = set()  # what kernels have that the program itself wrote for devices
        self._host_nodes: set[tuple[int, nodes.Node]] = set()
        for sdfg in self._graphs:  # it grows
            self._by_id[id(sdfg)] = sdfg
            for state in sdfg.states():
                for node in _tops(state):
                    if isinstance(node, nodes.NestedSDFG):
                        self._graphs.append(node.sdfg)
                        for edge in (*state.in_edges(node), *state.out_edges(node)):
                            name = edge.dst_conn if edge.dst is node else edge.src_conn
                            if name and edge.data.data:
                                inner = (id(node.sdfg), name)
                                self._outer[inner] = (id(sdfg), edge.data.data)

    # -- what goes where ------------------------------------------------------------------------

    def decide(self) -> None:
        """Decide for containers, and then for nodes.

        Raises:
            UnsupportedProgram: it has a container or a node of another kind.
        """
        touched: set[_Key] = set()
        for sdfg in self._graphs:
            self._on_host |= {self._root((id(sdfg), name)) for name in _needed_on_host(sdfg)}
            touched |= {self._root((id(sdfg), name)) for name in _touched(sdfg)}
        for name, container in self.program.arrays.items():
            key = (id(self.program), name)
            if not container.transient and key not in touched:
                self._untouched.add(key)
        for sdfg in self._graphs:
            shared = {n.data for s in sdfg.states() for n in s.data_nodes() if not s.entry_node(n)}
            for state in sdfg.states():
                for node in _tops(state):
                    self._decide_node(state, node, shared)

    def _decide_node(self, state: SDFGState, node: nodes.Node, shared: set[str]) -> None:
        if isinstance(node, nodes.MapEntry) and device_maps.is_written_for_devices(state, node):
            device_maps.refuse_shared_copies(state, node)
            self._kept |= _inside(state, node)
            self.kernels.append((state, node))
            return
        if isinstance(node, nodes.MapEntry):
            own = map_stage(state, node, self.exact) is not None
            why = "" if own else device_maps.refusal(state, node, shared, self._functions)
            why = why or self._for_control_flow(state, node)
            if not why:
                self.kernels.append((state, node))
                return
            self._on_host |= _inside(state, node)
            self.spaces.append(PlacedSpace(node.map.label, "host", why))
        elif isinstance(node, DistributedMemlet | FetchedMemlet):
            return
        elif isinstance(node, DeviceCall):
            self.calls.append((state, node))
            why = self.slow.get(node.label, "") if node.definition else ""
            remark = "; ".join(filter(None, (str(node.remark), why)))
            self.spaces.append(PlacedSpace(node.label, "device", remark))
            return
        elif isinstance(node, nodes.Tasklet):
            self.spaces.append(PlacedSpace(node.label, "host", "it is no map"))
        elif not isinstance(node, nodes.NestedSDFG):
            raise UnsupportedProgram(
                f"a program on a device cannot have {node}, a {type(node).__name__}. Compile it "
                "with device=None."
            )
        self._host_nodes.add((id(state), node))

    def _for_control_flow(self, state: SDFGState, entry: nodes.MapEntry) -> str:
        """A remark if a map computes only values that the host needs, from few others."""
        accesses = list(_accesses(state, entry))
        written = [access for _, access, writes in accesses if writes]
        if not all(self.is_on_host(state.sdfg, access.data) for access in written):
            return ""
        for _, access, _ in accesses:
            size = sympy.sympify(state.sdfg.arrays[access.data].total_size)
            if not self.is_on_host(state.sdfg, access.data) and not size <= MOST_ON_HOST:
                return ""
        return "control flow reads its result"

    def _root(self, key: _Key) -> _Key:
        while key in self._outer:
            key = self._outer[key]
        return key

    def is_on_host(self, sdfg: SDFG, name: str) -> bool:
        """Whether the memory of the host holds a container."""
        key = self._root((id(sdfg), name))
        return key in self._on_host or key in self._untouched

    # -- what follows from it -------------------------------------------------------------------

    def copy_windows(self) -> None:
        """Let each node find what it reads and writes in its own memory."""
        kernels = {(id(state), node) for state, node in (*self.kernels, *self.calls)}
        for sdfg in self._graphs:
            twins = Twins(sdfg)
            for state in sdfg.states():
                for node in _tops(state):
                    on_device = (id(state), node) in kernels
                    if not on_device and (id(state), node) not in self._host_nodes:
                        if isinstance(node, FetchedMemlet):
                            self._copy_indices(state, node, twins)
                        continue
                    if not isinstance(node, nodes.NestedSDFG):
                        self._copy_for(state, node, on_device, twins)

    def _copy_for(self, state: SDFGState, node: nodes.Node, on_device: bool, twins: Twins) -> None:
        for edge, access, writes in list(_accesses(state, node)):
            if self.is_on_host(state.sdfg, access.data) != on_device:
                continue
            suffix = "device" if on_device else "host"
            if writes:
                write_through(state, node, edge, twins, suffix)
            else:
                read_through(state, edge, twins, suffix)
            if not on_device:
                self._on_host.add((id(state.sdfg), twins.names[access.data]))

    def _copy_indices(self, state: SDFGState, node: FetchedMemlet, twins: Twins) -> None:
        """Let the host find in its own memory what says which elements are touched."""
        for edge in list(state.in_edges(node)):
            if edge.dst_conn in ("_in", "_context", None):
                continue
            if not self.is_on_host(state.sdfg, edge.src.data):
                name = edge.src.data
                read_through(state, edge, twins, "host")
                self._on_host.add((id(state.sdfg), twins.names[name]))

    def store(self) -> None:
        """Give each container its storage."""
        storages = dtypes.StorageType
        for sdfg in self._graphs:
            for name, container in sdfg.arrays.items():
                if (id(sdfg), name) in self._kept:
                    continue
                if isinstance(container, data.Array) and not self.is_on_host(sdfg, name):
                    container.storage = storages.GPU_Global
                elif isinstance(container, data.Array) and container.transient:
                    container.storage = storages.CPU_Heap
        for sdfg in self._graphs:
            for state in sdfg.states():
                for node in state.nodes():
                    if isinstance(node, nodes.NestedSDFG) and state.entry_node(node) is not None:
                        _store_inside(state, node)

    def run(self, state: SDFGState, entry: nodes.MapEntry) -> str:
        """Make a map a kernel; its text if it is one of our own, and empty for DaCe's."""
        label, why = entry.map.label, self.slow.get(entry.map.label, "")
        if device_maps.is_written_for_devices(state, entry):
            remark = "a kernel as the program has it, with blocks and threads of its own"
            self.spaces.append(PlacedSpace(label, "device", remark))
            return ""
        own = replace_map(state, entry, self.exact)
        if own is not None:
            remark = str(own.remark)
        else:
            loops = device_maps.run_on_device(state, entry)
            remark = "a kernel of DaCe: a thread for each element of the result"
            if loops:
                whole = len(loops) == len(entry.map.params)
                remark = "a kernel of DaCe: one thread" if whole else remark
                remark += f", in order over {', '.join(loops)}"
        self.spaces.append(PlacedSpace(label, "device", f"{remark}; {why}" if why else remark))
        return "" if own is None else str(own.definition)

    def arguments(self) -> tuple[str, ...]:
        """Arguments that lie in the memory of the device."""
        return tuple(
            name
            for name, container in self.program.arrays.items()
            if not container.transient and container.storage is dtypes.StorageType.GPU_Global
        )

    def anywhere(self) -> tuple[str, ...]:
        """Arguments that only distributed memlets touch, but none whose elements say what moves."""
        read = {self._root((id(sdfg), name)) for sdfg in self._graphs for name in _indices(sdfg)}
        top = id(self.program)
        return tuple(
            name for key, name in sorted(self._untouched - read) if key == top and name != CONTEXT
        )


def _indices(sdfg: SDFG) -> Iterator[str]:
    """Containers that say which elements a fetched memlet moves."""
    for state in sdfg.states():
        for node in _tops(state):
            if isinstance(node, FetchedMemlet):
                for edge in state.in_edges(node):
                    if edge.dst_conn not in ("_in", "_out", None) and edge.data.data:
                        yield edge.data.data


def _inside(state: SDFGState, entry: nodes.MapEntry) -> set[_Key]:
    """Containers in the scope of a map."""
    inner = state.scope_subgraph(entry).nodes()
    return {(id(state.sdfg), node.data) for node in inner if isinstance(node, nodes.AccessNode)}


def _store_inside(state: SDFGState, node: nodes.NestedSDFG) -> None:
    """Give containers behind connectors the storage of those in front of them, recursively."""
    for edge in (*state.in_edges(node), *state.out_edges(node)):
        name = edge.dst_conn if edge.dst is node else edge.src_conn
        if name and edge.data.data and isinstance(node.sdfg.arrays[name], data.Array):
            node.sdfg.arrays[name].storage = state.sdfg.arrays[edge.data.data].storage
    for inner in node.sdfg.states():
        for child in inner.nodes():
            if isinstance(child, nodes.NestedSDFG):
                _store_inside(inner, child)


def _tops(state: SDFGState) -> list[nodes.Node]:
    """Nodes that do something and are in no map."""
    return [
        node
        for node in state.nodes()
        if state.entry_node(node) is None
        and not isinstance(node, nodes.AccessNode | nodes.ExitNode)
    ]


def _accesses(state: SDFGState, node: nodes.Node) -> Iterator[tuple[Edge, nodes.AccessNode, bool]]:
    """Edges between a node, or a map, and containers; and whether it writes them."""
    leaving = state.exit_node(node) if isinstance(node, nodes.MapEntry) else node
    for edge in state.in_edges(node):
        if not edge.data.is_empty() and isinstance(edge.src, nodes.AccessNode):
            yield edge, edge.src, False
    for edge in state.out_edges(leaving):
        if not edge.data.is_empty() and isinstance(edge.dst, nodes.AccessNode):
            yield edge, edge.dst, True


def _touched(sdfg: SDFG) -> Iterator[str]:
    """Containers that something else than a distributed memlet reads or writes."""
    for state in sdfg.states():
        for node in _tops(state):
            if not isinstance(node, DistributedMemlet | FetchedMemlet | nodes.NestedSDFG):
                for _, access, _ in _accesses(state, node):
                    yield access.data


def _needed_on_host(sdfg: SDFG) -> Iterator[str]:
    """Containers that control flow reads, and scalars.

    Raises:
        UnsupportedProgram: a container is of another kind.
    """
    yield from _read_by_control_flow(sdfg) & sdfg.arrays.keys()
    for name, container in sdfg.arrays.items():
        if isinstance(container, data.Scalar) or name == CONTEXT:
            yield name
        elif not isinstance(container, data.Array):
            raise UnsupportedProgram(
                f"a program on a device cannot have {name}, a {type(container).__name__}. "
                "Compile it with device=None."
            )


def _read_by_control_flow(sdfg: SDFG) -> set[str]:
    """Names in conditions, bounds of loops and maps, and assignments between states."""
    found = {str(name) for edge in sdfg.all_interstate_edges() for name in edge.data.free_symbols}
    for block in sdfg.all_control_flow_blocks():
        if isinstance(block, SDFGState):
            found |= _bounds(block)
            continue
        codes: list[CodeBlock | None] = []
        if isinstance(block, LoopRegion):
            codes = [block.loop_condition, block.init_statement, block.update_statement]
        elif isinstance(block, ConditionalBlock):
            codes = [condition for condition, _ in block.branches]
        found |= {str(name) for code in codes if code for name in code.get_free_symbols()}
    return found


def _bounds(state: SDFGState) -> set[str]:
    """Names in ranges of maps, and in what symbols of nested SDFGs stand for."""
    found: set[str] = set()
    for node in state.nodes():
        if isinstance(node, nodes.NestedSDFG):
            values = map(sympy.sympify, node.symbol_mapping.values())
            found |= {str(symbol) for value in values for symbol in value.free_symbols}
        elif isinstance(node, nodes.MapEntry):
            found |= {str(symbol) for symbol in node.map.range.free_symbols}
    return found
