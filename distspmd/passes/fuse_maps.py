"""Maps that pass a temporary on become one map, so that the temporary never leaves the registers.

before -> after:  ``x -> map -> t -> map -> y``  ->  ``x -> map -> y``, by DaCe's MapFusionVertical,
which proves that an iteration of the second map needs only what the same one of the first made.
A space that the schedule names may take others in, and is never taken into another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from dace import SDFG, SDFGState, data
from dace.sdfg import nodes
from dace.sdfg.replace import replace_dict
from dace.subsets import Range
from dace.transformation.dataflow import MapFusionVertical
from dace.transformation.dataflow.map_fusion_helper import find_parameter_remapping

from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.whole_program import named_by_control_flow
from distspmd.dace_compat.settings import quiet
from distspmd.dace_compat.tasklet_kinds import takes_lines
from distspmd.lowering import FusedSpace
from distspmd.nodes.handing_on import handed_on
from distspmd.passes.compilation import Compilation
from distspmd.passes.elementwise_maps import elementwise, makes_all

_OPTIONS = {
    "only_toplevel_maps": True,
    "require_exclusive_intermediates": True,
    "never_consolidate_edges": True,
}


@dataclass(frozen=True)
class FuseMaps:
    """The pass; a compilation may do without it."""

    name: str = "fuse-maps"

    def apply(self, compilation: Compilation) -> None:
        """Fuse the maps of the SDFG in place, and record which space took which in."""
        if compilation.fuse:
            before = compilation.spaces
            compilation.spaces, into = fuse(compilation.sdfg, before, compilation.grids)
            compilation.fused = tuple(
                FusedSpace(s.name, s.label, s.iterates, into[s.name], str(s.source or ""))
                for s in before
                if s.name in into
            )


def fuse(
    sdfg: SDFG, spaces: Sequence[IterationSpace], fixed: Collection[str]
) -> tuple[list[IterationSpace], dict[str, str]]:
    """Fuse maps of an SDFG, in place.

    Args:
        sdfg: a prepared SDFG.
        spaces: its iteration spaces, in program order.
        fixed: names of the spaces that are not taken into others.

    Returns:
        The spaces that are left, in their order, and for each of the others which one took it in.
        A map that took others in keeps its name and its parameters.
    """
    left = {space.name: space for space in spaces}
    into: dict[str, str] = {}
    made_anew = _made_anew(sdfg)
    for name in [space.name for space in spaces]:
        first = left[name].node
        if name in fixed or not isinstance(first, nodes.MapEntry) or not _may_fuse(left[name]):
            continue
        readers = {s.node: s for s in left.values() if _may_fuse(s)}
        with _own_temporaries(left[name].state, first, made_anew.get(left[name].state, set())):
            reader = fuse_with_a_reader(sdfg, left[name].state, first, readers.keys())
        if reader is not None:
            taker = readers[reader]
            left[taker.name] = replace(taker, node=first)
            del left[name]
            into = {taken: taker.name if by == name else by for taken, by in into.items()}
            into[name] = taker.name
    return list(left.values()), into


def _made_anew(sdfg: SDFG) -> dict[SDFGState, set[str]]:
    """Temporaries of several states that a state makes, all of them, and that it alone reads so."""
    uses: dict[str, dict[SDFGState, list[nodes.AccessNode]]] = {}
    for state in sdfg.states():
        for node in state.data_nodes():
            if type(sdfg.arrays[node.data]) is data.Array and sdfg.arrays[node.data].transient:
                uses.setdefault(node.data, {}).setdefault(state, []).append(node)
    several = {name: states for name, states in uses.items() if len(states) > 1}
    named = named_by_control_flow(sdfg) if several else set()
    found: dict[SDFGState, set[str]] = {}
    for name, states in several.items():
        makers = {s for s, at in states.items() if len(at) == 1 and _is_made(s, at[0])}
        if name not in named and len(makers) > 1:
            read = [s for s, at in states.items() if any(not s.in_degree(node) for node in at)]
            others = {_maker_before(state, states) for state in read}
            if others | makers >= states.keys() - set(read) and others <= makers:
                for state in makers - others:
                    found.setdefault(state, set()).add(name)
    return found


def _maker_before(state: SDFGState, states: Collection[SDFGState]) -> SDFGState | None:
    """The last of some states before another one, whatever happens."""
    graph = state.parent_graph
    while True:
        edges = graph.in_edges(state)
        if len(edges) != 1 or not edges[0].data.is_unconditional():
            return None
        before: Any = edges[0].src
        if before in states or not isinstance(before, SDFGState):
            return before if before in states else None
        state = before


def _is_made(state: SDFGState, node: nodes.AccessNode) -> bool:
    edges = state.in_edges(node)
    if len(edges) != 1 or not isinstance(edges[0].src, nodes.MapExit):
        return False
    entry = state.entry_node(edges[0].src)
    found = elementwise(state, entry) if isinstance(entry, nodes.MapEntry) else None
    return found is not None and makes_all(found)


@contextlib.contextmanager
def _own_temporaries(
    state: SDFGState, entry: nodes.MapEntry, made_anew: AbstractSet[str]
) -> Iterator[None]:
    """Let what a map writes be a container of its state's own, until that is gone or stays.

    An unrolled loop gives one name to the temporaries of all of its iterations.
    """
    leave, arrays = state.exit_node(entry), state.sdfg.arrays
    written = [edge.dst.data for edge in state.out_edges(leave)] if leave is not None else []
    names = {}
    for name in made_anew & {*written}:
        names[state.sdfg.add_datadesc(name, arrays[name].clone(), find_new_name=True)] = name
    for own, name in names.items():
        state.replace(name, own)
    yield
    for own, name in names.items():
        if any(node.data == own for node in state.data_nodes()):
            state.replace(own, name)
        if own in arrays:
            state.sdfg.remove_data(own, validate=False)


def _may_fuse(space: IterationSpace) -> bool:
    """Whether a map has no order, no ranks of its own, and no code that takes all of its lines."""
    return (
        not is_control_value(space.node)
        and handed_on(space.state, space.node) is None
        and not (
            isinstance(space.node, nodes.MapEntry)
            and any(map(takes_lines, space.state.scope_subgraph(space.node).nodes()))
        )
    )


def fuse_with_a_reader(
    sdfg: SDFG, state: SDFGState, entry: nodes.MapEntry, readers: Collection[nodes.Node]
) -> nodes.MapEntry | None:
    """Fuse a map with one of the readers of what it writes, which is returned."""
    leave = state.exit_node(entry)
    assert leave is not None
    for array in state.successors(leave):
        for reader in state.successors(array):
            if reader not in readers or not isinstance(reader, nodes.MapEntry):
                continue
            names = _names_after(state, entry, reader)
            where: dict[str, Any] = {
                "first_map_exit": leave,
                "array": array,
                "second_map_entry": reader,
            }
            with quiet():
                if names is None or not MapFusionVertical.can_be_applied_to(
                    sdfg, options=_OPTIONS, **where
                ):
                    continue
                wanted = list(reader.map.params)
                replace_dict(state.scope_subgraph(entry), names)
                MapFusionVertical.apply_to(
                    sdfg, options=_OPTIONS, verify=False, annotate=False, save=False, **where
                )
            ranges = dict(zip(entry.map.params, entry.map.range.ranges, strict=True))
            entry.map.params = wanted
            entry.map.range = Range([ranges[name] for name in wanted])
            return reader
    return None


def _names_after(
    state: SDFGState, first: nodes.MapEntry, second: nodes.MapEntry
) -> dict[str, str] | None:
    """Names of the second map for parameters of the first; None where they would clash."""
    found = find_parameter_remapping(first.map, second.map)
    if found is None:
        return None
    names = {old: new for new, old in found.items()}
    used = {*first.map.params, *state.scope_subgraph(first).free_symbols}
    for node in state.scope_subgraph(first, include_entry=False).nodes():
        if isinstance(node, nodes.MapEntry):
            used.update(node.map.params)
        elif isinstance(node, nodes.CodeNode):
            used.update({*node.in_connectors, *node.out_connectors})
    return None if used & set(names.values()) else names
