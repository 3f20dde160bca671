"""The order in which temporaries store their dimensions, chosen for their writers and readers.

PyTorch stores results in the order of the operands, or of the operator's own. Here, dimensions keep
their meaning, and only the storage changes.

before -> after:  ``y[b, h, s, d] = ..; z[b, s, o] = sum y[b, h, s, d] * w[o, h, d]``, which is a
product for each ``h``  ->  ``y[b, s, h, d]`` in memory, and one product of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import dace
import sympy

from distspmd.expressions.ir import Expression, Load
from distspmd.frontend.tensor_ir.indices import (
    Array,
    Index,
    Variable,
    element,
    replace_loads,
)
from distspmd.frontend.tensor_ir.kernels import WHOLE, Kernel, distinct, is_product, reach
from distspmd.nodes import contraction_gemm
from distspmd.nodes.contraction_gemm import Gemm
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.nodes.contraction_packed import PackedProduct
from distspmd.nodes.subscripts import Dimension, Subscripts
from distspmd.plans.heuristics import HEURISTICS

Order: TypeAlias = tuple[int, ...]
"""For each dimension of the storage, outermost first, the dimension that it holds."""

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def arrange(kernels: Sequence[Kernel]) -> None:
    """Choose the orders of all temporaries, and rewrite arrays and loads, in place.

    Kernels are settled (see :func:`distspmd.frontend.tensor_ir.cse.settle`).
    """
    orders = _Orders()
    users: dict[Array, list[Kernel]] = {}
    for kernel in kernels:
        for array in dict.fromkeys(_arrays(kernel)):
            users.setdefault(array, []).append(kernel)
    free = [a for a in users if not (a.is_argument or a.written) and len(a.extents) > 1]
    for _ in range(HEURISTICS.storage_sweeps):
        if not [array for array in free if orders.improve(array, users[array])]:
            break
    _rewrite(kernels, orders.chosen)


def _arrays(kernel: Kernel) -> Iterator[Array]:
    yield from (array for array, _ in kernel.results)
    yield from (load.array for load in kernel.read)


def _rewrite(kernels: Iterable[Kernel], chosen: dict[Array, Order]) -> None:
    done: dict[int, Expression] = {}

    def reordered(load: Load) -> Load:
        order = chosen.get(load.array)
        return element(load.array, [load.index[d] for d in order]) if order else load

    for kernel in kernels:
        kernel.results = [(a, replace_loads(e, reordered, done)) for a, e in kernel.results]
        if kernel.picked:
            kernel.picked = kernel.picked[0], reordered(kernel.picked[1])
    for array, order in chosen.items():
        array.extents = tuple(array.extents[d] for d in order)
        array.order = order


@dataclass
class _Orders:
    """The orders chosen so far, and what kernels take with them, in nanoseconds, about."""

    chosen: dict[Array, Order] = field(default_factory=dict)
    _known: dict[Any, float] = field(default_factory=dict)

    def of(self, array: Array) -> Order:
        return self.chosen.get(array) or tuple(range(len(array.extents)))

    def improve(self, array: Array, users: Sequence[Kernel]) -> bool:
        """Take the best order for an array, given those of the others; whether it is another."""
        before = self.of(array)
        best, least = before, math.inf
        for order in dict.fromkeys([before, *self._candidates(array, users)]):
            self.chosen[array] = order
            taken = sum(map(self.nanoseconds, users))
            if taken < 0.99 * least:
                best, least = order, taken
        self.chosen[array] = best
        return best != before

    def _candidates(self, array: Array, users: Sequence[Kernel]) -> Iterator[Order]:
        """Orders in which users run, and in which they read other arrays."""
        for kernel in users:
            kept, gone = kernel.variables, kernel.reduced
            sequences = [kept + gone, gone + kept]
            others = [load for load in kernel.read if load.array is not array]
            sequences += [self._variables(load) + kept + gone for load in others]
            for place in self._places(array, kernel):
                for sequence in sequences:
                    rank = {v: n for n, v in reversed(list(enumerate(sequence)))}
                    keys = [rank.get(v, -1) if v else -1 for v in place]
                    yield tuple(sorted(range(len(place)), key=keys.__getitem__))

    def _variables(self, load: Load) -> tuple[Variable, ...]:
        stored = (load.index[d] for d in self.of(load.array))
        return tuple(v for index in stored for v, _ in index.terms)

    @staticmethod
    def _places(array: Array, kernel: Kernel) -> Iterator[tuple[Variable | None, ...]]:
        """The variable of each dimension of an array, wherever a kernel writes or reads it."""
        if any(other is array for other, _ in kernel.results):
            yield kernel.variables
        for load in kernel.read:
            if load.array is array:
                yield tuple(i.terms[0][0] if len(i.terms) == 1 else None for i in load.index)

    # -- what kernels take ----------------------------------------------------------------------

    def nanoseconds(self, kernel: Kernel) -> float:
        """What a kernel takes, about."""
        key = id(kernel), tuple(self.of(array) for array in _arrays(kernel))
        if key not in self._known:
            if kernel.operation is None:
                self._known[key] = self._map(kernel)
            elif kernel.operation in WHOLE:
                self._known[key] = 0.0  # its arrays stay as they are
            else:
                self._known[key] = self._contraction(kernel)
        return self._known[key]

    def _map(self, kernel: Kernel) -> float:
        """Loops in the order of the first result, over what is written and read."""
        own = kernel.variables
        stored = [
            list(own) if array.written else [own[d] for d in self.of(array)]
            for array, _ in kernel.results
        ]
        inner = next((v for v in reversed(stored[0]) if v.length > 1), None)
        places = [Index(((order[-1], 1),)) if order else Index() for order in stored]
        last = [_steps(place, inner) for place in places]
        last += [self._moves(load, inner) for load in distinct(kernel.read)]
        return math.prod(v.length for v in kernel.variables) * sum(last)

    def _moves(self, load: Load, inner: Variable | None) -> float:
        """What a load takes for each iteration of the innermost loop."""
        if not any(v is inner for index in load.index for v, _ in index.terms):
            return 0.0
        return _steps(load.index[self.of(load.array)[-1]], inner)

    def _contraction(self, kernel: Kernel) -> float:
        einsum = self._einsum(kernel)
        count = math.prod(int(einsum.extents[x]) for x in einsum.letters)
        found = contraction_gemm.largest(einsum) if is_product(kernel) else None
        packed = PackedProduct.of(einsum) if is_product(kernel) else None
        if packed is not None and packed.is_worth_packing(found):
            return packed.copied_nanoseconds + self._multiplied(packed, einsum, count)
        if found is None:
            return self._nest(kernel, einsum, count)
        return self._multiplied(found, einsum, count)

    @staticmethod
    def _multiplied(product: Gemm | PackedProduct, einsum: Einsum, count: int) -> float:
        sizes = [
            math.prod(int(einsum.extents[x]) for x in run)
            for run in (product.rows, product.columns, product.depth)
        ]
        edges = 1 + sum(HEURISTICS.blas_edge / size for size in sizes)
        calls = count / math.prod(sizes) * HEURISTICS.blas_call
        return calls + count / HEURISTICS.blas_products * edges

    def _nest(self, kernel: Kernel, einsum: Einsum, count: int) -> float:
        """Loops: neighbours in the result, or else neighbours in what is reduced."""
        kept = [x for x in einsum.letters if x not in einsum.reduced]
        candidates = [*kept[-1:], *einsum.reduced[-1:]]
        least = math.inf
        for inner in candidates:
            steps = [o.steps[inner] for o in einsum.operands if inner in o.steps]
            near, far = HEURISTICS.near_element, HEURISTICS.far_element
            taken = sum(near if step == 1 else far for step in steps)
            taken += 0 if einsum.result.steps.get(inner, 1) == 1 else far
            least = min(least, taken)
        picked = kernel.picked[0].length if kernel.picked else 1
        return count / picked * (least if candidates else 0.0)

    def _einsum(self, kernel: Kernel) -> Einsum:
        """The contraction as the node has it, in the orders chosen."""
        letters = dict(zip((*kernel.variables, *kernel.reduced), _LETTERS, strict=False))
        ((array, _),) = kernel.results
        written = [kernel.variables[d] for d in self.of(array)]
        operands = []
        for load in distinct(kernel.read):
            order = self.of(load.array)
            extents = [Variable(load.array.extents[d]).length for d in order]
            indices = [load.index[d] for d in order]
            terms = [tuple((letters[v], f) for v, f in index.terms) for index in indices]
            operands.append(_operand(terms, extents, list(map(reach, indices))))
        result = _operand([((letters[v], 1),) for v in written], [v.length for v in written])
        used = Subscripts(tuple(o.dimensions for o in operands), result.dimensions)
        return Einsum(tuple(operands), result, used.letters, used.reduced)


def _steps(index: Index, inner: Variable | None) -> float:
    """What it takes to follow an innermost loop, where an index is that of the last dimension."""
    near = [(v, abs(f)) for v, f in index.terms] == [(inner, 1)]
    return HEURISTICS.near_element if near else HEURISTICS.far_element


def _operand(
    terms: Sequence[Dimension], extents: Sequence[int], windows: Sequence[int] | None = None
) -> Operand:
    """A window, by default all, of storage of these extents."""
    strides = [sympy.Integer(math.prod(extents[d + 1 :])) for d in range(len(extents))]
    begins = tuple(sympy.Integer(0) for _ in extents)
    sizes = tuple(map(sympy.Integer, windows or extents))
    any_type: Any = dace.float32
    return Operand("", any_type, tuple(terms), begins, sizes, tuple(strides))
