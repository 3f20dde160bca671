"""Calls of LAPACK on matrices and stacks of them: as one map, for the analysis, and as calls.

Dimensions of a stack are parameters of the iteration space and can be split; so can the columns of
right-hand sides, each of which is an independent system: every rank then factorises the whole
matrix. The other dimensions of a matrix stay whole. ``FUNCTIONS`` has a row for each function of
``distspmd/kernels/lapack.hpp``, which does the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dace
import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.libraries.blas.environments import openblas
from dace.libraries.linalg import Solve
from dace.properties import Property
from dace.sdfg import nodes
from dace.subsets import Subset
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.blas_products import LOOPS
from distspmd.runtime.engine.compile_runtime import INCLUDE

LAPACK = "distspmd-lapack"
"""Name of the expansion to calls."""
INFO = "_info"
"""The connector of what LAPACK reports, an int64 for each call: 0 is success."""

_TYPES: dict[Any, str] = {
    dace.float32: "s",
    dace.float64: "d",
    dace.complex64: "c",
    dace.complex128: "z",
}
TYPES = tuple(_TYPES)
"""Types of elements that LAPACK takes."""
_HEADER = INCLUDE / "distspmd" / "kernels" / "lapack.hpp"


@dataclass(frozen=True)
class Function:
    """A function of the header.

    Attributes:
        needs: what it calls of LAPACK, without the letter of the type; a name for real numbers and
            one for complex ones, if these differ.
        columns: the letter of the columns that are independent of each other.
        types: letters of the types that it takes.
    """

    needs: tuple[str, ...]
    columns: str = ""
    types: str = "sdcz"

    def names(self) -> Iterator[str]:
        """The functions of LAPACK, for all types."""
        for letter in self.types:
            for need in self.needs:
                real, _, of_complex = need.partition("|")
                name = of_complex if letter in "cz" and of_complex else real
                yield f"{letter}{name}_"


FUNCTIONS: dict[str, Function] = {
    "solve": Function(("gesv",), columns="m"),
    "inverse": Function(("gesv",)),
    "logarithm_of_determinant": Function(("getrf",)),
    "diagonal_of_factor": Function(("getrf",)),
    "cholesky": Function(("potrf",)),
    "qr": Function(("geqrf", "orgqr|ungqr")),
    "triangle_of_qr": Function(("geqrf",)),
    "qr_by_columns": Function(("geqrf", "orgqr|ungqr", "larft", "larfb")),
    "triangle_by_columns": Function(("geqrf", "larft", "larfb")),
    "eigenvectors": Function(("syevd|heevd",)),
    "eigenvalues": Function(("syevd|heevd", "sterf|heevd")),
    "general_eigenvectors": Function(("geev",), types="cz"),
    "general_eigenvalues": Function(("geev",), types="cz"),
    "eigenvectors_of_real": Function(("geev",), types="sd"),
    "eigenvalues_of_real": Function(("geev",), types="sd"),
    "svd": Function(("gesdd", "bdsdc|gesdd")),
    "singular_values": Function(("gesdd",)),
    "least_squares": Function(("gelsd",)),
    "solve_triangle": Function(("trtrs",), columns="m"),
    "factors": Function(("getrf",)),
    "solve_factored": Function(("getrs",), columns="m"),
    "solve_definite": Function(("potrs",), columns="m"),
}
"""The functions that programs call, by their names in the header."""

ALL_NAMES = tuple(sorted({name for row in FUNCTIONS.values() for name in row.names()}))
"""All that is called of LAPACK."""


@dataclass(frozen=True)
class Operand:
    """A window of a container: dimensions of the stack, then those of one matrix by letters."""

    connector: str
    dtype: dtypes.typeclass
    term: str
    extents: tuple[Any, ...]
    strides: tuple[Any, ...]

    def offset(self, batch: Sequence[str]) -> str:
        """Where a matrix of a stack begins."""
        terms = [f"{b} * ({text(s)})" for b, s in zip(batch, self.strides, strict=False)]
        return " + ".join(terms) or "0"

    def view(self, batch: Sequence[str]) -> str:
        """A matrix of a stack, as the header takes it."""
        lead = len(batch)
        sizes = [text(n) for n in self.extents[lead : lead + len(self.term)]]
        steps = [text(s) for s in self.strides[lead : lead + len(self.term)]]
        sizes += ["1"] * (2 - len(sizes))
        steps += ["0"] * (2 - len(steps))
        numbers = ", ".join([*sizes, *steps])
        return f"distspmd::lapack::view({self.connector} + ({self.offset(batch)}), {numbers})"


@dataclass(frozen=True)
class Call:
    """What a node calls, in the windows that it has."""

    function: str
    options: str
    numbers: str
    batch: tuple[Any, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    info: Operand | None

    @property
    def columns(self) -> str:
        """The letter of the columns, if the operands have it."""
        letter = FUNCTIONS[self.function].columns
        return letter if any(letter in o.term for o in self.outputs) else ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it reads and writes."""
        rest = (self.info,) if self.info else ()
        return (*self.inputs, *self.outputs, *rest)


