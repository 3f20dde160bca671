"""Two SDFGs swap their content, so that a rewriting shows at once or not at all."""

from __future__ import annotations

from dace import SDFG
from dace.sdfg import nodes

_OWN = ("_sdfg", "_parent", "_parent_sdfg", "_parent_nsdfg_node", "guid")
"""Attributes of an SDFG that say which it is and where it stands, not what it has."""


def swap_content(sdfg: SDFG, other: SDFG) -> None:
    """Give two SDFGs the content of each other.

    Args:
        sdfg: at the top, no nested one.
        other: at the top too, such as a deep copy that was rewritten.
    """
    first, second = (
        {n: v for n, v in each.__dict__.items() if n not in _OWN} for each in (sdfg, other)
    )
    for each, content in ((sdfg, second), (other, first)):
        own = {name: each.__dict__[name] for name in _OWN if name in each.__dict__}
        each.__dict__.clear()
        each.__dict__.update({**content, **own})
    for mine, was in ((sdfg, other), (other, sdfg)):
        _adopt(mine, was)


def _adopt(sdfg: SDFG, before: SDFG) -> None:
    """Let what an SDFG has point to it, and not to the one that had it before."""
    for region in sdfg.all_control_flow_regions():
        for block in region.nodes():
            if block.sdfg is before:
                block.sdfg = sdfg
            if block.parent_graph is before:
                block.parent_graph = sdfg
    for state in sdfg.states():
        for node in state.nodes():
            if isinstance(node, nodes.NestedSDFG) and node.sdfg.parent_sdfg is before:
                node.sdfg.parent_sdfg = sdfg
    sdfg.reset_cfg_list()
