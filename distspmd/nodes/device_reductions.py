"""Contractions and reductions on a device: a map over the elements of the result.

Each thread reduces an element of its own, one operand after the other, so results have the same
bits each time, and no two threads write one element.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dace.library
import numpy as np
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.expressions.cpp import literal
from distspmd.nodes.contraction import Contraction, windows
from distspmd.nodes.contraction_loops import element_loops, loop_variables
from distspmd.nodes.reduce_simd import COMBINE, dimensions_of

DEVICE = "distspmd-device"
"""Name of the expansions to maps that a device can run."""


def can_run_on_device(node: nodes.LibraryNode, state: SDFGState) -> bool:
    """Whether :data:`DEVICE` can replace a node."""
    if isinstance(node, Contraction):
        return element_loops(windows(node, state), node) is not None
    if not isinstance(node, Reduce) or node.wcr is None or node.identity is None:
        return False
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    arrays = [state.sdfg.arrays[edge.data.data] for edge in (entering, leaving)]
    subsets = (entering.data.subset, leaving.data.subset)
    return (
        detect_reduction_type(node.wcr) in COMBINE
        and arrays[0].dtype == arrays[1].dtype
        and leaving.data.wcr is None
        and all(step == 1 for subset in subsets for _, _, step in subset.ranges)
    )


@dace.library.expansion
class ExpandContraction(ExpandTransformation):
    """A map over the letters of the result, around loops over the others."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> SDFG:
        """Replace the node by a nested SDFG."""
        assert isinstance(node, Contraction)
        einsum = windows(node, state)
        inner = SDFG(f"{node.label}_on_device")
        for operand in (*einsum.operands, einsum.result):
            inner.add_array(
                operand.connector, operand.extents, operand.dtype, strides=operand.strides
            )
        own = replace(
            einsum,
            operands=tuple(replace(o, connector=f"_own{o.connector}") for o in einsum.operands),
            result=replace(einsum.result, connector=f"_own{einsum.result.connector}"),
        )
        found = element_loops(own, node)
        assert found is not None, "whoever chooses the expansion asks first"
        kept, code = found
        index = loop_variables(own)
        ranges = {index[x]: f"0:{own.extents[x]}" for x in kept}
        inputs = [operand.connector for operand in einsum.operands]
        _add_map(inner, node.label, ranges, inputs, einsum.result.connector, code)
        return inner


@dace.library.expansion
class ExpandReduce(ExpandTransformation):
    """A map over the dimensions that are kept, around loops over the others."""

    environments: list[type] = []  # noqa: RUF012

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> SDFG:
        """Replace the node by a nested SDFG."""
        assert isinstance(node, Reduce)
        (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
        entering.dst_conn, leaving.src_conn = "_in", "_out"
        node.add_in_connector("_in")
        node.add_out_connector("_out")
        inner = SDFG(f"{node.label}_on_device")
        for connector, edge in (("_in", entering), ("_out", leaving)):
            array = sdfg.arrays[edge.data.data]
            sizes = edge.data.subset.size()
            inner.add_array(connector, sizes, array.dtype, strides=array.strides)
        dimensions = dimensions_of(node, entering, leaving, sdfg)
        dtype = sdfg.arrays[entering.data.data].dtype
        kept = [d for d in dimensions if not d.reduced]
        ranges = {d.name: f"0:{d.extent}" for d in kept}
        place = " + ".join(f"{d.name} * ({d.stride})" for d in dimensions) or "0"
        goal = " + ".join(f"{d.name} * ({d.target})" for d in kept) or "0"
        clause, combine = COMBINE[detect_reduction_type(node.wcr)]
        start = literal(node.identity, np.dtype(dtype.as_numpy_dtype()))
        or_nan = " || __value != __value" if clause in ("max", "min") else ""
        lines = [f"{dtype.ctype} __part = {start};", *(d.loop for d in dimensions if d.reduced)]
        lines += ["{", f"const {dtype.ctype} __value = _own_in[{place}];"]
        lines += [combine.format(a="__part", b="__value", or_nan=or_nan), "}"]
        lines.append(f"_own_out[{goal}] = __part;")
        _add_map(inner, node.label, ranges, ["_in"], "_out", "\n".join(lines))
        return inner


def _add_map(
    inner: SDFG, label: str, ranges: dict[str, Any], inputs: list[str], output: str, code: str
) -> None:
    """A map whose body has pointers to whole windows, ``_own`` and the name of the container."""
    state = inner.add_state("reduce")
    tasklet = nodes.Tasklet(
        label,
        {f"_own{name}": dtypes.pointer(inner.arrays[name].dtype) for name in inputs},
        {f"_own{output}": dtypes.pointer(inner.arrays[output].dtype)},
        code,
        language=dtypes.Language.CPP,
    )
    entry, leaving = state.add_map(label, ranges or {"__once": "0:1"})
    for name in inputs:
        whole = Memlet.from_array(name, inner.arrays[name])
        state.add_memlet_path(
            state.add_read(name), entry, tasklet, dst_conn=f"_own{name}", memlet=whole
        )
    whole = Memlet.from_array(output, inner.arrays[output])
    whole.dynamic = True
    state.add_memlet_path(
        tasklet, leaving, state.add_write(output), src_conn=f"_own{output}", memlet=whole
    )


Contraction.register_implementation(DEVICE, ExpandContraction)
Reduce.register_implementation(DEVICE, ExpandReduce)
