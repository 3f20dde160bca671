"""Contractions: library nodes whose letters are their iteration space.

``_out[result] = sum over other letters of _in0[..] * _in1[..]``, or another reduction of another
expression. Each letter is a parameter of the space, and those of the result come first. A schedule
can therefore split a head or a batch that a product of matrices would hide. The analysis sees the
node as one map; it runs as calls of ``gemm`` in loops over the remaining letters, or as loops.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from string import ascii_letters
from typing import Any

import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.libraries.blas.environments import openblas
from dace.properties import Property
from dace.sdfg import nodes
from dace.subsets import Subset
from dace.transformation.transformation import ExpandTransformation

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Expression, IndexValue, replace_leaves
from distspmd.expressions.text import parse_expression
from distspmd.nodes import contraction_gemm
from distspmd.nodes.blas_products import CALL, LOOPS
from distspmd.nodes.contraction_gemm import Gemm, cpp_text
from distspmd.nodes.contraction_loops import (
    emit_clear,
    emit_reduction,
    loop_variables,
    nest,
    parameter,
)
from distspmd.nodes.contraction_operands import Einsum, Operand, Pick
from distspmd.nodes.contraction_packed import HEADER, PackedProduct
from distspmd.nodes.subscripts import Subscripts

NEST, PACKED = "distspmd-nest", "distspmd-packed"
"""Names of the expansions to plain loops in C++, and to a product of packed blocks."""

_REDUCTIONS = {
    "sum": "lambda x, y: x + y",
    "max": "lambda x, y: max(x, y)",
    "min": "lambda x, y: min(x, y)",
}
"""How DaCe calls each reduction."""


def windows(node: Contraction, state: SDFGState) -> Einsum:
    """The contraction that a node computes between the windows of its memlets.

    Raises:
        UnsupportedProgram: the windows do not fit the letters.
    """
    subscripts = Subscripts.parse(node.subscripts)
    edges = {e.dst_conn: e for e in state.in_edges(node) if e.dst_conn}
    edges |= {e.src_conn: e for e in state.out_edges(node) if e.src_conn}
    found = []
    terms = [*subscripts.operands, subscripts.result]
    connectors = [*(f"_in{n}" for n in range(len(subscripts.operands))), "_out"]
    for connector, own in zip(connectors, terms, strict=True):
        memlet = edges[connector].data
        storage = state.sdfg.arrays[memlet.data]
        sizes = tuple(map(sympy.sympify, memlet.subset.size()))
        if len(sizes) != max(1, len(own)):
            raise UnsupportedProgram(
                f"the contraction {node.label!r} ({node.subscripts}) has {len(own)} letters "
                f"for {memlet.data}[{memlet.subset}], which has {len(sizes)} dimensions."
            )
        begins = tuple(sympy.sympify(begin) for begin, _, _ in memlet.subset.ranges)
        strides = tuple(map(sympy.sympify, storage.strides))
        found.append(Operand(connector, storage.dtype, own, begins, sizes, strides))
    return Einsum(tuple(found[:-1]), found[-1], subscripts.letters, subscripts.reduced)


@dace.library.expansion
class ExpandToLoops(ExpandTransformation):
    """One map over all letters, after one that initialises the result; to be analysed."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: Contraction, state: SDFGState, sdfg: SDFG
    ) -> SDFG:
        """Replace the node by a nested SDFG."""
        einsum = windows(node, state)
        inner = SDFG("contraction")
        for operand in (*einsum.operands, einsum.result):
            inner.add_array(
                operand.connector, operand.extents, operand.dtype, strides=operand.strides
            )
        names = {x: parameter(x) for x in einsum.letters}
        ranges: dict[str, str | Subset] = {
            names[x]: f"0:{einsum.extents[x]}" for x in einsum.letters
        }
        window = [f"__d{d}" for d in range(len(einsum.result.extents))]
        begin = inner.add_state("begin")
        begin.add_mapped_tasklet(
            "initialise",
            {p: f"0:{n}" for p, n in zip(window, einsum.result.extents, strict=True)},
            {},
            "__out = 0",
            {"__out": Memlet(data="_out", subset=", ".join(window))},
            external_edges=True,
            propagate=False,
        )
        inputs = {
            f"__{n}": Memlet(data=operand.connector, subset=", ".join(operand.indices(names)))
            for n, operand in enumerate(einsum.operands)
        }
        subset, wcr = ", ".join(einsum.result.indices(names)), _REDUCTIONS[node.operation]
        inner.add_state_after(begin, "contract").add_mapped_tasklet(
            "contract",
            ranges or {"__once": "0:1"},
            inputs,
            f"__out = {' + '.join(inputs)}",
            {"__out": Memlet(data="_out", subset=subset, wcr=wcr)},
            external_edges=True,
            propagate=False,
        )
        return inner


