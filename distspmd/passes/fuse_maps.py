"""Maps that pass a temporary on become one map, so that the temporary never leaves the registers.

before -> after:  ``x -> map -> t -> map -> y``  ->  ``x -> map -> y``, by DaCe's MapFusionVertical,
which proves that an iteration of the second map needs only what the same one of the first made.
A space that the schedule names may take others in, and is never taken into another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dace import SDFG, SDFGState
from dace.sdfg import nodes
from dace.sdfg.replace import replace_dict
from dace.subsets import Range
from dace.transformation.dataflow import MapFusionVertical
from dace.transformation.dataflow.map_fusion_helper import find_parameter_remapping

from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.dace_compat.settings import quiet
from distspmd.dace_compat.tasklet_kinds import takes_lines
from distspmd.lowering import FusedSpace
from distspmd.nodes.handing_on import handed_on
from distspmd.passes.compilation import Compilation

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
    for name in [space.name for space in spaces]:
        first = left[name].node
        if name in fixed or not isinstance(first, nodes.MapEntry) or not _may_fuse(left[name]):
            continue
        readers = {s.node: s for s in left.values() if _may_fuse(s)}
        reader = fuse_with_a_reader(sdfg, left[name].state, first, readers.keys())
        if reader is not None:
            taker = readers[reader]
            left[taker.name] = replace(taker, node=first)
            del left[name]
            into = {taken: taker.name if by == name else by for taken, by in into.items()}
            into[name] = taker.name
    return list(left.values()), into


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
