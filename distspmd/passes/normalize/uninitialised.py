"""Temporaries that are only ever added to and have no first value, so that they hold anything.

before -> after:  ``zeroed t; t += x``  ->  ``map: t = 0; t += x``.  DaCe's marks for memory that is
zeroed at its allocation (``setzero``) become maps, which lowering knows. Gradients of DaCe's
backward pass are sums, and start from zero where DaCe forgot to initialise them. Other such
temporaries are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dace import SDFG, Memlet, SDFGState, data, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion

from distspmd.analysis.accesses import Edge
from distspmd.analysis.iteration_spaces import source
from distspmd.errors import UnsupportedProgram

_GRADIENT = "gradient_"
"""What names of containers start with that DaCe's backward pass adds."""


@dataclass(frozen=True)
class Accumulation:
    """A write that needs the value from before."""

    sdfg: SDFG
    state: SDFGState
    edge: Edge
    name: str


def initialise(sdfg: SDFG) -> None:
    """Give temporaries the first value that is meant, in place.

    Raises:
        UnsupportedProgram: a temporary is accumulated into that never got a value.
    """
    for inner in list(sdfg.all_sdfgs_recursive()):
        _zeroed_to_maps(inner)
    for found in find_uninitialised(sdfg):
        if _is_gradient(found):
            _set_zero(found.sdfg, found.sdfg.start_block, found.name)
            continue
        where = source(found.state, found.edge.dst) or found.state.label
        raise UnsupportedProgram(
            f"{where}: {found.name!r} is accumulated into, but nothing gives it a first value: it "
            f"starts as whatever is in memory. Write {found.name}[:] = 0 before, or np.zeros "
            "instead of np.empty."
        )


def find_uninitialised(sdfg: SDFG) -> list[Accumulation]:
    """One accumulation into each temporary that has no other writes, also in nested SDFGs."""
    found = []
    for inner in sdfg.all_sdfgs_recursive():
        by_container = _nodes_of(inner)
        for name, container in inner.arrays.items():
            if not container.transient or not isinstance(container, (data.Array, data.Scalar)):
                continue
            writes = list(_writes(inner, name, by_container.get(name, ())))
            if writes and all(each is not None for each in writes):
                found.append(writes[0])
    return [each for each in found if each is not None]


_Accessed = Sequence[tuple[SDFGState, nodes.AccessNode]]


def _nodes_of(sdfg: SDFG) -> dict[str, _Accessed]:
    """The accesses to each container, also through views."""
    found: dict[str, list[tuple[SDFGState, nodes.AccessNode]]] = {}
    for state in sdfg.states():
        for node in state.data_nodes():
            found.setdefault(_container(sdfg, node.data), []).append((state, node))
    return dict(found)


def _writes(sdfg: SDFG, name: str, accessed: _Accessed) -> Iterator[Accumulation | None]:
    """All writes to a container: accumulations, or None for what needs no value from before."""
    for state, node in accessed:
        if node.setzero:
            yield None
        for edge in state.in_edges(node):
            if not edge.data.is_empty():
                yield from _written(sdfg, state, edge, name)
    for between in sdfg.all_interstate_edges():
        if name in between.data.assignments:
            yield None


def _container(sdfg: SDFG, name: str) -> str:
    """What a view shows in the end; other containers show themselves."""
    seen = {name}
    while isinstance(sdfg.arrays.get(name), data.View):
        shown = _shown(sdfg, name)
        if shown is None or shown in seen:
            return name
        name = shown
        seen.add(name)
    return name


def _shown(sdfg: SDFG, view: str) -> str | None:
    for state in sdfg.states():
        for node in state.data_nodes():
            if node.data != view:
                continue
            for edge in state.all_edges(node):
                if "views" in (edge.src_conn if edge.src is node else edge.dst_conn, ""):
                    other = edge.dst if edge.src is node else edge.src
                    if isinstance(other, nodes.AccessNode):
                        return str(other.data)
    return None


