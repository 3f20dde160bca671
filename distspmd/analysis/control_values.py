"""Nodes that read a value which control flow needs: every rank runs them.

Being one is a property of the node, whatever its label is.
"""

from __future__ import annotations

from dace.sdfg import nodes

_PROPERTY = "_distspmd_is_control_value"


def mark_control_value(node: nodes.Node) -> None:
    """Say of a node that it reads a value which control flow needs."""
    setattr(node, _PROPERTY, True)


def is_control_value(node: nodes.Node) -> bool:
    """Whether a node reads a value which control flow needs."""
    return getattr(node, _PROPERTY, False)
