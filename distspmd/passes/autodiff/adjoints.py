"""The maps and contractions that compute gradients, from what each operation of a program computes.

The gradient of a container is the sum of one term for each read of it. A term with one value for
each element is a summand of one map. A term that is a sum over other parameters is a contraction,
on BLAS if it is a product. A term at shifted or repeated indices is added element by element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_letters

import numpy as np
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.dtypes import DebugInfo
from dace.sdfg import nodes

from distspmd.analysis.iteration_spaces import ParameterRange
from distspmd.expressions.ir import Argument, Constant, Expression, Operation, substitute
from distspmd.expressions.operations import DType
from distspmd.expressions.python import PythonPrinter
from distspmd.nodes.contraction import add_contraction
from distspmd.passes.autodiff.operations import Element, Indices, index_value

_SUM = "lambda x, y: x + y"


@dataclass(frozen=True)
class Term:
    """What is added to ``target[indices]`` for all values of the parameters.

    Attributes:
        ranges: of each parameter, from 0 in steps of 1.
        reads: elements that the names in the value stand for.
        value: an expression of the names and the parameters.
        indices: of the element that it is added to.
        info: DaCe's record of the line.
    """

    ranges: Mapping[str, ParameterRange] = field(repr=False)
    reads: Mapping[str, Element]
    value: Expression
    indices: Indices
    info: DebugInfo | None = field(default=None, repr=False)


def index_of(shape: Sequence[sympy.Expr]) -> Indices:
    """An element of a container by parameters of its dimensions."""
    return tuple(
        sympy.Integer(0) if extent == 1 else sympy.Symbol(f"__i{d}")
        for d, extent in enumerate(shape)
    )


def ranges_of(shape: Sequence[sympy.Expr]) -> dict[str, ParameterRange]:
    """Ranges of the parameters of :func:`index_of`."""
    zero, one = sympy.Integer(0), sympy.Integer(1)
    return {
        f"__i{d}": ParameterRange(zero, sympy.sympify(extent), one)
        for d, extent in enumerate(shape)
        if extent != 1
    }


def parameters_along(
    shape: Sequence[sympy.Expr], indices: Indices, ranges: Mapping[str, ParameterRange]
) -> list[str] | None:
    """The parameter of each dimension, "" for one of one element; None for any other index."""
    found: list[str] = []
    for extent, index in zip(shape, indices, strict=True):
        name = str(index)
        if index == 0 and extent == 1:
            found.append("")
        elif name in ranges and name not in found and _is_all(ranges[name], extent):
            found.append(name)
        else:
            return None
    return found


def _is_all(values: ParameterRange, extent: sympy.Expr) -> bool:
    return bool(values.begin == 0 and values.step == 1 and values.end == extent)


class Emitter:
    """Adds the maps of gradients to a state, behind one that sets sums to zero."""

    def __init__(self, sdfg: SDFG, state: SDFGState) -> None:
        self.sdfg, self.state = sdfg, state
        self.zeros: SDFGState | None = None
        self._nodes: dict[str, nodes.AccessNode] = {}

    def total(self, term: Term, kept: list[str], dtype: dtypes.typeclass) -> str:
        """A new container with the sums of a term, indexed by the parameters that are kept."""
        return self._contract(term, kept, dtype)

    def gradient(self, name: str, terms: Sequence[Term]) -> str:
        """A new container of the shape of another one, with the sum of terms."""
        like = self.sdfg.arrays[name]
        target, _ = self.sdfg.add_transient(
            f"{name}_gradient", like.shape, like.dtype, find_new_name=True
        )
        self.sum_into(str(target), terms)
        return str(target)

    def sum_into(self, target: str, terms: Sequence[Term]) -> None:
        """Write the sum of terms to a container, all of it."""
        shape = self.sdfg.arrays[target].shape
        if len(terms) == 1 and self._is_contracted_to(target, terms[0]):
            kept = list(map(str, terms[0].indices))
            self._contract(terms[0], kept, self.sdfg.arrays[target].dtype, target)
            return
        own = [str(i) if i != 0 else "" for i in index_of(shape)]
        index = index_of(shape)
        reads: dict[str, Element] = {}
        summands = [self._summand(target, term, own, index, reads) for term in terms]
        value = _added(summands, self._type_of(target))
        ranges = {p: f"0:{n}" for p, n in zip(own, shape, strict=True) if p}
        info = next((term.info for term in terms), None)
        self._map(target, ranges, reads, value, Element(target, index), info=info)

    def _is_contracted_to(self, target: str, term: Term) -> bool:
        along = parameters_along(self.sdfg.arrays[target].shape, term.indices, term.ranges)
        return along is not None and "" not in along and set(along) != set(term.ranges)

    def _summand(
        self,
        target: str,
        term: Term,
        own: list[str],
        index: Indices,
        reads: dict[str, Element],
    ) -> Expression:
        """The term at an element of the target, as an expression of what is read there."""
        along = parameters_along(self.sdfg.arrays[target].shape, term.indices, term.ranges)
        if along is None:
            return self._named(Element(self._scattered(target, term), index), reads)
        kept = [p for p in along if p]
        if set(kept) != set(term.ranges):
            total = self._contract(term, kept, self.sdfg.arrays[target].dtype)
            at = [i for i, p in zip(index, along, strict=True) if p] or [sympy.Integer(0)]
            return self._named(Element(total, tuple(at)), reads)
        renamed = {p: o or "0" for p, o in zip(along, own, strict=True) if p}
        values = {p: sympy.sympify(o) for p, o in renamed.items()}
        by = {name: self._named(element.at(values), reads) for name, element in term.reads.items()}
        return substitute(term.value, {**by, **{p: index_value(v) for p, v in values.items()}})

    def _contract(
        self, term: Term, kept: list[str], dtype: dtypes.typeclass, target: str = ""
    ) -> str:
        """The sum of a term over the parameters that are not kept, in a container of the others."""
        if not target:
            extents = [term.ranges[p].end for p in kept] or [1]
            target = str(self.sdfg.add_transient("summed", extents, dtype, find_new_name=True)[0])
        letters = dict(zip(term.ranges, ascii_letters, strict=False))
        product = self._as_product(term, letters)
        if product is None:
            shape = [extent.end for extent in term.ranges.values()]
            whole = str(self.sdfg.add_transient("summands", shape, dtype, find_new_name=True)[0])
            ranges = {p: f"0:{e.end}" for p, e in term.ranges.items()}
            index = tuple(map(sympy.Symbol, term.ranges))
            self._map(whole, ranges, term.reads, term.value, Element(whole, index), info=term.info)
            product = [whole], ["".join(letters.values())]
        operands, subscripts = product
        result = "".join(letters[p] for p in kept)
        node = add_contraction(
            self.state,
            target,
            f"{','.join(subscripts)}->{result}",
            [self.read(name) for name in operands],
            self.written(target),
        )
        node.debuginfo = term.info
        return target

    def _as_product(
        self, term: Term, letters: Mapping[str, str]
    ) -> tuple[list[str], list[str]] | None:
        """Operands and their letters, if a term is the product of at most two elements."""
        factors = _factors(term.value)
        if factors is None or not set(factors) <= set(term.reads) or len(factors) > 2:
            return None
        free = iter(ascii_letters[len(letters) :])
        operands, subscripts = [], []
        for factor in factors:
            element = term.reads[factor]
            shape = self.sdfg.arrays[element.data].shape
            along = parameters_along(shape, element.indices, term.ranges)
            if along is None:
                return None
            single = along == [""]
            operands.append(element.data)
            subscripts.append(
                "" if single else "".join(letters.get(p) or next(free) for p in along)
            )
        if set("".join(subscripts)) >= set(letters.values()):
            return operands, subscripts
        return None  # a sum over a parameter that no operand has

    def _scattered(self, target: str, term: Term) -> str:
        """A container to which a term is added element by element, from zero."""
        like = self.sdfg.arrays[target]
        total = str(
            self.sdfg.add_transient("scattered", like.shape, like.dtype, find_new_name=True)[0]
        )
        ranges = {p: f"0:{e.end}" for p, e in ranges_of(like.shape).items()}
        at = Element(total, index_of(like.shape))
        if self.zeros is None:
            self.zeros = self.sdfg.add_state_before(self.state, f"{self.state.label}_zeros")
        zero, goal = Constant(0.0, self._type_of(target)), self.zeros.add_write(total)
        _add_map(self.zeros, total, ranges, {}, zero, at, {}, goal, None)
        ranges = {p: f"0:{e.end}" for p, e in term.ranges.items()}
        at = Element(total, term.indices)
        self._map(total, ranges, term.reads, term.value, at, wcr=_SUM, info=term.info)
        return total

    def _map(
        self,
        label: str,
        ranges: Mapping[str, str],
        reads: Mapping[str, Element],
        value: Expression,
        written: Element,
        *,
        wcr: str | None = None,
        info: DebugInfo | None = None,
    ) -> None:
        inputs = {element.data: self.read(element.data) for element in reads.values()}
        goal = self.written(written.data)
        _add_map(self.state, label, ranges, reads, value, written, inputs, goal, wcr, info)

    def _type_of(self, name: str) -> DType:
        dtype: DType = np.dtype(self.sdfg.arrays[name].dtype.as_numpy_dtype())
        return dtype

    def _named(self, element: Element, reads: dict[str, Element]) -> Argument:
        """An element by the name under which it is read, a new one if it is not yet."""
        dtype = self._type_of(element.data)
        for name, known in reads.items():
            if known == element:
                return Argument(name, dtype)
        name = f"__v{len(reads)}"
        reads[name] = element
        return Argument(name, dtype)

    def read(self, name: str) -> nodes.AccessNode:
        """The node from which a container is read now."""
        if name not in self._nodes:
            self._nodes[name] = self.state.add_access(name)
        return self._nodes[name]

    def written(self, name: str) -> nodes.AccessNode:
        """A new node for what is written; it is what others read then."""
        node = self.state.add_access(name)
        self._nodes[name] = node
        return node


def _add_map(
    state: SDFGState,
    label: str,
    ranges: Mapping[str, str],
    reads: Mapping[str, Element],
    value: Expression,
    written: Element,
    inputs: Mapping[str, nodes.AccessNode],
    goal: nodes.AccessNode,
    wcr: str | None,
    info: DebugInfo | None = None,
) -> None:
    state.add_mapped_tasklet(
        label,
        dict(ranges) or {"__once": "0:1"},
        {name: _memlet(element) for name, element in reads.items()},
        f"__out = {PythonPrinter().text(value)}",
        {"__out": _memlet(written, wcr)},
        external_edges=True,
        input_nodes=dict(inputs),
        output_nodes={written.data: goal},
        debuginfo=info,
    )
    goal.debuginfo = info


def _memlet(element: Element, wcr: str | None = None) -> Memlet:
    return Memlet(data=element.data, subset=", ".join(map(str, element.indices)), wcr=wcr)


def _added(summands: Sequence[Expression], dtype: DType) -> Expression:
    if not summands:
        return Constant(0.0, dtype)
    total = summands[0]
    for summand in summands[1:]:
        total = total + summand
    return total


def _factors(value: Expression) -> list[str] | None:
    """Names of the factors of a product of arguments; None for any other expression."""
    if isinstance(value, Argument):
        return [value.name]
    if isinstance(value, Operation) and value.name == "multiply":
        left, right = map(_factors, value.arguments)
        return None if left is None or right is None else left + right
    return None
