"""The library node for a function of LAPACK on one matrix, of which each rank has some rows.

For the analysis it is a map over rows, which reads and writes its own: so tiles of what it reads
are those of what it writes. Within the node ranks deal the columns in blocks, factorise them
together, and bring what they found to the rows (``kernels/dealt_matrix.hpp``); or join triangles of
their rows (``kernels/tall_matrix.hpp``). The record has what moves
(:mod:`distspmd.plans.matrix_calls`).
"""

from __future__ import annotations

import dace.library
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.libraries.blas.environments import openblas
from dace.properties import Property
from dace.sdfg import nodes
from dace.subsets import Subset
from dace.transformation.transformation import ExpandTransformation

from distspmd.errors import ToolchainError
from distspmd.nodes.blas_products import LOOPS
from distspmd.nodes.distributed_memlet import Runtime
from distspmd.nodes.lapack import COLUMNS, LAPACK, Lapack, Operand, call_of, text
from distspmd.plans.dealt_matrix import TOGETHER
from distspmd.plans.matrix_calls import header_of
from distspmd.runtime.compilers.scalapack import NO_SCALAPACK, ScaLAPACK, find_scalapack
from distspmd.runtime.engine.compile_runtime import INCLUDE

ROWS = "__i"
"""The parameter of rows."""
CONTEXT = "_context"
"""The connector of the handle of the runtime."""
_KERNELS = INCLUDE / "distspmd" / "kernels"


@dace.library.expansion
class ExpandToRows(ExpandTransformation):
    """A map over the rows, and columns of right-hand sides; to be analysed."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: LapackTogether, state: SDFGState, sdfg: SDFG
    ) -> SDFG:
        """Replace the node by a nested SDFG."""
        call = call_of(node, state)
        inner = SDFG(f"rows_of_{call.function}")
        for operand in call.operands:
            inner.add_array(operand.connector, operand.extents, operand.dtype)
        ranges: dict[str, str | Subset] = {ROWS: f"0:{call.inputs[0].extents[0]}"}
        results = (*call.outputs, *((call.info,) if call.info else ()))
        for operand in results:
            if call.columns and call.columns in operand.term:
                ranges[COLUMNS] = f"0:{operand.extents[operand.term.index(call.columns)]}"

        def memlet(operand: Operand, is_made: bool) -> Memlet:
            parts = [f"0:{n}" for n in operand.extents]
            for d, letter in enumerate(operand.term):
                if call.columns and letter == call.columns:
                    parts[d] = COLUMNS
            is_of_rows = operand.term[:1] == node.row
            if is_of_rows:
                parts[0] = ROWS
            wcr = "lambda a, b: a + b" if is_made and not is_of_rows else None
            return Memlet(data=operand.connector, subset=", ".join(parts), wcr=wcr)

        state = inner.add_state()
        for operand in results:
            if operand.term[:1] != node.row:
                whole = Memlet.from_array(operand.connector, inner.arrays[operand.connector])
                state.add_mapped_tasklet(
                    "zeros",
                    {"__once": "0:1"},
                    {},
                    "// sums begin with zero",
                    {"__zeros": whole},
                    language=dtypes.Language.CPP,
                    external_edges=True,
                )
                state = inner.add_state_after(state)
        state.add_mapped_tasklet(
            node.label,
            ranges,
            {f"__given{n}": memlet(o, False) for n, o in enumerate(call.inputs)},
            "// what belongs to this row",
            {f"__found{n}": memlet(o, True) for n, o in enumerate(results)},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """A call in which all ranks work together; where an error is found, the results are NaN."""

    environments = [openblas.OpenBLAS, Runtime]  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: LapackTogether, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a host tasklet."""
        call = call_of(node, state)
        memlets = {e.dst_conn: e.data for e in state.in_edges(node) if e.data.subset is not None}
        memlets |= {e.src_conn: e.data for e in state.out_edges(node)}

        def window(operand: Operand) -> str:
            subset = memlets[operand.connector].subset
            ends = [
                f"{text(first)}, {text(count)}"
                for first, count in zip(subset.min_element(), subset.size(), strict=True)
            ]
            box = ", ".join([*ends, "0, 1"][:2])
            steps = ", ".join([*map(text, operand.strides), "0"][:2])
            return (
                f"distspmd::lapack::Window<{dtype_of(operand)}>"
                f"{{{operand.connector}, {{{box}}}, {steps}}}"
            )

        def dtype_of(operand: Operand) -> str:
            const = "const " if operand in call.inputs else ""
            return f"{const}{operand.dtype.ctype}"

        arguments = [CONTEXT, str(node.index), str(node.block)]
        arguments += [window(o) for o in (*call.inputs, *call.outputs)]
        options = f"<{call.options}>" if call.options else ""
        lines = [
            f"const int64_t __info = distspmd::lapack::{call.function}_together{options}("
            + ",\n".join(arguments)
            + ");"
        ]
        spoiled = [f"distspmd::lapack::spoil({window(o)}.view());" for o in call.outputs]
        lines.append(f"if (__info) {{ {' '.join(spoiled)} }}")
        if call.info:
            lines.append(f"const auto __told = {window(call.info)}.view();")
            lines.append("for (int64_t __i = 0; __i < __told.rows; ++__i) __told(__i) = __info;")
        header, defined = header_of(call.function), ""
        if call.function in TOGETHER and TOGETHER[call.function].library:
            files = ":".join(map(str, _library().libraries))
            defined = f'#define DISTSPMD_SCALAPACK "{files}"\n'
        pointers = {o.connector: dtypes.pointer(o.dtype) for o in call.operands}
        given = {c: pointers[c] for c in node.in_connectors if c != CONTEXT}
        return nodes.Tasklet(
            node.label,
            {**given, CONTEXT: dtypes.int64},
            {c: pointers[c] for c in node.out_connectors},
            "{\n" + "\n".join(lines) + "\n}",
            language=dtypes.Language.CPP,
            code_global=f'{defined}#include "{_KERNELS}/{header}"\n',
            side_effects=True,
        )


def _library() -> ScaLAPACK:
    found = find_scalapack()
    if found is None:
        raise ToolchainError(
            "the program was lowered with ScaLAPACK, of which there is none.\n"
            f"  {NO_SCALAPACK}; or lower it again."
        )
    return found


@dace.library.node
class LapackTogether(Lapack):
    """A function of :mod:`distspmd.plans.matrix_calls` on one matrix.

    Operands and results are those of :class:`Lapack`; what is reported has an element for each row.
    Results that have no rows of the matrix are sums of what ranks give.
    """

    implementations = {LOOPS: ExpandToRows, LAPACK: ExpandToCall}  # noqa: RUF012
    default_implementation = LAPACK

    index = Property(dtype=int, default=0, desc="Number of the call in the lowered program")
    block = Property(dtype=int, default=1, desc="Columns of a block")

    @property
    def row(self) -> str:
        """The letter of rows."""
        return str(self.subscripts[0])

    @property
    def reported(self) -> str:
        """The letter of what is reported, which is that of rows."""
        return self.row

    def has_side_effects(self, sdfg: SDFG) -> bool:
        """All ranks take part in it, and none leaves it out."""
        return True
