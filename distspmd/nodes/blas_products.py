"""Products of matrices and vectors: as one map, for the analysis, and as a call of BLAS.

DaCe's own expansions (2.0.0b1) drop dimensions of one element before they distinguish a matrix from
a vector, derive the stride between the matrices of a batch from their extents, mistake a tile of
one column for a transposed one, and call functions for complex vectors that BLAS does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dace
import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.libraries import blas
from dace.libraries.blas.environments import openblas
from dace.sdfg import nodes
from dace.subsets import Subset
from dace.transformation.transformation import ExpandTransformation

from distspmd.errors import UnsupportedProgram
from distspmd.nodes.contraction_operands import Einsum, Operand

LOOPS, CALL = "distspmd-loops", "distspmd-blas"
"""Names of the two expansions at DaCe's library nodes."""

_LETTERS: dict[object, str] = {
    dace.float32: "s",
    dace.float64: "d",
    dace.complex64: "c",
    dace.complex128: "z",
}
_CONNECTORS: dict[Any, tuple[str, str, str]] = {
    blas.MatMul: ("_a", "_b", "_c"),
    blas.Gemm: ("_a", "_b", "_c"),
    blas.BatchedMatMul: ("_a", "_b", "_c"),
    blas.Gemv: ("_A", "_x", "_y"),
    blas.Dot: ("_x", "_y", "_result"),
}


@dataclass(frozen=True)
class _Operand:
    """An operand: for each dimension its index, the extent of the window, the storage's stride."""

    connector: str
    dtype: dtypes.typeclass
    indices: tuple[str, ...]
    extents: tuple[sympy.Expr, ...]
    strides: tuple[sympy.Expr, ...]

    def stride(self, index: str) -> sympy.Expr:
        return self.strides[self.indices.index(index)]

    def extent(self, index: str) -> sympy.Expr:
        return self.extents[self.indices.index(index)]


@dataclass(frozen=True)
class _Product:
    """``c[.., m, n] += a[.., m, k] * b[.., k, n]``, with letters left out for vectors."""

    a: _Operand
    b: _Operand
    c: _Operand

    @classmethod
    def of(cls, node: nodes.LibraryNode, state: SDFGState) -> _Product:
        """The product that a node computes, by NumPy's rules.

        Raises:
            UnsupportedProgram: the node has other operands, or windows that fit no product.
        """
        names = _CONNECTORS[type(node)]
        edges = [
            *((edge.dst_conn, edge) for edge in state.in_edges(node)),
            *((edge.src_conn, edge) for edge in state.out_edges(node)),
        ]
        given = {name: edge for name, edge in edges if not edge.data.is_empty()}
        if len(given) != len(edges) or set(given) != set(names):
            raise UnsupportedProgram(
                f"the product {node.label!r} has the operands {', '.join(given)}; only "
                f"{', '.join(names)} can be partitioned."
            )
        sizes = [tuple(map(sympy.sympify, given[name].data.subset.size())) for name in names]
        rank = max(len(size) for size in sizes[:2])
        batch = tuple(f"b{d}" for d in range(max(0, rank - 2)))
        left = (*batch, "m", "k")[-len(sizes[0]) :] if len(sizes[0]) > 1 else ("k",)
        right = (*batch, "k", "n")[-len(sizes[1]) :] if len(sizes[1]) > 1 else ("k",)
        out = (*batch, *(index for index in ("m", "n") if index in (*left, *right)))
        if getattr(node, "transA", False):
            left = (*left[:-2], *left[:-3:-1])
        if getattr(node, "transB", False):
            right = (*right[:-2], *right[:-3:-1])
        operands = []
        for name, size, indices in zip(names, sizes, (left, right, out or ("one",)), strict=True):
            if len(size) != len(indices):
                shapes = ", ".join(str(list(map(str, size))) for size in sizes)
                raise UnsupportedProgram(
                    f"the product {node.label!r} has operands and a result of the shapes {shapes}, "
                    "which fit no product of matrices and vectors."
                )
            storage = state.sdfg.arrays[given[name].data.data]
            strides = tuple(map(sympy.sympify, storage.strides))
            operands.append(_Operand(name, storage.dtype, indices, size, strides))
        return cls(*operands)

    @property
    def batch(self) -> tuple[str, ...]:
        return tuple(index for index in self.c.indices if index.startswith("b"))

    @property
    def depth(self) -> sympy.Expr:
        return self.a.extent("k")

    @property
    def on_blas(self) -> bool:
        """Whether BLAS has the type and can walk the storage."""
        if not self.a.dtype == self.b.dtype == self.c.dtype or self.c.dtype not in _LETTERS:
            return False
        return all(
            any(operand.stride(index) == 1 for index in ("m", "k", "n") if index in operand.indices)
            for operand in (self.a, self.b, self.c)
            if len(set(operand.indices) & {"m", "k", "n"}) == 2
        )