def call_of(node: nodes.LibraryNode, state: SDFGState) -> Call:
    """The call of a node of ours, or of DaCe's node for linear equations."""
    memlets = {e.dst_conn: e.data for e in state.in_edges(node) if not e.data.is_empty()}
    memlets |= {e.src_conn: e.data for e in state.out_edges(node) if not e.data.is_empty()}

    def operand(connector: str, term: str) -> Operand:
        memlet = memlets[connector]
        container = state.sdfg.arrays[memlet.data]
        sizes = tuple(memlet.subset.size())
        return Operand(connector, container.dtype, term, sizes, tuple(container.strides))

    if not isinstance(node, Lapack):
        columns = "nm" if len(memlets["_bout"].subset.size()) == 2 else "n"
        both = operand("_ain", "nn"), operand("_bin", columns)
        return Call("solve", "", "", (), both, (operand("_bout", columns),), None)
    before, after = node.subscripts.split("->")
    given = tuple(operand(f"_in{n}", term) for n, term in enumerate(before.split(",")))
    made = tuple(operand(f"_out{n}", term) for n, term in enumerate(after.split(",")))
    batch = given[0].extents[: node.batch]
    info = operand(INFO, node.reported) if INFO in memlets else None
    _check_lengths((*given, *made), node)
    return Call(node.function, node.options, node.numbers, batch, given, made, info)


def matrix_of(
    node: nodes.LibraryNode, state: SDFGState
) -> tuple[str, tuple[Any, Any], dtypes.typeclass, int]:
    """What a node calls: the function, the extents of its matrix, their type, and its columns.

    Columns of a right-hand side are 0 where there is none, and 1 where they are parameters.
    """
    call = call_of(node, state)
    matrix = call.inputs[0]
    rows, width = (*matrix.extents[len(call.batch) :], 1)[:2]
    has_sides = FUNCTIONS[call.function].columns and len(call.inputs) > 1
    return call.function, (rows, width), matrix.dtype, int(bool(has_sides))


COLUMNS = "__j"
"""The parameter of columns."""


def _check_lengths(operands: Sequence[Operand], node: Lapack) -> None:
    known: dict[str, int] = {}
    for operand in operands:
        for letter, n in zip(operand.term, operand.extents[node.batch :], strict=False):
            extent = sympy.sympify(n)
            if extent.is_Integer and known.setdefault(letter, int(extent)) != extent:
                raise ValueError(f"{node.label}: {letter!r} is {known[letter]} and {extent} long")


