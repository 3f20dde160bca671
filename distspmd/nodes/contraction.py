"""Contractions: one library node whose letters are its iteration space.

``_out[result] = sum over other letters of _in0[..] * _in1[..]``, or another reduction of another
expression. Each letter is a parameter of the space, those of the result first; so a schedule can
split a head or a batch that a product of matrices would hide. To be analysed, the node is one map;
it runs as calls of ``gemm`` in loops over the letters that no matrix has, or as plain loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from distspmd.nodes import gemm
from distspmd.nodes.gemm import Gemm, text
from distspmd.nodes.operands import Einsum, Operand
from distspmd.nodes.products import CALL, LOOPS
from distspmd.nodes.subscripts import Subscripts

NEST = "distspmd-nest"
"""Name of the expansion to plain loops in C++."""

_LIMITS = "std::numeric_limits<{0}>"
_LEAST = f"({_LIMITS}::has_infinity ? -{_LIMITS}::infinity() : {_LIMITS}::lowest())"
_MOST = f"({_LIMITS}::has_infinity ? {_LIMITS}::infinity() : {_LIMITS}::max())"
_REDUCTIONS = {
    "sum": ("lambda x, y: x + y", "{0} += {1};", "{0}(0)"),
    "max": ("lambda x, y: max(x, y)", "if ({1} > {0} || {1} != {1}) {0} = {1};", _LEAST),
    "min": ("lambda x, y: min(x, y)", "if ({1} < {0} || {1} != {1}) {0} = {1};", _MOST),
}
"""Of each reduction: how DaCe calls it, how C++ does it, and what it starts from."""


_NOWHERE = dtypes.DebugInfo(0)
"""The place of what is generated; without one, DaCe looks for it in the stack, which is slow."""


def parameter(letter: str) -> str:
    """Name of the parameter of a letter; DaCe's symbols do not all take single capitals."""
    return letter if letter.islower() else f"{letter.lower()}_"


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
            debuginfo=_NOWHERE,
        )
        inputs = {
            f"__{n}": Memlet(data=operand.connector, subset=", ".join(operand.indices(names)))
            for n, operand in enumerate(einsum.operands)
        }
        subset, wcr = ", ".join(einsum.result.indices(names)), _REDUCTIONS[node.operation][0]
        inner.add_state_after(begin, "contract").add_mapped_tasklet(
            "contract",
            ranges or {"__once": "0:1"},
            inputs,
            f"__out = {' + '.join(inputs)}",
            {"__out": Memlet(data="_out", subset=subset, wcr=wcr)},
            external_edges=True,
            propagate=False,
            debuginfo=_NOWHERE,
        )
        return inner


@dace.library.expansion
class ExpandToNest(ExpandTransformation):
    """Plain loops: an element of the result is reduced in a register, where that is possible."""

    environments: list[type] = []  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]
        node: Contraction, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        einsum = windows(node, state)
        result, ctype = einsum.result, einsum.result.dtype.ctype
        _, reduce, start = _REDUCTIONS[node.operation]
        neutral = start.format(ctype)
        element = _element(result)
        value = f"const {ctype} __value = {ctype}({_value(node, einsum)});\n"
        kept, streaming = _kept(einsum), _streaming(einsum)
        if einsum.writes_once and not _innermost_kept(einsum) and node.pick[:1] not in list(kept):
            body = nest(
                einsum, einsum.reduced, value + reduce.format("__part", "__value"), node.pick
            )
            body = f"{ctype} __part = {neutral};\n{body}\n{element} = __part;"
            return _tasklet(node, einsum, nest(einsum, kept, body))
        code = _clear(einsum, neutral)
        code += nest(einsum, streaming, value + reduce.format(element, "__value"), node.pick)
        return _tasklet(node, einsum, code)


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
        adds_up = bool(set(product.loops) & set(einsum.reduced)) or not einsum.writes_once
        code = f"const {ctype} __one(1), __zero(0);\n"
        one, zero = "__one", "__zero"
        if gemm.BLAS[einsum.result.dtype] in "cz":  # complex factors go by address
            one, zero = f"&{one}", f"&{zero}"
        if adds_up:  # and there may be no call at all
            code += _clear(einsum, "__zero")
        call = product.call(one, one if adds_up else zero, _indices(einsum))
        return _tasklet(node, einsum, code + nest(einsum, product.loops, call))


def _gemm(node: Contraction, einsum: Einsum) -> Gemm | None:
    return None if node.code else gemm.largest(einsum)


def _indices(einsum: Einsum) -> dict[str, str]:
    return {x: f"__{parameter(x)}" for x in einsum.letters}


def nest(einsum: Einsum, letters: Iterable[str], body: str, pick: str = "") -> str:
    """Loops over letters, outermost first, around a body.

    A picked letter has no loop: it is what its operand holds, behind the loops that this needs.
    """
    index = _indices(einsum)
    if not pick or pick[0] not in list(letters):
        return _loops([(index[x], einsum.extents[x]) for x in letters], body)
    letter, operand = pick[0], einsum.operands[int(pick[1:])]
    others = [x for x in letters if x != letter]
    place = max((n for n, x in enumerate(others, start=1) if x in operand.letters), default=0)
    body = nest(einsum, others[place:], body)
    value = f"int64_t({_element(operand)}) - ({text(einsum.begins[letter])})"
    end = text(einsum.extents[letter])
    body = f"if ({index[letter]} >= 0 && {index[letter]} < {end}) {{\n{body}\n}}"
    return nest(einsum, others[:place], f"const int64_t {index[letter]} = {value};\n{body}")


