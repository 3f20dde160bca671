"""Calls of functions of Python by blocks: as one map, for the analysis, and as one call a rank.

A rank calls the function once, on its block of the dimensions over which the map goes. The other
dimensions stay whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.properties import Property, SymbolicProperty
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.blas_products import LOOPS
from distspmd.nodes.tell import literal
from distspmd.runtime.engine.compile_runtime import INCLUDE

CALL = "distspmd-host-call"
"""Name of the expansion to a call of Python."""
BROADCAST = "1"
"""The letter of a dimension of one element, which all blocks read."""

_HEADER = INCLUDE / "distspmd" / "kernels" / "ask.hpp"


@dataclass(frozen=True)
class _Operand:
    """A window of a container, whose dimensions have letters: upper case for those of blocks."""

    connector: str
    dtype: dtypes.typeclass
    term: str
    extents: tuple[Any, ...]
    strides: tuple[Any, ...]

    @property
    def memlet(self) -> Memlet:
        """What an iteration of the map touches."""
        parts = [
            f"__b{letter}" if letter.isupper() else f"0:{n}"
            for letter, n in zip(self.term, self.extents, strict=False)
        ]
        return Memlet(data=self.connector, subset=", ".join(parts) or "0")

    @property
    def numbers(self) -> list[str]:
        """Extents, and then steps in elements, in C++."""
        count = len(self.term)
        return [*map(_text, self.extents[:count]), *map(_text, self.strides[:count])]


def _operands(node: HostCall, state: SDFGState) -> tuple[list[_Operand], list[_Operand]]:
    """Inputs and outputs, in the windows that the node has."""
    memlets = {e.dst_conn: e.data for e in state.in_edges(node) if not e.data.is_empty()}
    memlets |= {e.src_conn: e.data for e in state.out_edges(node) if not e.data.is_empty()}

    def operand(connector: str, term: str) -> _Operand:
        memlet = memlets[connector]
        container = state.sdfg.arrays[memlet.data]
        sizes, strides = tuple(memlet.subset.size()), tuple(container.strides)
        return _Operand(connector, container.dtype, term, sizes, strides)

    before, after = node.terms.split("->")
    return (
        [operand(f"_in{n}", term) for n, term in enumerate(before.split(",")[: _count(before)])],
        [operand(f"_out{n}", term) for n, term in enumerate(after.split(",")[: _count(after)])],
    )


def _count(side: str) -> int:
    """Operands of a side of terms: a number has a letter, too."""
    return side.count(",") + 1 if side else 0


@dace.library.expansion
class ExpandToLoops(ExpandTransformation):
    """A map over the dimensions of blocks; to be analysed."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: HostCall, state: SDFGState, sdfg: SDFG) -> SDFG:  # type: ignore[override]
        """Replace the node by a nested SDFG."""
        given, made = _operands(node, state)
        inner = SDFG("host_call_loops")
        ranges: dict[str, str] = {}
        for operand in (*given, *made):
            inner.add_array(operand.connector, operand.extents, operand.dtype)
            for letter, n in zip(operand.term, operand.extents, strict=False):
                if letter.isupper():
                    ranges[f"__b{letter}"] = f"0:{n}"
        inner.add_state().add_mapped_tasklet(
            node.label,
            dict(sorted(ranges.items())) or {"__once": "0:1"},
            {f"__given{n}": operand.memlet for n, operand in enumerate(given)},
            "// a function of Python",
            {f"__found{n}": operand.memlet for n, operand in enumerate(made)},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """A call of what answers in Python, for all elements of the windows."""

    environments: list[type] = []  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: HostCall, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        given, made = _operands(node, state)
        numbers = [number for operand in (*given, *made) for number in operand.numbers]
        inputs = ", ".join(operand.connector for operand in given) or "nullptr"
        outputs = ", ".join(operand.connector for operand in made)
        return nodes.Tasklet(
            node.label,
            {operand.connector: dtypes.pointer(operand.dtype) for operand in given},
            {operand.connector: dtypes.pointer(operand.dtype) for operand in made},
            f"{{\nconst void *const __asked[] = {{{inputs}}};\n"
            f"void *const __answers[] = {{{outputs}}};\n"
            f"const int64_t __numbers[] = {{{', '.join(numbers) or '0'}}};\n"
            f"if ({_text(node.iterations)}) "
            f"distspmd::ask_host({literal(node.question)}, __asked, __answers, __numbers);\n}}",
            language=dtypes.Language.CPP,
            code_global=f'#include "{_HEADER}"\n',
            side_effects=True,
        )


def _text(number: Any) -> str:
    return str(sym2cpp(sympy.sympify(number)))


@dace.library.node
class HostCall(nodes.LibraryNode):
    """A function of Python on blocks of arrays.

    ``terms`` have a letter for each dimension of an operand: ``"Abc,Ac->Ab"`` is split over ``A``.
    Operands are the connectors ``_in0``, ..., results ``_out0``, ....
    """

    implementations = {LOOPS: ExpandToLoops, CALL: ExpandToCall}  # noqa: RUF012
    default_implementation = CALL

    question = Property(dtype=str, default="{}", desc="What Python reads")
    terms = Property(dtype=str, default="->", desc="Dimensions of each operand")
    vjp = Property(dtype=str, default="", desc="What Python reads of its gradient, if it has one")
    everywhere = Property(dtype=bool, default=False, desc="Whether all ranks run all of it")
    iterations = SymbolicProperty(
        default=1, desc="How many each rank has; with none it calls nothing"
    )

    def __init__(
        self,
        name: str = "host_call",
        question: str = "{}",
        terms: str = "->",
        everywhere: bool = False,
        vjp: str = "",
        **keywords: Any,
    ) -> None:
        before, _, after = terms.partition("->")
        super().__init__(
            name,
            inputs={f"_in{n}" for n in range(_count(before))},
            outputs={f"_out{n}" for n in range(_count(after))},
            **keywords,
        )
        self.question, self.terms, self.everywhere = question, terms, everywhere
        self.vjp = vjp

    @property
    def runs(self) -> str:
        """What Python runs: lines of the program, or the name of a function."""
        told = json.loads(self.question)
        return str(told.get("lines") or told.get("name", ""))

    @property
    def _distspmd_is_control_value(self) -> bool:
        return bool(self.everywhere)

    @property
    def _distspmd_runs_once(self) -> bool:
        return not self.everywhere and not any(letter.isupper() for letter in self.terms)

    def has_side_effects(self, sdfg: SDFG) -> bool:
        """It may change what only Python sees, and is never left out."""
        return True
