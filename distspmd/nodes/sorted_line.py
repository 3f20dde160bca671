"""The library node that puts a line in order, of which each rank has a part before and after.

For the analysis it is a map over the places of the line, which reads and writes its own: so tiles
of what it reads are those of what it writes. Ranks exchange elements within the node
(``kernels/sample_sort.hpp``), and the record has what moves (:mod:`distspmd.plans.sample_sort`).
"""

from __future__ import annotations

from typing import Any

import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.properties import Property
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.blas_products import LOOPS
from distspmd.nodes.distributed_memlet import Runtime
from distspmd.runtime.engine.compile_runtime import INCLUDE

CALL = "distspmd-sort"
"""Name of the expansion to a call of the sort."""
CONTEXT = "_context"
"""The connector of the handle of the runtime."""
_HEADER = INCLUDE / "distspmd" / "kernels" / "sample_sort.hpp"


@dace.library.expansion
class ExpandToMap(ExpandTransformation):
    """A map over the places of the line; to be analysed."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: SortedLine, state: SDFGState, sdfg: SDFG
    ) -> SDFG:
        """Replace the node by a nested SDFG."""
        (entering,) = (e for e in state.in_edges(node) if e.dst_conn == "_in")
        (leaving,) = state.out_edges(node)
        inner = SDFG("sorted_places")
        for name, memlet in (("_in", entering.data), ("_out", leaving.data)):
            inner.add_array(name, memlet.subset.size(), state.sdfg.arrays[memlet.data].dtype)
        inner.add_state().add_mapped_tasklet(
            node.label,
            {"__k": f"0:{leaving.data.subset.size()[0]}"},
            {"__given": Memlet("_in[__k]")},
            "// what belongs to this place",
            {"__found": Memlet("_out[__k]")},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToSort(ExpandTransformation):
    """A call in which all ranks sort together."""

    environments = [Runtime]  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: SortedLine, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a host tasklet."""
        (entering,) = (e.data for e in state.in_edges(node) if e.dst_conn == "_in")
        (leaving,) = (e.data for e in state.out_edges(node))
        given, made = state.sdfg.arrays[entering.data], state.sdfg.arrays[leaving.data]
        begin, count = _text(leaving.subset.min_element()[0]), _text(leaving.subset.size()[0])
        function = "argsort_parts" if node.places else "sort_parts"
        return nodes.Tasklet(
            node.label,
            {"_in": dtypes.pointer(given.dtype), CONTEXT: dtypes.int64},
            {"_out": dtypes.pointer(made.dtype)},
            f"distspmd::lines::{function}({CONTEXT}, {node.index}, "
            f"distspmd::lines::Part{{{begin}, {begin} + std::max<int64_t>({count}, 0)}}, "
            f"_in, {_text(given.strides[0])}, _out, {_text(made.strides[0])});",
            language=dtypes.Language.CPP,
            code_global=f'#include "{_HEADER}"\n',
            side_effects=True,
        )


def _text(number: Any) -> str:
    return str(sym2cpp(sympy.sympify(number)))


@dace.library.node
class SortedLine(nodes.LibraryNode):
    """``_out`` is the line ``_in`` in order, NaN last, or the places of its elements in order."""

    implementations = {LOOPS: ExpandToMap, CALL: ExpandToSort}  # noqa: RUF012
    default_implementation = CALL

    index = Property(dtype=int, default=0, desc="Number of the sort in the lowered program")
    places = Property(dtype=bool, default=False, desc="Whether places are written, not elements")

    def __init__(self, name: str = "sorted", places: bool = False, **keywords: Any) -> None:
        super().__init__(name, inputs={"_in"}, outputs={"_out"}, **keywords)
        self.places = places

    def has_side_effects(self, sdfg: SDFG) -> bool:
        """All ranks take part in it, and none leaves it out."""
        return True
