"""A message to Python from within a program: every rank has the values, and tells of them."""

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
from distspmd.runtime.engine.compile_runtime import INCLUDE

CALL = "distspmd-tell"
"""Name of the expansion to a call of Python."""

_HEADER = INCLUDE / "distspmd" / "kernels" / "tell.hpp"


@dace.library.expansion
class ExpandToLoops(ExpandTransformation):
    """A map of one iteration that reads all values; to be analysed."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> SDFG:
        """Replace the node by a nested SDFG."""
        inner = SDFG("tell_loops")
        inputs = {}
        for edge in state.in_edges(node):
            if edge.data.is_empty():
                continue
            array = sdfg.arrays[edge.data.data]
            _, container = inner.add_array(edge.dst_conn, edge.data.subset.size(), array.dtype)
            inputs[f"_{edge.dst_conn}"] = Memlet.from_array(edge.dst_conn, container)
        inner.add_state().add_mapped_tasklet(
            "tell",
            {"__once": "0:1"},
            inputs,
            "// a message",
            {},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """A call of the function that listens."""

    environments: list[type] = []  # noqa: RUF012

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        assert isinstance(node, Told)
        memlets = {e.dst_conn: e.data for e in state.in_edges(node) if not e.data.is_empty()}
        lines, extents, pointers = [], [], {}
        for n in range(len(memlets)):
            memlet = memlets[f"_in{n}"]
            array = sdfg.arrays[memlet.data]
            pointers[f"_in{n}"] = dtypes.pointer(array.dtype)
            sizes = [_text(size) for size in memlet.subset.size()]
            steps = [_text(step) for step in array.strides]
            extents += sizes
            lines.append(f"const int64_t __sizes{n}[] = {{{', '.join(sizes)}}};")
            lines.append(f"const int64_t __steps{n}[] = {{{', '.join(steps)}}};")
            lines.append(
                f"const auto __own{n} = distspmd::in_order(_in{n}, __sizes{n}, __steps{n});"
            )
        held = ", ".join(f"__own{n}.get()" for n in range(len(memlets))) or "nullptr"
        lines.append(f"const void *const __values[] = {{{held}}};")
        lines.append(f"const int64_t __extents[] = {{{', '.join(extents) or '0'}}};")
        lines.append(f"distspmd::tell({literal(node.message)}, __values, __extents);")
        return nodes.Tasklet(
            node.label,
            pointers,
            {},
            "{\n" + "\n".join(lines) + "\n}",
            language=dtypes.Language.CPP,
            code_global=f'#include "{_HEADER}"\n',
        )


def literal(message: str) -> str:
    """A text in C++ without words, which DaCe would take for symbols of the program."""
    return '"' + "".join(f"\\{byte:03o}" for byte in message.encode()) + '"'


def _text(number: Any) -> str:
    return str(sym2cpp(sympy.sympify(number)))


@dace.library.node
class Told(nodes.LibraryNode):
    """A message, whose values are the connectors ``_in0``, ``_in1``, ...; all ranks run it."""

    implementations = {LOOPS: ExpandToLoops, CALL: ExpandToCall}  # noqa: RUF012
    default_implementation = CALL
    _distspmd_is_control_value = True

    message = Property(dtype=str, default="{}", desc="What Python reads")

    def __init__(
        self, name: str = "tell", message: str = "{}", count: int = 0, **keywords: Any
    ) -> None:
        super().__init__(name, inputs={f"_in{n}" for n in range(count)}, outputs=set(), **keywords)
        self.message = message

    def has_side_effects(self, sdfg: SDFG) -> bool:
        """It is never left out."""
        return True