def einsum_of(node: nodes.LibraryNode, state: SDFGState) -> tuple[Einsum, float] | None:
    """The product of a node as a contraction, and its factor; None if it is none of numbers."""
    if type(node) not in _CONNECTORS or _conjugates(node):
        return None
    try:
        product = _Product.of(node, state)
    except UnsupportedProgram:
        return None
    factors = (complex(getattr(node, name, one)) for name, one in (("alpha", 1), ("beta", 0)))
    alpha, beta = factors
    if alpha.imag or beta:
        return None
    names = {index: chr(ord("a") + int(index[1:])) for index in product.batch}
    names |= {index: index for index in ("m", "n", "k")}
    operands = []
    for one in (product.a, product.b, product.c):
        dimensions = tuple(((names[index], 1),) for index in one.indices if index != "one")
        zeros = tuple(sympy.Integer(0) for _ in one.extents)
        operands.append(
            Operand(one.connector, one.dtype, dimensions, zeros, one.extents, one.strides)
        )
    letters = "".join(names[index] for index in product.c.indices if index != "one")
    return Einsum(tuple(operands[:2]), operands[2], f"{letters}k", "k"), alpha.real


def can_call_blas(node: nodes.LibraryNode, state: SDFGState) -> bool:
    """Whether :data:`CALL` can replace a node."""
    try:
        return _Product.of(node, state).on_blas
    except UnsupportedProgram:
        return False


