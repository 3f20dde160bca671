"""Nodes that read a value which control flow needs, or tell of one: every rank runs them.

Being one is a property of the node, or of its class, whatever its label is.
"""

from __future__ import annotations

from dace.sdfg import nodes

_PROPERTY = "_distspmd_is_control_value"
"""An attribute of nodes, which a class of nodes has if all of them are such."""


def mark_control_value(node: nodes.Node) -> None:
    """Say of a node that it reads a value which control flow needs."""
    setattr(node, _PROPERTY, True)


def is_control_value(node: nodes.Node) -> bool:
    """Whether a node reads a value which control flow needs."""
    return getattr(node, _PROPERTY, False)
