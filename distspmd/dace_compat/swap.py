"""One SDFG takes the content of another, so that a rewriting shows at once or not at all."""

from __future__ import annotations

from dace import SDFG
from dace.sdfg import nodes

_OWN = ("_parent", "_parent_sdfg", "_parent_nsdfg_node", "guid")
"""Attributes of an SDFG that say where it stands, not what it is."""


def take_content(sdfg: SDFG, other: SDFG) -> None:
    """Give an SDFG the content of another, which is of no use afterwards.

    Args:
        sdfg: at the top, no nested one; its nodes are its own no longer.
        other: at the top too, such as a deep copy that was rewritten.
    """
    own = {name: sdfg.__dict__[name] for name in _OWN if name in sdfg.__dict__}
    sdfg.__dict__.clear()
    sdfg.__dict__.update({**other.__dict__, **own})
    for region in sdfg.all_control_flow_regions():
        for block in region.nodes():
            if block.sdfg is other:
                block.sdfg = sdfg
            if block.parent_graph is other:
                block.parent_graph = sdfg
    for state in sdfg.states():
        for node in state.nodes():
            if isinstance(node, nodes.NestedSDFG) and node.sdfg.parent_sdfg is other:
                node.sdfg.parent_sdfg = sdfg
    sdfg.reset_cfg_list()
