"""The library node for a line that is sorted, closed up or transformed in parts, one of each rank.

For the analysis it is a map over the places of the line, which reads and writes its own: so tiles
of what it reads are those of what it writes. Ranks exchange elements within the node
(``kernels/sample_sort.hpp``, ``kernels/long_transform.hpp``), and the record has what moves
(:mod:`distspmd.plans.sample_sort`, :mod:`distspmd.plans.long_transform`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.properties import ListProperty, Property
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.blas_products import LOOPS
from distspmd.nodes.distributed_memlet import Runtime
from distspmd.runtime.engine.compile_runtime import INCLUDE

CALL = "distspmd-line-in-parts"
"""Name of the expansion to a call."""
CONTEXT = "_context"
"""The connector of the handle of the runtime."""
_KERNELS = INCLUDE / "distspmd" / "kernels"
TRANSFORM = "transform_parts"
"""The function that is a Fourier transform."""


@dace.library.expansion
class ExpandToMap(ExpandTransformation):
    """A map over the places of the line; to be analysed."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: LineInParts, state: SDFGState, sdfg: SDFG
    ) -> SDFG:
        """Replace the node by a nested SDFG."""
        windows = _windows(node, state)
        inner = SDFG("places_of_a_line")
        for name, memlet in windows.items():
            inner.add_array(name, memlet.subset.size(), state.sdfg.arrays[memlet.data].dtype)
        given = [name for name in windows if name != "_out"]
        inner.add_state().add_mapped_tasklet(
            node.label,
            {"__k": f"0:{windows['_out'].subset.size()[0]}"},
            {f"__given{name}": Memlet(f"{name}[__k]") for name in given},
            "// what belongs to this place",
            {"__found": Memlet("_out[__k]")},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """A call in which all ranks work together."""

    environments = [Runtime]  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: LineInParts, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a host tasklet."""
        windows, arrays = _windows(node, state), state.sdfg.arrays
        line = windows["_out"].subset
        begin, count = _text(line.min_element()[0]), _text(line.size()[0])
        pointers = {n: dtypes.pointer(arrays[m.data].dtype) for n, m in windows.items()}
        ends = [
            f"{name}, {_text(arrays[windows[name].data].strides[0])}"
            for name in ("_mask", "_in", "_out")
            if name in windows
        ]
        made = pointers.pop("_out")
        return nodes.Tasklet(
            node.label,
            {**pointers, CONTEXT: dtypes.int64},
            {"_out": made},
            f"distspmd::lines::{node.function}({CONTEXT}, {node.index}, "
            f"distspmd::lines::Part{{{begin}, {begin} + std::max<int64_t>({count}, 0)}}, "
            f"{''.join(f'{each}, ' for each in node.options)}{', '.join(ends)});",
            language=dtypes.Language.CPP,
            code_global=f'#include "{_KERNELS / node.header}"\n',
            side_effects=True,
        )


def _windows(node: LineInParts, state: SDFGState) -> dict[str, Memlet]:
    """What the node reads and writes, by connector."""
    found = {e.dst_conn: e.data for e in state.in_edges(node) if e.dst_conn not in (None, CONTEXT)}
    return {**found, "_out": next(e.data for e in state.out_edges(node))}


def _text(number: Any) -> str:
    return str(sym2cpp(sympy.sympify(number)))


@dace.library.node
class LineInParts(nodes.LibraryNode):
    """Each rank makes a part of ``_out`` of its parts of the inputs, and of what others tell it.

    ``function`` is one of ``kernels/sample_sort.hpp``: of a line ``_in`` the elements in order
    (``sort_parts``), or their places (``argsort_parts``); of a ``_mask`` the elements of ``_in``
    that it chooses (``choose_parts``), or the places that are true (``choose_places``), in their
    order, and zeros behind them. Or it is the Fourier transform of ``_in`` (``transform_parts``),
    whose ``options`` in C++ are whether it is the inverse, and a factor.
    """

    implementations = {LOOPS: ExpandToMap, CALL: ExpandToCall}  # noqa: RUF012
    default_implementation = CALL

    index = Property(dtype=int, default=0, desc="Number of the call in the lowered program")
    function = Property(dtype=str, default="sort_parts", desc="What the ranks do together")
    options = ListProperty(element_type=str, desc="What the function is told, in C++")

    def __init__(
        self,
        name: str = "line",
        function: str = "sort_parts",
        options: Sequence[str] = (),
        **keywords: Any,
    ) -> None:
        inputs = {"_mask"} if function.startswith("choose") else {"_in"}
        inputs |= {"_in"} if function == "choose_parts" else set()
        super().__init__(name, inputs=inputs, outputs={"_out"}, **keywords)
        self.function, self.options = function, list(options)

    @property
    def header(self) -> str:
        """The file of the function."""
        return "long_transform.hpp" if self.function == TRANSFORM else "sample_sort.hpp"

    @property
    def chooses(self) -> bool:
        """Whether a mask chooses elements."""
        return bool(self.function.startswith("choose"))

    @property
    def with_places(self) -> bool:
        """Whether elements move with their places."""
        return bool(self.function == "argsort_parts")

    def has_side_effects(self, sdfg: SDFG) -> bool:
        """All ranks take part in it, and none leaves it out."""
        return True
