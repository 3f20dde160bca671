"""Refuses call-backs into Python, which DaCe makes of functions that it does not know."""

from __future__ import annotations

import re

from dace import SDFG, SDFGState
from dace.sdfg import nodes

from distspmd.analysis.iteration_spaces import source
from distspmd.errors import UnsupportedProgram

REPLACEMENTS = {
    "numpy_prod": "np.multiply.reduce(x, axis=...)",
    "numpy_outer": "np.multiply.outer(x, y)",
    "numpy_var": "np.mean((x - np.mean(x, axis=0)) ** 2, axis=0)",
    "numpy_std": "np.sqrt(np.mean((x - np.mean(x, axis=0)) ** 2, axis=0))",
    "numpy_linalg_norm": "np.sqrt(np.sum(x * x))",
    "numpy_count_nonzero": "np.sum((x != 0).astype(np.int64), axis=...)",
    "numpy_diff": "x[1:] - x[:-1]",
    "numpy_ptp": "np.max(x, axis=...) - np.min(x, axis=...)",
}
"""What DaCe partitions in place of a function: its name in a tasklet, with underscores -> code."""


def refuse_callbacks(sdfg: SDFG) -> None:
    """Check that nothing runs outside of the SDFG, also inside maps.

    Raises:
        UnsupportedProgram: a call back into Python or another side effect; the message names it.
    """
    for node, state in sdfg.all_nodes_recursive():
        if (
            isinstance(state, SDFGState)
            and isinstance(node, nodes.Tasklet)
            and node.has_side_effects(state.sdfg)
        ):
            raise UnsupportedProgram(
                f"{source(state, node) or node}: {_described(node)}, which cannot be partitioned. "
                f"{_advice(node)}"
            )


def _called(node: nodes.Tasklet) -> str:
    """Name of the function that a call-back calls; empty where there is none."""
    found = re.search(r"(\w+)\(", node.code.as_string)
    return found[1] if found else ""


def _described(node: nodes.Tasklet) -> str:
    name = _called(node)
    if not name:
        return f"{node.label!r} has side effects"
    spelled = re.sub(r"^numpy_(linalg_|fft_|random_)?", _dotted, name)
    return f"{spelled!r} is a function that DaCe does not know, and calls back into Python"


def _dotted(prefix: re.Match[str]) -> str:
    return f"np.{prefix[1][:-1]}." if prefix[1] else "np."


def _advice(node: nodes.Tasklet) -> str:
    instead = REPLACEMENTS.get(_called(node))
    if instead:
        return f"Write {instead} instead."
    return "Take the call out of the program, or write it with operators and reductions."