@dace.library.expansion
class ExpandToLoops(ExpandTransformation):
    """One map over stacks and columns; what it does with them does not matter here."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> SDFG:
        """Replace the node by a nested SDFG."""
        call = call_of(node, state)
        inner = SDFG(f"{call.function}_loops")
        for operand in call.operands:
            inner.add_array(operand.connector, operand.extents, operand.dtype)
        ranges: dict[str, str | Subset] = {f"__b{d}": f"0:{n}" for d, n in enumerate(call.batch)}
        if call.columns:
            widths = [
                o.extents[len(call.batch) + o.term.index(call.columns)]
                for o in call.outputs
                if call.columns in o.term
            ]
            ranges[COLUMNS] = f"0:{widths[0]}"

        def memlet(operand: Operand) -> Memlet:
            parts = [f"__b{d}" for d in range(len(call.batch))]
            for letter, n in zip(operand.term, operand.extents[len(parts) :], strict=False):
                parts.append(COLUMNS if letter == call.columns else f"0:{n}")
            return Memlet(data=operand.connector, subset=", ".join(parts) or "0")

        results = (*call.outputs, *((call.info,) if call.info else ()))
        inner.add_state().add_mapped_tasklet(
            call.function,
            ranges or {"__once": "0:1"},
            {f"__given{n}": memlet(o) for n, o in enumerate(call.inputs)},
            "// one system",
            {f"__found{n}": memlet(o) for n, o in enumerate(results)},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """Calls, one after the other; where LAPACK reports an error, the results are NaN."""

    environments = [openblas.OpenBLAS]  # noqa: RUF012

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        call = call_of(node, state)
        batch = [f"__b{d}" for d in range(len(call.batch))]
        views = [operand.view(batch) for operand in call.inputs]
        views += [call.numbers] if call.numbers else []
        views += [operand.view(batch) for operand in call.outputs]
        options = f"<{call.options}>" if call.options else ""
        lines = [f"const int64_t __info = distspmd::lapack::{call.function}{options}("]
        lines.append(",\n".join(views) + ");")
        spoiled = [f"distspmd::lapack::spoil({o.view(batch)});" for o in call.outputs]
        lines.append(f"if (__info) {{ {' '.join(spoiled)} }}")
        if call.info:
            told = call.info.view(batch)
            lines.append(f"const auto __told = {told};")
            lines.append("for (int64_t __i = 0; __i < __told.rows; ++__i) __told(__i) = __info;")
        loops = "".join(
            f"for (int64_t {b} = 0; {b} < {text(n)}; ++{b}) "
            for b, n in zip(batch, call.batch, strict=True)
        )
        pointers = {o.connector: dtypes.pointer(o.dtype) for o in call.operands}
        return nodes.Tasklet(
            node.label,
            {c: pointers[c] for c in node.in_connectors},
            {c: pointers[c] for c in node.out_connectors},
            f"{loops}{{\n" + "\n".join(lines) + "\n}",
            language=dtypes.Language.CPP,
            code_global=f'#include "{_HEADER}"\n',
        )


def text(number: Any) -> str:
    """A number in C++."""
    return str(sym2cpp(sympy.sympify(number)))


@dace.library.node
class Lapack(nodes.LibraryNode):
    """A function of :data:`FUNCTIONS`, on stacks of ``batch`` dimensions.

    ``subscripts`` have the dimensions of one matrix each, by letters: ``"nn,nm->nm"`` for linear
    equations. Operands are the connectors ``_in0``, ..., results ``_out0``, ...; what LAPACK
    reports may be taken from :data:`INFO`, whose dimensions are those of the stack, then the
    columns.
    ``options`` are arguments of the function's template, ``numbers`` stand behind the operands.
    """

    implementations = {LOOPS: ExpandToLoops, LAPACK: ExpandToCall}  # noqa: RUF012
    default_implementation = LAPACK

    function = Property(dtype=str, default="solve", desc="Which function")
    subscripts = Property(dtype=str, default="nn,nm->nm", desc="Dimensions of one matrix each")
    batch = Property(dtype=int, default=0, desc="Number of dimensions of a stack")
    options = Property(dtype=str, default="", desc="Arguments of the template")
    numbers = Property(dtype=str, default="", desc="Arguments that are numbers")

    def __init__(
        self,
        name: str = "lapack",
        function: str = "solve",
        subscripts: str = "nn,nm->nm",
        batch: int = 0,
        *,
        options: str = "",
        numbers: str = "",
        has_info: bool = False,
        **keywords: Any,
    ) -> None:
        before, after = subscripts.split("->")
        inputs = {f"_in{n}" for n in range(before.count(",") + 1)}
        outputs = {f"_out{n}" for n in range(after.count(",") + 1)}
        if has_info:
            outputs.add(INFO)
        super().__init__(name, inputs=inputs, outputs=outputs, **keywords)
        self.function, self.subscripts, self.batch = function, subscripts, batch
        self.options, self.numbers = options, numbers

    @property
    def reported(self) -> str:
        """The letters of what LAPACK reports of one matrix: the columns, if a result has them."""
        columns = FUNCTIONS[self.function].columns
        return columns if columns in self.subscripts.partition("->")[2] else ""


Solve.register_implementation(LOOPS, ExpandToLoops)
Solve.register_implementation(LAPACK, ExpandToCall)