@dace.library.expansion
class ExpandToLoops(ExpandTransformation):
    """One map over all indices, after one that sets the result to zero."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> SDFG:
        """Replace the node by a nested SDFG."""
        product, alpha = _Product.of(node, state), getattr(node, "alpha", 1)
        inner = SDFG(f"{node.label}_loops")
        for operand in (product.a, product.b, product.c):
            inner.add_array(
                operand.connector, operand.extents, operand.dtype, strides=operand.strides
            )
        order = [*(i for i in product.c.indices if i != "one"), "k"]
        names = {index: f"__i{d}" for d, index in enumerate(order)}
        extents = {i: product.depth if i == "k" else product.c.extent(i) for i in order}
        ranges: dict[str, str | Subset] = {names[i]: f"0:{extents[i]}" for i in order}
        begin = inner.add_state("begin")
        begin.add_mapped_tasklet(
            "zero",
            {p: r for p, r in ranges.items() if p != names["k"]} or {"__once": "0:1"},
            {},
            "__out = 0",
            {"__out": _element(product.c, names)},
            external_edges=True,
        )
        inner.add_state_after(begin, "multiply").add_mapped_tasklet(
            "multiply",
            ranges,
            {"__x": _element(product.a, names), "__y": _element(product.b, names)},
            "__out = __x * __y" if alpha == 1 else f"__out = {alpha} * __x * __y",
            {"__out": _element(product.c, names, wcr="lambda x, y: x + y")},
            external_edges=True,
        )
        return inner


def _element(operand: _Operand, names: dict[str, str], wcr: str | None = None) -> Memlet:
    """The element at the indices; a batch of one element is broadcast."""
    subset = ", ".join(
        "0" if index == "one" or (index.startswith("b") and extent == 1) else names[index]
        for index, extent in zip(operand.indices, operand.extents, strict=True)
    )
    return Memlet(data=operand.connector, subset=subset, wcr=wcr)


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """A call of ``gemm`` (in a loop over the batch), ``gemv`` or ``dot``."""

    environments = [openblas.OpenBLAS]  # noqa: RUF012

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
        """Replace the node by a tasklet; all operands are pointers, also those of one element."""
        product = _Product.of(node, state)
        pointer = dtypes.pointer(product.c.dtype)
        return nodes.Tasklet(
            node.name,
            dict.fromkeys(node.in_connectors, pointer),
            dict.fromkeys(node.out_connectors, pointer),
            _code(product, getattr(node, "alpha", 1), getattr(node, "beta", 0), _conjugates(node)),
            language=dtypes.Language.CPP,
        )


def _conjugates(node: nodes.LibraryNode) -> bool:
    return bool(getattr(node, "conjugate", False))


def _code(product: _Product, alpha: complex, beta: complex, conjugate: bool) -> str:
    a, b, c = product.a, product.b, product.c
    factors, declared = _factors(c.dtype, alpha, beta)
    if "m" in c.indices and "n" in c.indices:
        call = _gemm(product, *factors)
    elif "m" in c.indices:
        call = _gemv(a, "m", b, c, *factors)
    elif "n" in c.indices:
        call = _gemv(b, "n", a, c, *factors)
    else:
        call = _dot(product, conjugate)
    for index in reversed(product.batch):
        end = _text(c.extent(index))
        call = f"for (int64_t __{index} = 0; __{index} < {end}; ++__{index}) {{\n{call}\n}}"
    return declared + call


def _factors(dtype: dtypes.typeclass, alpha: complex, beta: complex) -> tuple[tuple[str, str], str]:
    """How to pass the factors, and their declaration: complex ones go by address."""
    is_complex = dtype in (dace.complex64, dace.complex128)
    declared = ""
    for name, value in (("alpha", complex(alpha)), ("beta", complex(beta))):
        number = f"{value.real!r}, {value.imag!r}" if is_complex else f"{value.real!r}"
        declared += f"const {dtype.ctype} __{name}({number});\n"
    return ("&__alpha", "&__beta") if is_complex else ("__alpha", "__beta"), declared


def _gemm(product: _Product, alpha: str, beta: str) -> str:
    a, b, c, rows, columns = product.a, product.b, product.c, "m", "n"
    if c.stride(columns) != 1:  # then the transposed result has neighbours in its rows
        a, b, rows, columns = b, a, columns, rows
    sizes = [_text(n) for n in (c.extent(rows), c.extent(columns), product.depth)]
    arguments = [
        *(_order(a, rows, "k"), _order(b, "k", columns)),
        *(*sizes, alpha.lstrip("&"), _at(a, product), _leading(a, rows, "k")),
        *(_at(b, product), _leading(b, "k", columns)),
        *(beta.lstrip("&"), _at(c, product), _leading(c, rows, columns)),
    ]
    return f"distspmd::gemm<{c.dtype.ctype}>({', '.join(arguments)});"


def _gemv(a: _Operand, rows: str, x: _Operand, y: _Operand, alpha: str, beta: str) -> str:
    stored = (rows, "k") if a.stride("k") == 1 else ("k", rows)
    arguments = [
        *("CblasRowMajor", _order(a, rows, "k"), *(_text(a.extent(i)) for i in stored)),
        *(alpha, a.connector, _leading(a, rows, "k"), x.connector, _text(x.stride("k"))),
        *(beta, y.connector, _text(y.stride(rows))),
    ]
    return f"cblas_{_LETTERS[y.dtype]}gemv({', '.join(arguments)});"


def _dot(product: _Product, conjugate: bool) -> str:
    a, b, c = product.a, product.b, product.c
    arguments = f"{_text(product.depth)}, {a.connector}, {_text(a.stride('k'))}, "
    arguments += f"{b.connector}, {_text(b.stride('k'))}"
    letter = _LETTERS[c.dtype]
    if letter in "cz":
        kind = "dotc" if conjugate else "dotu"
        return f"cblas_{letter}{kind}_sub({arguments}, {c.connector});"
    return f"*{c.connector} = cblas_{letter}dot({arguments});"


def _order(operand: _Operand, rows: str, columns: str) -> str:
    return "CblasNoTrans" if operand.stride(columns) == 1 else "CblasTrans"


def _leading(operand: _Operand, rows: str, columns: str) -> str:
    """Distance between the rows of the storage, or between its columns if these are contiguous.

    BLAS wants at least the extent of a row; the storage has less only where there is one row.
    """
    if operand.stride(columns) != 1:
        rows, columns = columns, rows
    least = sympy.Max(operand.stride(rows), operand.extent(columns))
    if least.is_Integer:
        return str(least)
    ends = (_text(n) for n in (operand.stride(rows), operand.extent(columns)))
    return f"std::max<int64_t>({', '.join(ends)})"


def _at(operand: _Operand, product: _Product) -> str:
    """Address of the matrix at the indices of the batch."""
    terms: Sequence[str] = [
        f"__{index} * ({_text(operand.stride(index))})"
        for index in product.batch
        if index in operand.indices and operand.extent(index) != 1
    ]
    return " + ".join([operand.connector, *terms])


def _text(number: sympy.Expr) -> str:
    return str(sym2cpp(number))


blas.MatMul.register_implementation(LOOPS, ExpandToLoops)
for _kind in _CONNECTORS:
    _kind.register_implementation(CALL, ExpandToCall)
