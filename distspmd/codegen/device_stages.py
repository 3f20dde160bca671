"""What a map or a reduction computes at each of its indices, as kernels of our own need it.

A stage has variables that run from 0, elements that it reads and writes at sums of multiples of
them, and a text of C++ between both. What is more than that, such as elements that data choose, has
no stage: another form of kernel takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy
from dace import SDFGState, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes
from dace.subsets import Range

from distspmd.analysis.accesses import Edge
from distspmd.expressions.cpp import literal
from distspmd.expressions.cuda import CudaPrinter
from distspmd.expressions.ir import IndexValue, parts
from distspmd.nodes.contraction import Contraction, windows
from distspmd.nodes.contraction_loops import REDUCTIONS, parameter
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.nodes.device_kernels import NEUTRAL, einsum_of
from distspmd.nodes.reduce_simd import COMBINE, VECTOR, fits


@dataclass(frozen=True)
class Access:
    """Elements that a stage reads or writes.

    Attributes:
        node: of the container.
        window: of the edge between the node and the map.
        local: what the element is called in the stage's text.
        origin: from the element of index 0 to the first one of the window.
        offset: from there to the one where all variables are 0.
        steps: how far it moves in memory with each variable.
    """

    node: nodes.AccessNode
    window: Range
    dtype: dtypes.typeclass
    local: str
    origin: sympy.Expr
    offset: sympy.Expr
    steps: tuple[sympy.Expr, ...]

    @property
    def behind(self) -> sympy.Expr:
        """From the first element of the window to the one where all variables are 0."""
        return sympy.expand(self.offset - self.origin)

    def is_like(self, other: Access) -> bool:
        """Whether another one of as many variables is the same element, at all indices."""
        differences = [
            a - b
            for a, b in zip((self.offset, *self.steps), (other.offset, *other.steps), strict=True)
        ]
        return self.node.data == other.node.data and all(
            sympy.expand(one) == 0 for one in differences
        )


@dataclass(frozen=True)
class Value:
    """An integer that a text names: ``begin + step * variable``, or ``begin`` alone."""

    name: str
    begin: sympy.Expr
    step: sympy.Expr | None = None
    variable: int | None = None


@dataclass(frozen=True)
class Reduction:
    """How the values of a stage are combined: ``{1}`` into ``{0}``, from what is neutral.

    Attributes:
        start: what is combined into each element besides; empty for nothing.
    """

    ctype: str
    neutral: str
    combine: str
    start: str = ""


@dataclass(frozen=True)
class Stage:
    """What a node computes.

    Attributes:
        node: the library node, or the entry of the map.
        extents: of the variables, outermost first; none is 1.
        reads: elements whose values the text has.
        writes: elements that the text gives values; of a reduction its result.
        text: C++ from the locals of the reads to those of the writes; of a reduction to
            ``__value``.
        values: integers that the text names.
        reduction: how values are combined; None where each is an element of its own.
        kept: number of the variables that choose elements of a reduction's result.
        condition: of the values that count in a reduction; empty for all.
    """

    label: str
    node: nodes.Node
    extents: tuple[sympy.Expr, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    text: str
    values: tuple[Value, ...] = ()
    reduction: Reduction | None = None
    kept: int = 0
    condition: str = ""

    @property
    def counted(self) -> set[int]:
        """Variables whose values the text has."""
        return {value.variable for value in self.values if value.variable is not None}


def has_type(dtype: dtypes.typeclass) -> bool:
    """Whether kernels of our own have values of a type."""
    return np.dtype(dtype.as_numpy_dtype()) in CudaPrinter.types


# -- reductions -----------------------------------------------------------------------------------


def reduction_stage(state: SDFGState, node: nodes.LibraryNode) -> Stage | None:
    """The stage of a reduction whose order is left to us; None if it has none."""
    if isinstance(node, Contraction):
        return None if node.in_order else _of_contraction(state, node)
    if not isinstance(node, Reduce) or node.implementation != VECTOR or not fits(node, state):
        return None
    einsum = einsum_of(node, state)
    clause, combine = COMBINE[detect_reduction_type(node.wcr)]
    ctype, dtype = str(einsum.result.dtype.ctype), einsum.result.dtype.as_numpy_dtype()
    or_nan = " || {1} != {1}" if clause in ("max", "min") else ""
    how = Reduction(
        ctype,
        NEUTRAL[clause].format(ctype),
        combine.format(a="{0}", b="{1}", or_nan=or_nan),
        literal(node.identity, np.dtype(dtype)),
    )
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    text = f"const {ctype} __value = __r0;"
    return _of_einsum(node, einsum, {"_in": entering, "_out": leaving}, (text, how, {}, ""))


def _of_contraction(state: SDFGState, node: Contraction) -> Stage | None:
    einsum, value = windows(node, state), node.reduced
    if not einsum.writes_once or (node.pick and node.pick.letter not in einsum.reduced):
        return None
    if value is None and not _multiplies_rows(einsum):
        return None
    if value is not None and not CudaPrinter.can_print(value):
        return None
    combine, neutral, _ = REDUCTIONS[node.operation]
    ctype, used, condition = str(einsum.result.dtype.ctype), {}, ""
    if value is None:
        factors = [f"{ctype}(__r{n})" for n in range(len(einsum.operands))]
        text = f"const {ctype} __value = {ctype}({' * '.join(factors)});"
    else:
        counted = [v for p in parts(value) if isinstance(p, IndexValue) for v, _ in p.terms]
        used = {x: f"_at_{parameter(x)}" for x in einsum.letters if x in counted}
        printer = CudaPrinter(used)
        printed = printer.text(value)
        named = [f"const auto _v{n} = __r{n};" for n in range(len(einsum.operands))]
        last = f"const {ctype} __value = {ctype}({printed});"
        text = "\n".join([*named, *printer.lines, last])
    if node.pick:
        x = node.pick.letter
        used[x] = f"_at_{parameter(x)}"
        condition = f"std::int64_t(__r{node.pick.operand}) == {used[x]}"
    edges = {e.dst_conn: e for e in state.in_edges(node) if e.dst_conn}
    edges |= {e.src_conn: e for e in state.out_edges(node) if e.src_conn}
    how = Reduction(ctype, neutral.format(ctype), combine) if einsum.reduced else None
    if how is None:
        text += "\n__w0 = __value;"
    return _of_einsum(node, einsum, edges, (text, how, used, condition))


def _multiplies_rows(einsum: Einsum) -> bool:
    """Whether a product has no matrix: each letter of the result is one of all factors."""
    kept = set(einsum.letters) - set(einsum.reduced)
    return all(kept <= set(operand.letters) for operand in einsum.operands)


def _of_einsum(
    node: nodes.LibraryNode,
    einsum: Einsum,
    edges: Mapping[str, Edge],
    does: tuple[str, Reduction | None, Mapping[str, str], str],
) -> Stage | None:
    """The stage of windows with letters, which are its variables: those of the result first."""
    text, how, used, condition = does
    if not all(has_type(operand.dtype) for operand in (*einsum.operands, einsum.result)):
        return None
    kept = [x for x in einsum.letters if x not in einsum.reduced and einsum.extents[x] != 1]
    order = kept + [x for x in einsum.reduced if einsum.extents[x] != 1]

    def access(operand: Operand, local: str, at: nodes.AccessNode) -> Access:
        offset = sympy.Add(*(b * s for b, s in zip(operand.begins, operand.strides, strict=False)))
        steps = tuple(operand.steps.get(x, sympy.Integer(0)) for x in order)
        window = edges[operand.connector].data.subset
        # the windows of operands are those of their edges
        return Access(at, window, operand.dtype, local, offset, offset, steps)

    ends = [edges[operand.connector] for operand in (*einsum.operands, einsum.result)]
    if not all(isinstance(e.src if e.dst is node else e.dst, nodes.AccessNode) for e in ends):
        return None
    one = sympy.Integer(1)
    values = [
        Value(name, einsum.begins[x], one, order.index(x))
        if x in order
        else Value(name, einsum.begins[x])
        for x, name in used.items()
    ]
    return Stage(
        node.label,
        node,
        tuple(einsum.extents[x] for x in order),
        tuple(access(o, f"__r{n}", ends[n].src) for n, o in enumerate(einsum.operands)),
        (access(einsum.result, "__w0", ends[-1].dst),),
        text,
        tuple(values),
        how,
        len(kept),
        condition,
    )


# -- fewer variables ------------------------------------------------------------------------------


def permuted(stage: Stage, order: Sequence[int]) -> Stage:
    """A stage that reduces nothing, with its variables in another order."""
    at = {variable: place for place, variable in enumerate(order)}

    def moved(access: Access) -> Access:
        return replace(access, steps=tuple(access.steps[n] for n in order))

    return replace(
        stage,
        extents=tuple(stage.extents[n] for n in order),
        reads=tuple(map(moved, stage.reads)),
        writes=tuple(map(moved, stage.writes)),
        values=tuple(
            v if v.variable is None else replace(v, variable=at[v.variable]) for v in stage.values
        ),
    )


def merged(
    extents: tuple[sympy.Expr, ...],
    accesses: Iterable[Access],
    fixed: Iterable[int],
    border: int = 0,
) -> list[list[int]]:
    """Groups of variables that move as one in each access, outermost first.

    Args:
        extents: of all variables.
        accesses: all that they choose.
        fixed: variables whose values count.
        border: the variable that is in no group with the one before it.
    """
    groups: list[list[int]] = []
    accesses, fixed = list(accesses), set(fixed)
    for n in range(len(extents)):
        above = n - 1
        alone = n in (0, border) or bool({above, n} & fixed)
        if not alone and all(
            sympy.expand(one.steps[above] - one.steps[n] * extents[n]) == 0 for one in accesses
        ):
            groups[-1].append(n)
        else:
            groups.append([n])
    return groups