@dace.library.expansion
class ExpandToNest(ExpandTransformation):
    """Plain loops: elements of the result are reduced in registers, where that is possible."""

    environments: list[type] = []  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]
        node: Contraction, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        einsum = windows(node, state)
        return _tasklet(node, einsum, emit_reduction(einsum, node))


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """Calls of ``gemm``, in loops over the letters that the matrices have not."""

    environments = [openblas.OpenBLAS]  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]
        node: Contraction, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        einsum = windows(node, state)
        product = _gemm(node, einsum)
        assert product is not None, "choose_implementations asks first"
        ctype = einsum.result.dtype.ctype
        batch = [x for x in product.loops if x not in einsum.reduced]
        summed = [x for x in product.loops if x in einsum.reduced]
        code = f"const {ctype} __one(1), __zero(0);\n"
        if not einsum.writes_once:  # and there may be no call at all
            code += emit_clear(einsum, "__zero")
            call = product.call("__one", "__one", loop_variables(einsum))
            return _tasklet(node, einsum, code + nest(einsum, product.loops, call))
        calls = nest(
            einsum, summed, product.call("__one", _first(einsum, summed), loop_variables(einsum))
        )
        if any(not einsum.extents[x].is_positive for x in summed):
            code += emit_clear(einsum, "__zero")
        if batch:
            calls = _batch(einsum, batch, calls)
        return _tasklet(node, einsum, code + calls)


@dace.library.expansion
class ExpandToPacked(ExpandTransformation):
    """One product of all rows and columns, whose blocks are packed."""

    environments: list[type] = []  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]
        node: Contraction, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        einsum = windows(node, state)
        product = PackedProduct.of(einsum)
        assert product is not None, "choose_implementations asks first"
        return _tasklet(node, einsum, product.code(), HEADER)


def _first(einsum: Einsum, summed: Sequence[str]) -> str:
    """The factor of what is in the result: none at the first of several summands."""
    if not summed:
        return "__zero"
    index = loop_variables(einsum)
    return f"({' && '.join(f'{index[x]} == 0' for x in summed)} ? __zero : __one)"


def _batch(einsum: Einsum, batch: Sequence[str], calls: str) -> str:
    """Products over letters that the result has too: threads share them."""
    count = cpp_text(sympy.Mul(*(einsum.extents[x] for x in batch)))
    work = " * ".join(f"double({cpp_text(n)})" for n in (2, *einsum.extents.values()))
    lines = []
    rest = "__item"
    for x in reversed(batch):
        extent = cpp_text(einsum.extents[x])
        lines.append(f"const int64_t {loop_variables(einsum)[x]} = {rest} % ({extent});")
        rest = f"{rest} / ({extent})"
    body = "\n".join([*lines, calls])
    return f"distspmd::each({count}, {work}, [&](int64_t __item) {{\n{body}\n}});"


def _gemm(node: Contraction, einsum: Einsum) -> Gemm | None:
    return None if node.expression else contraction_gemm.largest(einsum)


def _tasklet(node: Contraction, einsum: Einsum, code: str, header: str = "") -> nodes.Tasklet:
    return nodes.Tasklet(
        node.name,
        {o.connector: dtypes.pointer(o.dtype) for o in einsum.operands},
        {"_out": dtypes.pointer(einsum.result.dtype)},
        code,
        language=dtypes.Language.CPP,
        code_global=header,
    )


def fastest_implementation(node: Contraction, state: SDFGState) -> str:
    """How a node runs on the host: :data:`CALL`, :data:`PACKED` or :data:`NEST`."""
    return NEST if node.expression else fastest_product(windows(node, state))


