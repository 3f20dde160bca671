"""Reductions as one map, for the analysis: over the kept dimensions, then over the reduced ones.

DaCe's own expansion (2.0.0b1) drops dimensions of one element, so a reduction of them has fewer
parameters, or no map at all.
"""

from __future__ import annotations

import dace.library
from dace import SDFG, Memlet, SDFGState
from dace.libraries.standard import Reduce
from dace.sdfg import nodes
from dace.subsets import Subset
from dace.transformation.transformation import ExpandTransformation

from distspmd.errors import UnsupportedProgram
from distspmd.nodes.blas_products import LOOPS


@dace.library.expansion
class ExpandToLoops(ExpandTransformation):
    """One map, after one that sets the result to the identity, if the node has it."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> SDFG:
        """Replace the node by a nested SDFG."""
        assert isinstance(node, Reduce)
        (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
        taken, given = entering.data.subset.size(), leaving.data.subset.size()
        axes = range(len(taken)) if node.axes is None else {a % len(taken) for a in node.axes}
        kept = [d for d in range(len(taken)) if d not in axes]
        names = {d: f"_o{k}" for k, d in enumerate(kept)}
        names |= {d: f"_i{k}" for k, d in enumerate(d for d in range(len(taken)) if d in axes)}
        index = [names[d] for d in kept] or ["0"]
        if len(given) == len(taken):
            index = [names[d] if d in kept else "0" for d in range(len(taken))]
        elif len(given) != len(index):
            raise UnsupportedProgram(
                f"the reduction {node.label!r} of {len(taken)} dimensions along "
                f"{', '.join(map(str, axes))} writes {len(given)}."
            )
        entering.dst_conn, leaving.src_conn = "_in", "_out"
        node.add_in_connector("_in")
        node.add_out_connector("_out")
        inner = SDFG(f"{node.label}_loops")
        inner.add_array("_in", taken, sdfg.arrays[entering.data.data].dtype)
        inner.add_array("_out", given, sdfg.arrays[leaving.data.data].dtype)
        begin = inner.add_state("begin")
        if node.identity is not None:
            begin.add_mapped_tasklet(
                "identity",
                {names[d]: f"0:{taken[d]}" for d in kept} or {"__once": "0:1"},
                {},
                "__out = 0",
                {"__out": Memlet(data="_out", subset=", ".join(index))},
                external_edges=True,
            )
        order = sorted(names, key=lambda d: (d in axes, d))
        ranges: dict[str, str | Subset] = {names[d]: f"0:{taken[d]}" for d in order}
        inner.add_state_after(begin, "reduce").add_mapped_tasklet(
            "reduce",
            ranges,
            {"__inp": Memlet(data="_in", subset=", ".join(names[d] for d in range(len(taken))))},
            "__out = __inp",
            {"__out": Memlet(data="_out", subset=", ".join(index), wcr=node.wcr)},
            external_edges=True,
        )
        return inner


Reduce.register_implementation(LOOPS, ExpandToLoops)
