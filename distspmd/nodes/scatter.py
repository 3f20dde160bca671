"""Writes to places that data choose: as one map over what may be written, and as a loop.

before -> after:  ``for i: y[index[i]] = value[i]``  ->  ``map k: y[k] = value[the last i at k]``
The parameters are the indices of what is written, not of what is written there. So who holds a
part of the array writes it, and of all indices takes those that lie in its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.properties import ListProperty, Property, ShapeProperty
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.blas_products import LOOPS
from distspmd.runtime.engine.compile_runtime import INCLUDE

_HEADER = INCLUDE / "distspmd" / "kernels" / "own_places.hpp"

LOOP = "distspmd-scatter"
"""Name of the expansion to a loop over the indices."""
OPERATIONS = {"": "{0} = {1}", "add": "{0} += {1}"}
"""What is done to a place, in C++."""


@dataclass(frozen=True)
class _Operand:
    """A window of a container."""

    connector: str
    dtype: dtypes.typeclass
    begins: tuple[Any, ...]
    extents: tuple[Any, ...]
    strides: tuple[Any, ...]

    def at(self, index: Sequence[str]) -> str:
        """An element, in C++."""
        pairs = zip(index, self.strides, strict=bool(index))  # a number has a stride, too
        place = " + ".join(f"({i}) * ({_text(s)})" for i, s in pairs)
        return f"{self.connector}[{place or 0}]"


def _operands(node: Scatter, state: SDFGState) -> dict[str, _Operand]:
    memlets = {e.dst_conn: e.data for e in state.in_edges(node) if not e.data.is_empty()}
    memlets |= {e.src_conn: e.data for e in state.out_edges(node) if not e.data.is_empty()}
    return {
        name: _Operand(
            name,
            state.sdfg.arrays[memlet.data].dtype,
            tuple(memlet.subset.min_element()),
            tuple(memlet.subset.size()),
            tuple(state.sdfg.arrays[memlet.data].strides),
        )
        for name, memlet in memlets.items()
    }


@dace.library.expansion
class ExpandToMap(ExpandTransformation):
    """A map over all that may be written; what it does with them does not matter here."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: Scatter, state: SDFGState, sdfg: SDFG) -> SDFG:  # type: ignore[override]
        """Replace the node by a nested SDFG."""
        operands = _operands(node, state)
        inner = SDFG("scatter_loops")
        for operand in operands.values():
            inner.add_array(operand.connector, operand.extents, operand.dtype)
        places = [f"__p{d}" for d in range(len(operands["_out"].extents))]
        ranges = zip(places, operands["_out"].extents, strict=True)
        place = ", ".join(places)

        def whole(operand: _Operand, rest: Sequence[str] = ()) -> Memlet:
            lead = operand.extents[: len(operand.extents) - len(rest)]
            return Memlet(f"{operand.connector}[{', '.join([*(f'0:{n}' for n in lead), *rest])}]")

        indices = [f"_in{n}" for n in range(len(node.picked))]
        rest = [places[d] for d in node.rest(len(places))]
        inner.add_state().add_mapped_tasklet(
            node.label,
            {name: f"0:{n}" for name, n in ranges},
            {
                "__before": Memlet(f"_base[{place}]"),
                "__value": whole(operands["_value"], () if node.one_value else rest),
                **{f"__at{n}": whole(operands[name]) for n, name in enumerate(indices)},
            },
            "// what is written there",
            {"__after": Memlet(data="_out", subset=place, dynamic=True)},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToLoop(ExpandTransformation):
    """A loop over the indices, in their order, that writes those places which the window has."""

    environments: list[type] = []  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: Scatter, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        operands = _operands(node, state)
        out, value = operands["_out"], operands["_value"]
        indices = [operands[f"_in{n}"] for n in range(len(node.picked))]
        rest = node.rest(len(out.extents))
        counters = [f"__c{d}" for d in range(len(indices[0].extents))]
        *outer, count = indices[0].extents
        places = [f"__p{d}" for d in range(len(out.extents))]
        found, inside, whole = [], ["true"], ["true"]
        for d, length, index in zip(node.picked, node.lengths, indices, strict=True):
            own, all_, extent = index.at(counters), _text(length), _text(out.extents[d])
            place = f"distspmd_checked_index({own}, {all_}, {node.line})"
            found.append(f"const int64_t {places[d]} = {place} - ({_text(out.begins[d])});")
            inside.append(f"uint64_t({places[d]}) < uint64_t({extent})")
            whole.append(f"{extent} == {all_}")
        given = value.at([] if node.one_value else [*counters, *(places[d] for d in rest)])
        heads = [_loop(c, n) for c, n in zip(counters, outer, strict=False)]
        number = f"[&](const int64_t {counters[-1]})"
        lines = [
            *heads,
            f"distspmd::for_own({_text(count)}, {' && '.join(whole)},",
            f"{number} {{ {' '.join(found)} return {' & '.join(inside)}; }},",
            f"{number} {{ {' '.join(found)}",
            *(_loop(places[d], out.extents[d]) for d in rest),
            f"{OPERATIONS[node.operation].format(out.at(places), given)}; }});",
        ]
        pointers = {name: dtypes.pointer(operand.dtype) for name, operand in operands.items()}
        return nodes.Tasklet(
            node.label,
            {name: pointers[name] for name in node.in_connectors},
            {"_out": pointers["_out"]},
            "\n".join(lines),
            language=dtypes.Language.CPP,
            code_global=f'#include "{_HEADER}"\n',
        )


def _loop(name: str, extent: Any) -> str:
    return f"for (int64_t {name} = 0; {name} < {_text(extent)}; ++{name})"


def _text(number: Any) -> str:
    return str(sym2cpp(sympy.sympify(number)))


@dace.library.node
class Scatter(nodes.LibraryNode):
    """``_out[..., _in0[c], ...] = _value[c, ...]`` for all ``c``, in their order.

    ``picked`` are the dimensions that arrays of indices pick, ``_in0``, ...; the others come behind
    those of ``c`` in ``_value``, which may also be one number for all. ``_base`` is what ``_out``
    was before. Negative indices count from the end, and those out of range are errors of a line.
    """

    implementations = {LOOPS: ExpandToMap, LOOP: ExpandToLoop}  # noqa: RUF012
    default_implementation = LOOP

    picked = ListProperty(element_type=int, default=[], desc="Dimensions that indices pick")
    lengths = ShapeProperty(default=(), desc="The whole extents of these dimensions")
    line = Property(dtype=int, default=0, desc="Of the program, for an index out of range")
    operation = Property(dtype=str, default="", desc="What is done to a place, of OPERATIONS")
    one_value = Property(dtype=bool, default=False, desc="Whether all places get one number")

    def __init__(
        self,
        name: str = "scatter",
        picked: Sequence[int] = (),
        operation: str = "",
        lengths: Sequence[Any] = (),
        line: int = 0,
        one_value: bool = False,
        **keywords: Any,
    ) -> None:
        inputs = {"_base", "_value", *(f"_in{n}" for n in range(len(picked)))}
        super().__init__(name, inputs=inputs, outputs={"_out"}, **keywords)
        self.picked, self.operation, self.one_value = list(picked), operation, one_value
        self.lengths, self.line = tuple(lengths), line

    @property
    def free_symbols(self) -> set[str]:
        """Those of the whole extents."""
        own = {str(s) for n in self.lengths for s in getattr(n, "free_symbols", ())}
        return super().free_symbols | own

    def rest(self, dimensions: int) -> list[int]:
        """The dimensions that no indices pick."""
        return [d for d in range(dimensions) if d not in self.picked]