def _loops(ranges: Sequence[tuple[str, sympy.Expr]], body: str) -> str:
    for index, end in reversed(ranges):
        body = f"for (int64_t {index} = 0; {index} < {text(end)}; ++{index}) {{\n{body}\n}}"
    return body


def _clear(einsum: Einsum, value: str) -> str:
    """Set the window of the result to a value."""
    result = einsum.result
    ranges = [(f"__d{d}", extent) for d, extent in enumerate(result.extents)]
    terms = (f"__d{d} * ({text(stride)})" for d, stride in enumerate(result.strides))
    return _loops(ranges, f"_out[{' + '.join(terms)}] = {value};") + "\n"


def _streaming(einsum: Einsum) -> str:
    """An order of loops with those of the result's nearest elements innermost."""
    kept = _kept(einsum)
    inner = kept[-1:] if _innermost_kept(einsum) or not einsum.writes_once else ""
    return kept[: len(kept) - len(inner)] + einsum.reduced + inner


def _innermost_kept(einsum: Einsum) -> bool:
    """Whether neighbours in memory belong to different elements of the result."""
    kept = einsum.result.letters
    if not kept or not einsum.reduced:
        return False
    last = kept[-1]
    moves = [
        operand.steps.get(last, 0) == 1 for operand in einsum.operands if last in operand.steps
    ]
    return bool(moves) and all(moves) and einsum.result.steps[last] == 1


def _kept(einsum: Einsum) -> str:
    return "".join(x for x in einsum.letters if x not in einsum.reduced)


def _value(node: Contraction, einsum: Einsum) -> str:
    """The expression at the loops' indices; it may name letters, which count in the whole."""
    values = [_element(operand) for operand in einsum.operands]
    if not node.code:
        ctype = einsum.result.dtype.ctype
        return " * ".join(f"{ctype}({value})" for value in values)
    bound = {f"_v{n}": value for n, value in enumerate(values)}
    index = _indices(einsum)
    bound |= {
        f"_at_{parameter(x)}": f"{index[x]} + {text(einsum.begins[x])}"
        for x in einsum.letters
        if f"_at_{parameter(x)}" in node.code
    }
    lines = " ".join(f"const auto {name} = {value};" for name, value in bound.items())
    return f"[&] {{ {lines} return {node.code}; }}()"


def _element(operand: Operand) -> str:
    terms = [f"__{parameter(x)} * ({text(step)})" for x, step in operand.steps.items() if step != 0]
    return f"{operand.connector}[{' + '.join(terms) or '0'}]"


def _tasklet(node: Contraction, einsum: Einsum, code: str) -> nodes.Tasklet:
    return nodes.Tasklet(
        node.name,
        {o.connector: dtypes.pointer(o.dtype) for o in einsum.operands},
        {"_out": dtypes.pointer(einsum.result.dtype)},
        code,
        language=dtypes.Language.CPP,
    )


def on_blas(node: Contraction, state: SDFGState) -> bool:
    """Whether :data:`CALL` can replace a node."""
    return _gemm(node, windows(node, state)) is not None


@dace.library.node
class Contraction(nodes.LibraryNode):
    """``_out = sum _in0 * _in1``, as ``subscripts`` say: ``"bik,bkj->bij"``.

    With ``code``, a C++ expression of the operands' values ``_v0``, ``_v1``, ... and of the
    letters' values ``_at_b``, that is reduced instead of the product; by ``operation``. With
    ``pick``, ``"v0"``, it is neutral but where the letter ``v`` is what the operand 0 holds there:
    a row of a table is looked up, and the table can still be split.
    """

    implementations = {LOOPS: ExpandToLoops, NEST: ExpandToNest, CALL: ExpandToCall}  # noqa: RUF012
    default_implementation = NEST

    subscripts = Property(dtype=str, default="a->a", desc="Indices of the dimensions, as in einsum")
    code = Property(dtype=str, default="", desc="What is reduced; empty for the product")
    operation = Property(dtype=str, default="sum", desc="The reduction: sum, max or min")

    pick = Property(dtype=str, default="", desc="A letter, and the operand that holds its value")

    def __init__(
        self, name: str = "contraction", subscripts: str = "a->a", **keywords: Any
    ) -> None:
        operands = range(subscripts.count(",") + 1)
        super().__init__(name, inputs={f"_in{n}" for n in operands}, outputs={"_out"}, **keywords)
        self.subscripts = subscripts

    def __str__(self) -> str:
        return f"{self.label}: {self.subscripts}"


def add_contraction(
    state: SDFGState,
    label: str,
    subscripts: str,
    operands: Sequence[nodes.AccessNode],
    result: nodes.AccessNode,
    *,
    code: str = "",
    operation: str = "sum",
    pick: str = "",
) -> Contraction:
    """Add a contraction of whole containers to a state."""
    node = Contraction(label, subscripts)
    node.code, node.operation, node.pick = code, operation, pick
    state.add_node(node)
    for n, operand in enumerate(operands):
        everything = Memlet.from_array(operand.data, operand.desc(state.sdfg))
        state.add_edge(operand, None, node, f"_in{n}", everything)
    everything = Memlet.from_array(result.data, result.desc(state.sdfg))
    state.add_edge(node, "_out", result, None, everything)
    return node
