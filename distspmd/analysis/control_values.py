"""Nodes whose ranks are given: all, for a value which control flow needs; or one, for Python.

Being one is a property of the node, or of its class, whatever its label is.
"""

from __future__ import annotations

from dace.sdfg import nodes

_PROPERTY = "_distspmd_is_control_value"
"""An attribute of nodes, which a class of nodes has if all of them are such."""
_ONCE = "_distspmd_runs_once"
"""An attribute of nodes that one rank runs: Python may give another answer on another one."""


def mark_control_value(node: nodes.Node) -> None:
    """Say of a node that it reads a value which control flow needs."""
    setattr(node, _PROPERTY, True)


def is_control_value(node: nodes.Node) -> bool:
    """Whether a node reads a value which control flow needs."""
    return getattr(node, _PROPERTY, False)


def mark_runs_once(node: nodes.Node) -> None:
    """Say of a node that rank 0 alone runs it."""
    setattr(node, _ONCE, True)


def runs_once(node: nodes.Node) -> bool:
    """Whether rank 0 alone runs a node."""
    return getattr(node, _ONCE, False)