def fastest_product(einsum: Einsum) -> str:
    """The same for the product of its operands."""
    gemm, packed = contraction_gemm.largest(einsum), PackedProduct.of(einsum)
    if packed is not None and packed.is_worth_packing(gemm):
        return PACKED
    return NEST if gemm is None else CALL


@dace.library.node
class Contraction(nodes.LibraryNode):
    """``_out = sum _in0 * _in1``, as ``subscripts`` say: ``"bik,bkj->bij"``.

    With ``expression``, the text form of an expression of the operands' elements, which are the
    arguments ``_v0``, ``_v1``, ..., and of letters as indices: it is reduced instead of the
    product, by ``operation``. With a ``pick``, ``Pick("v", 0)``, it is neutral but where the letter
    ``v`` is what the operand 0 holds there: a row of a table is looked up, and the table can still
    be split.
    """

    implementations = {  # noqa: RUF012
        LOOPS: ExpandToLoops,
        NEST: ExpandToNest,
        CALL: ExpandToCall,
        PACKED: ExpandToPacked,
    }
    default_implementation = NEST

    subscripts = Property(dtype=str, default="a->a", desc="Indices of the dimensions, as in einsum")
    expression = Property(dtype=str, default="", desc="What is reduced; empty for the product")
    operation = Property(dtype=str, default="sum", desc="The reduction: sum, max or min")

    pick: Any = Property(
        dtype=Pick,
        allow_none=True,
        default=None,
        to_json=lambda pick: pick and list(pick),
        from_json=lambda pair, sdfg=None: pair and Pick(*pair),
        desc="A letter, and the operand that holds its value",
    )
    in_order = Property(dtype=bool, default=False, desc="Combine operands one by one")

    def __init__(
        self, name: str = "contraction", subscripts: str = "a->a", **keywords: Any
    ) -> None:
        operands = range(subscripts.count(",") + 1)
        super().__init__(name, inputs={f"_in{n}" for n in operands}, outputs={"_out"}, **keywords)
        self.subscripts = subscripts

    @property
    def reduced(self) -> Expression | None:
        """The expression that is reduced; None for the product of the operands."""
        return parse_expression(self.expression) if self.expression else None

    def avoid(self, taken: Collection[str]) -> None:
        """Give letters whose parameters have names of symbols other ones, in place.

        A window may depend on those symbols: ``a[:, k]`` in a loop over ``k``.
        """
        letters = Subscripts.parse(self.subscripts).letters
        free = (x for x in ascii_letters if x not in letters and parameter(x) not in taken)
        by = {x: next(free) for x in letters if parameter(x) in taken}
        if not by:
            return
        self.subscripts = "".join(by.get(x, x) for x in self.subscripts)
        reduced = self.reduced
        if reduced is not None:
            self.expression = str(replace_leaves(reduced, lambda leaf: _renamed(leaf, by)))
        if self.pick:
            self.pick = Pick(by.get(self.pick.letter, self.pick.letter), self.pick.operand)

    def __str__(self) -> str:
        return f"{self.label}: {self.subscripts}"


def _renamed(leaf: Expression, by: Mapping[str, str]) -> Expression:
    if not isinstance(leaf, IndexValue):
        return leaf
    terms = tuple((by.get(str(letter), letter), factor) for letter, factor in leaf.terms)
    return IndexValue(terms, leaf.constant, leaf.dtype)


def add_contraction(
    state: SDFGState,
    label: str,
    subscripts: str,
    operands: Sequence[nodes.AccessNode],
    result: nodes.AccessNode,
    *,
    expression: str = "",
    operation: str = "sum",
    pick: Pick | None = None,
) -> Contraction:
    """Add a contraction of whole containers to a state."""
    node = Contraction(label, subscripts)
    node.expression, node.operation, node.pick = expression, operation, pick
    state.add_node(node)
    for n, operand in enumerate(operands):
        everything = Memlet.from_array(operand.data, operand.desc(state.sdfg))
        state.add_edge(operand, None, node, f"_in{n}", everything)
    everything = Memlet.from_array(result.data, result.desc(state.sdfg))
    state.add_edge(node, "_out", result, None, everything)
    return node