def _written(sdfg: SDFG, state: SDFGState, edge: Edge, name: str) -> Iterator[Accumulation | None]:
    accumulation = Accumulation(sdfg, state, edge, name)
    writer = edge.src
    if isinstance(writer, nodes.NestedSDFG):
        inside = str(edge.src_conn)
        found = list(_writes(writer.sdfg, inside, _nodes_of(writer.sdfg).get(inside, ())))
        yield from (None if inner is None else accumulation for inner in found)
    elif edge.data.wcr is not None:
        yield accumulation
    elif isinstance(writer, nodes.ExitNode):
        yield from _written_inside(sdfg, state, edge, name)
    elif isinstance(writer, Reduce):
        yield accumulation if writer.identity is None and _adds(writer) else None
    else:
        reads = [_container(sdfg, e.data.data) for e in state.in_edges(writer) if e.data.data]
        yield accumulation if isinstance(writer, nodes.Tasklet) and name in reads else None


def _written_inside(
    sdfg: SDFG, state: SDFGState, edge: Edge, name: str
) -> Iterator[Accumulation | None]:
    """Writes of a map, by what stands inside of it."""
    entry = state.entry_node(edge.src)
    assert entry is not None
    reads = {_container(sdfg, e.data.data) for e in state.in_edges(entry) if e.data.data}
    for leaf in state.memlet_tree(edge).leaves():
        if isinstance(leaf.src, nodes.NestedSDFG):
            yield from _written(sdfg, state, leaf, name)
        else:
            yield Accumulation(sdfg, state, edge, name) if name in reads else None


def _adds(node: Reduce) -> bool:
    return node.wcr is not None and detect_reduction_type(node.wcr) == dtypes.ReductionType.Sum


def _is_gradient(found: Accumulation) -> bool:
    """Whether it is a sum that DaCe's backward pass makes, once in a run of its SDFG."""
    wcr = found.edge.data.wcr
    sums = wcr is None or detect_reduction_type(wcr) == dtypes.ReductionType.Sum
    return found.name.startswith(_GRADIENT) and sums and not _in_loop(found.state)


def _in_loop(state: SDFGState) -> bool:
    region = state.parent_graph
    while region is not None and not isinstance(region, SDFG):
        if isinstance(region, LoopRegion):
            return True
        region = region.parent_graph
    return False


def _zeroed_to_maps(sdfg: SDFG) -> None:
    zeroed: dict[str, list[SDFGState]] = {}
    for state in sdfg.states():
        for node in state.data_nodes():
            if node.setzero:
                node.setzero = False
                if sdfg.arrays[node.data].transient:  # others are allocated elsewhere
                    zeroed.setdefault(node.data, []).append(state)
    for name in zeroed:
        users = [s for s in sdfg.states() if any(n.data == name for n in s.data_nodes())]
        if len(users) == 1:  # it is allocated where that state runs
            _set_zero(sdfg, users[0], name)
        elif any(map(_in_loop, users)):
            raise UnsupportedProgram(
                f"{name!r} starts from zero inside of a loop, and is used in several states there. "
                "Write the zeros into the program."
            )
        else:
            _set_zero(sdfg, sdfg.start_block, name)


def _set_zero(sdfg: SDFG, block: SDFGState, name: str) -> None:
    """A map before a block that writes zeros."""
    graph = block.parent_graph
    is_first = graph.start_block is block
    state = graph.add_state_before(block, f"zero_{name}", is_start_block=is_first)
    container = sdfg.arrays[name]
    shape = container.shape if isinstance(container, data.Array) else (1,)
    parameters = {f"__i{d}": f"0:{extent}" for d, extent in enumerate(shape)}
    state.add_mapped_tasklet(
        f"zero_{name}",
        parameters,  # type: ignore[arg-type]
        {},
        "__out = 0",
        {"__out": Memlet(data=name, subset=", ".join(parameters))},
        external_edges=True,
    )
