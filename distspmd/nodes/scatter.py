"""Writes to places that data choose: as one map over what may be written, and as a loop.

before -> after:  ``for i: y[index[i]] = value[i]``  ->  ``map k: y[k] = value[the last i at k]``
The parameters are the indices of what is written, not of what is written there. So who holds a
part of the array writes it. With a part of the places goes a part of the indices and values, as
long in proportion: a rank has these, looks where they go, and sends each value to the rank that
holds the place (``kernels/own_places.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from distspmd.nodes.distributed_memlet import Runtime
from distspmd.nodes.line_in_parts import CONTEXT
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

    def at(self, index: Mapping[int, str], first: str = "") -> str:
        """An element by its index in the window, 0 in dimensions without one, in C++."""
        steps = (f"({i}) * ({_text(self.strides[d])})" for d, i in index.items())
        return f"{self.connector}[{' + '.join([*([first] if first else []), *steps]) or 0}]"


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
        if name != CONTEXT
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

        extents = operands["_out"].extents
        known = [d for d in node.picked if _is_number(extents[d])]
        first = max(known, key=lambda d: int(extents[d]), default=node.picked[0])

        def part(operand: _Operand, rest: Sequence[str] = ()) -> Memlet:
            lead = operand.extents[: len(operand.extents) - len(rest)]
            split = next((d for d, n in enumerate(lead) if n != 1), 0)
            own = [f"0:{n}" for n in lead]
            own[split] = _share(places[first], extents[first], lead[split])
            return Memlet(f"{operand.connector}[{', '.join([*own, *rest])}]")

        indices = [f"_in{n}" for n in range(len(node.picked))]
        rest = [places[d] for d in node.rest(len(places))]
        inner.add_state().add_mapped_tasklet(
            node.label,
            {name: f"0:{n}" for name, n in ranges},
            {
                "__before": Memlet(f"_base[{place}]"),
                "__value": Memlet("_value[0]")
                if node.one_value
                else part(operands["_value"], rest),
                **{f"__at{n}": part(operands[name]) for n, name in enumerate(indices)},
            },
            "// what is written there",
            {"__after": Memlet(data="_out", subset=place, dynamic=True)},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


def _is_number(extent: Any) -> bool:
    return bool(sympy.sympify(extent).is_Integer)


def _share(place: str, places: Any, count: Any) -> str:
    """The indices that go with a place: those of a part of the places are a part of the indices.

    Within the windows of a rank that are all of them.
    """
    if places == count:
        return place
    if not (_is_number(places) and _is_number(count)) or not int(places):
        return f"0:{count}"
    return f"int_floor({place}*{count}, {places}):int_floor(({place} + 1)*{count}, {places})"


@dace.library.expansion
class ExpandToLoop(ExpandTransformation):
    """A call that brings what is written to who has the place, in the order of the indices."""

    environments = [Runtime]  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: Scatter, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        operands = _operands(node, state)
        lines = _lines(node, state, operands)
        pointers = {name: dtypes.pointer(operand.dtype) for name, operand in operands.items()}
        inputs = {name: pointers.get(name, dtypes.int64) for name in node.in_connectors}
        return nodes.Tasklet(
            node.label,
            inputs,
            {"_out": pointers["_out"]},
            "{\n" + "\n".join(lines) + "\n}",
            language=dtypes.Language.CPP,
            code_global=f'#include "{_HEADER}"\n',
            side_effects=node.in_parts,
        )


def _lines(node: Scatter, state: SDFGState, operands: Mapping[str, _Operand]) -> list[str]:
    """The call, with functions of the row and the column of an index."""
    out, value = operands["_out"], operands["_value"]
    others = {d: f"__p{d}" for d in node.rest(len(out.extents))}
    *outer, _ = operands["_in0"].extents
    counters = [*(f"__c{d}" for d in range(len(outer))), "__column"]
    split = _split_row(counters[:-1], outer)
    number, picks = "const int64_t __row, const int64_t __column", len(node.picked)
    found = (operands[f"_in{n}"].at(dict(enumerate(counters))) for n in range(picks))
    indices = ", ".join(f"int64_t({each})" for each in found)
    own = value.at({} if node.one_value else dict(enumerate([*counters, *others.values()])))
    place, done = out.at(others, "__place"), OPERATIONS[node.operation]
    loops = " ".join(_loop(name, out.extents[d]) for d, name in others.items())
    given = "_value[0]" if node.one_value else "*__from++"
    dtype, keeps = value.dtype.ctype, _bool("_value" in node.fixed)
    width = 0 if node.one_value else math.prod(sympy.sympify(out.extents[d]) for d in others)
    kind = f"uint{8 * node.place_bytes(state)}_t"
    places = f"distspmd::Places<{kind}, {picks}, {len(others)}>"
    return [
        f"static {places} __places;",
        f"const {places}::Given __given{{{_given(node, operands)}}};",
        f"const auto __at = [&]({number}) {{ {split} return {places}::Index{{{indices}}}; }};",
        "if (__places.find(__given, __at))",
        f"__places.write<{dtype}>(__given, {keeps}, {_text(width)}, __at,",
        f"[&](const int64_t __place, {number}) {{ {split} {loops} {done.format(place, own)}; }},",
        f"[&]({number}, {dtype} *__to) {{ {split} {loops} *__to++ = {own}; }},",
        f"[&](const int64_t __place, const {dtype} *__from) {{",
        f"{loops} {done.format(place, given)}; }});",
        f"else distspmd_note(0, {node.line}, __places.outside, __places.length);",
    ]


def _given(node: Scatter, operands: Mapping[str, _Operand]) -> str:
    """What the write is called with, as ``Writing`` of the header has it."""
    index, out = operands["_in0"], operands["_out"]
    rows = math.prod(map(sympy.sympify, index.extents[:-1]))
    first = sum(  # only one of these dimensions is split
        sympy.sympify(begin) * math.prod(map(sympy.sympify, index.extents[d + 1 :]))
        for d, begin in enumerate(index.begins)
    )

    def sides(dimensions: Sequence[int]) -> str:
        found = (
            f"{{{_text(out.begins[d])}, {_text(out.extents[d])}, {_text(out.strides[d])}}}"
            for d in dimensions
        )
        return f"{{{{{', '.join(found)}}}}}" if dimensions else "{}"

    lengths = map(_text, node.lengths)
    return ", ".join(
        [
            CONTEXT if node.in_parts else "0",
            str(node.index),
            _bool(node.in_parts),
            _bool(node.indices <= {*node.fixed}),
            _text(first),
            _text(rows),
            _text(index.extents[-1]),
            f"{{{{{', '.join(lengths)}}}}}",
            sides(node.picked),
            sides(node.rest(len(out.extents))),
        ]
    )


def _split_row(counters: Sequence[str], extents: Sequence[Any]) -> str:
    """The indices of a row, of its number."""
    found, rest = [], "__row"
    for counter, extent in reversed([*zip(counters, extents, strict=True)][1:]):
        found.append(f"const int64_t {counter} = ({rest}) % ({_text(extent)});")
        rest = f"({rest}) / ({_text(extent)})"
    found += [f"const int64_t {counters[0]} = {rest};"] if counters else ["(void)__row;"]
    return " ".join(found)


def _bool(truth: bool) -> str:
    return "true" if truth else "false"


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
    index = Property(dtype=int, default=0, desc="Number of the call in the lowered program")
    in_parts = Property(dtype=bool, default=False, desc="Whether ranks have different indices")
    fixed = ListProperty(element_type=str, default=[], desc="Inputs that no loop around changes")

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

    @property
    def indices(self) -> set[str]:
        """Connectors of the arrays of indices."""
        return {f"_in{n}" for n in range(len(self.picked))}

    def place_bytes(self, state: SDFGState) -> int:
        """Bytes of a number that counts the indices and the elements of the array."""
        edges = [*state.in_edges(self), *state.out_edges(self)]
        of = [e.data.data for e in edges if {e.dst_conn, e.src_conn} & {"_in0", "_out"}]
        sizes = [sympy.sympify(state.sdfg.arrays[name].total_size) for name in of]
        return 4 if all(n.is_Integer and n < 1 << 32 for n in sizes) else 8

    def has_side_effects(self, sdfg: SDFG) -> bool:
        """Ranks that send places to each other all take part."""
        return self.in_parts or bool(super().has_side_effects(sdfg))

    def rest(self, dimensions: int) -> list[int]:
        """The dimensions that no indices pick."""
        return [d for d in range(dimensions) if d not in self.picked]
