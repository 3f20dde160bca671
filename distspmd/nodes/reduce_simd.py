"""Reductions as C++ loops that the compiler vectorises, without atomics.

Along the contiguous dimension, each lane reduces a part of the operands, so the operands are not
added one by one (nor does NumPy add them so). Along other dimensions, whole rows are combined.
A NaN wins every maximum and minimum: lanes that compare keep a mark of what they have met.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dace.library
import numpy as np
from dace import SDFG, SDFGState, dtypes, symbolic
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.expressions.cpp import literal

VECTOR = "vector"
"""Name of the implementation."""

COMBINE = {
    dtypes.ReductionType.Sum: ("+", "{a} += {b};"),
    dtypes.ReductionType.Product: ("*", "{a} *= {b};"),
    dtypes.ReductionType.Min: ("min", "{a} = {b} < {a}{or_nan} ? {b} : {a};"),
    dtypes.ReductionType.Max: ("max", "{a} = {b} > {a}{or_nan} ? {b} : {a};"),
}
"""Of each reduction its clause in OpenMP, and how C++ does it."""
_MARKS: dict[Any, str] = {dtypes.float32: "int32_t", dtypes.float64: "int64_t"}
"""Of types that have a NaN: an integer as wide, so that a lane has both."""
_TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


def fits(node: Reduce, state: SDFGState) -> bool:
    """Whether the node is one that this implementation takes."""
    if node.wcr is None or node.identity is None:
        return False
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    arrays = [state.sdfg.arrays[edge.data.data] for edge in (entering, leaving)]
    ends = [entering.data.subset, leaving.data.subset]
    plain = all(step == 1 for subset in ends for _, _, step in subset.ranges)
    return (
        detect_reduction_type(node.wcr) in COMBINE
        and arrays[0].dtype == arrays[1].dtype
        and arrays[0].dtype in _TYPES
        and leaving.data.wcr is None
        and plain
    )


@dataclass(frozen=True)
class _Dimension:
    """One dimension of the operand: its extent, its stride, and that of the result."""

    name: str
    extent: str
    stride: Any
    target: Any
    reduced: bool

    @property
    def loop(self) -> str:
        return f"for (long {self.name} = 0; {self.name} < {self.extent}; ++{self.name})"


@dace.library.expansion
class ExpandToVector(ExpandTransformation):
    """Loops in C++, the contiguous dimension innermost."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        assert isinstance(node, Reduce)
        (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
        dimensions = dimensions_of(node, entering, leaving, sdfg)
        dtype = sdfg.arrays[entering.data.data].dtype
        single = all(size == 1 for size in leaving.data.subset.size())
        entering.dst_conn, leaving.src_conn = "_in", "_out"
        node.add_in_connector("_in")
        node.add_out_connector("_out")
        body = _code(dimensions, dtype, detect_reduction_type(node.wcr), node.identity)
        code = body.replace("TARGET", "_single" if single else "_out")
        if single:
            code = f"{dtype.ctype} _single[1];\n{code}\n_out = _single[0];"
        return nodes.Tasklet(
            node.label,
            {"_in": dtypes.pointer(dtype)},
            {"_out": dtype if single else dtypes.pointer(dtype)},
            code,
            language=dtypes.Language.CPP,
        )


def dimensions_of(node: Reduce, entering: Any, leaving: Any, sdfg: SDFG) -> list[_Dimension]:
    """Dimensions of the operand, those of the largest strides first."""
    sizes, given = entering.data.subset.size(), leaving.data.subset.size()
    strides = sdfg.arrays[entering.data.data].strides
    out = list(sdfg.arrays[leaving.data.data].strides)
    count = len(sizes)
    axes = set(range(count)) if node.axes is None else {a % count for a in node.axes}
    kept = [d for d in range(count) if d not in axes]
    places = kept if len(given) == count else range(len(kept))
    target = dict(zip(kept, [out[d] for d in places], strict=True))
    return [
        _Dimension(
            f"__d{d}",
            symbolic.symstr(sizes[d], cpp_mode=True),
            symbolic.symstr(strides[d], cpp_mode=True),
            symbolic.symstr(target.get(d, 0), cpp_mode=True),
            d in axes,
        )
        for d in range(count)
    ]


def _code(
    dimensions: list[_Dimension],
    dtype: dtypes.typeclass,
    operation: dtypes.ReductionType,
    identity: Any,
) -> str:
    """Loops over all dimensions: those that are left outside, where the operand allows it."""
    clause, combine = COMBINE[operation]
    ctype, start = dtype.ctype, literal(identity, np.dtype(dtype.as_numpy_dtype()))
    mark = _MARKS.get(dtype, "") if clause in ("max", "min") else ""
    place = " + ".join(f"{d.name} * ({d.stride})" for d in dimensions) or "0"
    kept = [d for d in dimensions if not d.reduced]
    goal = " + ".join(f"{d.name} * ({d.target})" for d in kept) or "0"
    value = f"const {ctype} _value = _in[{place}];"
    inner = dimensions[-1]
    if inner.reduced:
        outer = [d.loop for d in dimensions if d.reduced and d is not inner]
        marked = " reduction(|: _nan)" if mark else ""
        lines = [*(d.loop for d in kept), "{", f"{ctype} _acc = {start};"]
        lines += [f"{mark} _nan = _acc != _acc;"] * bool(mark)
        lines += [*outer, f"{{\n#pragma omp simd reduction({clause}: _acc){marked}", inner.loop]
        lines += ["{", value, combine.format(a="_acc", b="_value", or_nan="")]
        lines += ["_nan |= _value != _value;"] * bool(mark)
        lines += ["}", "}"]
        lines += [f"if (_nan) _acc = std::numeric_limits<{ctype}>::quiet_NaN();"] * bool(mark)
        return "\n".join([*lines, f"TARGET[{goal}] = _acc;", "}"])
    or_nan = " || _value != _value" if mark else ""
    lines = [*(d.loop for d in kept[:-1]), "{", "#pragma omp simd", inner.loop]
    lines += [f"TARGET[{goal}] = {start};", *(d.loop for d in dimensions if d.reduced)]
    lines += ["{", "#pragma omp simd", inner.loop, "{", value, f"{ctype}& _acc = TARGET[{goal}];"]
    lines += [combine.format(a="_acc", b="_value", or_nan=or_nan), "}", "}", "}"]
    return "\n".join(lines)


Reduce.register_implementation(VECTOR, ExpandToVector)
