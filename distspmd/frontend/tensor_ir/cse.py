"""Kernels that compute the same elements become one, whatever order they store them in.

before -> after:  ``t[i, j] = f(x[i, j]); u[j, i] = f(x[i, j])``  ->  ``t``, read as ``t[i, j]`` for
``u[j, i]``. A product of matrices reads an operand in either order, so a transposed copy is waste.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Expression, IndexValue, Load
from distspmd.frontend.tensor_ir.indices import (
    Array,
    Crossing,
    Index,
    Variable,
    element,
    replace_loads,
)
from distspmd.frontend.tensor_ir.kernels import Kernel, current_indices


def settle(kernels: Iterable[Kernel]) -> None:
    """Give arrays, loads and kernels one dimension for each part into which one was split.

    No dimension may be split afterwards. Variables of one value count nothing in loads: a view
    may have dropped them.
    """
    arrays: dict[str, Array] = {}
    done: dict[int, Expression] = {}

    def settled(load: Load) -> Load:
        arrays[load.array.name] = load.array
        return element(load.array, list(map(_without_ones, current_indices(load))))

    for kernel in kernels:
        try:
            kernel.results = [(a, replace_loads(e, settled, done)) for a, e in kernel.results]
        except Crossing as crossing:
            raise UnsupportedProgram(f"{kernel.results[0][0].name!r}: {crossing}") from None
        arrays.update({array.name: array for array, _ in kernel.results})
        if kernel.picked:
            kernel.picked = kernel.picked[0], settled(kernel.picked[1])
        kernel.variables, kernel.reduced = _leaves(kernel.variables), _leaves(kernel.reduced)
    for array in arrays.values():
        if array.written is not None:
            array.written = settled(array.written)
        array.extents = tuple(v.extent for v in _leaves(map(Variable, array.extents)))


def _without_ones(index: Index) -> Index:
    return replace(index, terms=tuple((v, f) for v, f in index.terms if v.length != 1))


def _leaves(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    return tuple(leaf for v in variables for leaf in v.leaves())


def share_results(kernels: Sequence[Kernel], others: Iterable[Kernel]) -> list[Kernel]:
    """Without kernels whose results another one has; their readers, ``others`` too, read that."""
    known: dict[Any, tuple[Array, list[int]]] = {}
    replaced: dict[str, tuple[Array, list[int]]] = {}
    parts: dict[Any, int] = {}
    done: dict[int, Expression] = {}

    def elsewhere(load: Load) -> Load:
        if load.array.name not in replaced:
            return load
        array, order = replaced[load.array.name]
        return element(array, [load.index[place] for place in order])

    left = []
    for kernel in kernels:
        _reread(kernel, elsewhere, done)
        key, numbers = _described(kernel, parts)
        array = kernel.results[0][0]
        if array.written is not None:
            left.append(kernel)
            continue
        first, order = known.setdefault(key, (array, numbers))
        if first is array or array.is_argument or len(kernel.results) != 1:
            left.append(kernel)
        else:
            replaced[array.name] = first, [numbers.index(number) for number in order]
    for kernel in others:
        _reread(kernel, elsewhere, done)
    return left


def _reread(kernel: Kernel, replace: Callable[[Load], Load], done: dict[int, Expression]) -> None:
    kernel.results = [(a, replace_loads(e, replace, done)) for a, e in kernel.results]
    if kernel.picked:
        kernel.picked = kernel.picked[0], replace(kernel.picked[1])


def _described(kernel: Kernel, parts: dict[Any, int]) -> tuple[Any, list[int]]:
    """What a kernel computes, whatever its variables are called and however they are ordered.

    Beside it the number of each of its variables there; ``parts`` numbers expressions.
    """
    numbers: dict[Variable, int] = {}
    known: dict[int, int] = {}

    def index(index: Index) -> Any:
        terms = tuple((numbers.setdefault(v, len(numbers)), f) for v, f in index.terms)
        return terms, index.constant, index.divisor, index.within

    def visit(node: Expression) -> int:
        if id(node) not in known:
            key: Any
            if isinstance(node, Load):
                key = node.array.name, tuple(map(index, node.index))
            elif isinstance(node, IndexValue):
                key = index(Index(node.terms, node.constant)), node.dtype
            else:
                key = type(node), node.label, tuple(map(visit, node.arguments))
            known[id(node)] = parts.setdefault(key, len(parts))
        return known[id(node)]

    made = [visit(expression) for _, expression in kernel.results]
    own = [numbers.setdefault(v, len(numbers)) for v in kernel.variables]
    reduced = sorted(numbers.setdefault(v, len(numbers)) for v in kernel.reduced)
    lengths = tuple(v.length for v in numbers)
    picked = kernel.picked and numbers.get(kernel.picked[0], -1)
    stored = tuple(array.dtype for array, _ in kernel.results)
    key = tuple(made), stored, kernel.operation, tuple(reduced), lengths, picked
    return key, own
