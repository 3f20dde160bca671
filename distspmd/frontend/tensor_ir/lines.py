"""Kernels of lines: code of C++ takes all elements along a dimension, of each line apart.

Scans and orders of a line run on one rank; the lines are split over the ranks. A line is dense, so
that operands are stored anew with their line as the last dimension, which is not split.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx

from distspmd.expressions.ir import Call, Load
from distspmd.expressions.operations import DType
from distspmd.frontend.tensor_ir.indices import (
    Array,
    Extent,
    Index,
    Value,
    Variable,
    align_groups,
    element,
    move_load,
)
from distspmd.frontend.tensor_ir.kernels import LINES, Builder, Kernel, name_of

HEADERS = {
    "distspmd::lines::": "kernels/lines.hpp",
    "distspmd::fourier::": "kernels/fourier.hpp",
}
"""What code includes, below ``distspmd/``, that calls functions of these."""


def headers_of(code: str) -> list[str]:
    """What code of lines includes, below ``distspmd/``."""
    return [header for name, header in HEADERS.items() if name in code]


def run_on_lines(
    builder: Builder,
    node: fx.Node,
    operands: Sequence[Value],
    dim: int,
    results: Sequence[tuple[int, DType]],
    code: str,
) -> list[Value]:
    """Run code for each line along a dimension of values that differ only in its length.

    Args:
        builder: gets the kernel.
        node: names it.
        operands: ``_line0``, ... in the code: pointers to the first elements.
        dim: of the lines.
        results: lengths and types of the lines that are made; ``_result0``, ... in the code.
        code: of C++.

    Returns:
        the results, whose dimension of lines is where that of the operands is.
    """
    batch: list[Variable] = []
    own: list[tuple[Variable, ...]] = []
    loads: list[Load] = []
    for operand in operands:
        dims = [*operand.dims[:dim], *operand.dims[dim + 1 :]]
        array, load, over = _line(builder, node, operand, dims, operand.dims[dim])
        if loads:
            by: dict[Variable, Index] = {}
            for mine, its in zip(own, over, strict=True):
                by |= align_groups(mine, its)
            load = move_load(load, by)
        else:
            own = over
        loads.append(load)
    batch = [leaf for group in own for u in group for leaf in u.leaves()]
    made = []
    found = []
    for number, (length, dtype) in enumerate(results):
        line = Variable(Extent(length))
        line.extent.solid = True
        array = builder.container(name_of(node), [*batch, line], dtype, node)
        places = [Index(((u, 1),)) for u in batch]
        array.written = element(array, [*places, Index()])
        made.append((array, Call(f"{number}:{code}", tuple(loads), dtype)))
        fresh = Variable(line.extent)
        groups = [*own[:dim], (fresh,), *own[dim:]]
        shape = [*operands[0].shape[:dim], length, *operands[0].shape[dim + 1 :]]
        found.append(Value(tuple(groups), array.load([*batch, fresh]), tuple(shape)).renamed())
    builder.kernels.append(Kernel(tuple(batch), list(made), made[0][0].name, LINES))
    return found


def _line(
    builder: Builder,
    node: fx.Node,
    value: Value,
    batch: Sequence[tuple[Variable, ...]],
    line: tuple[Variable, ...],
) -> tuple[Array, Load, list[tuple[Variable, ...]]]:
    """A value stored with its lines dense; the first element of one, and the variables of which."""
    length = 1
    for u in line:
        length *= u.length
    kept = [leaf for group in batch for u in group for leaf in u.leaves()]
    place = Variable(Extent(length))
    place.extent.solid = True
    array = builder.container(f"{name_of(node)}_line", [*kept, place], value.dtype, node)
    written = [*(Index(((u, 1),)) for u in kept), Index.of([x for u in line for x in u.leaves()])]
    array.written = element(array, written)
    builder.kernels.append(Kernel(value.variables, [(array, value.expression)], array.name))
    fresh = {u: Variable(u.extent) for u in kept}
    load = element(array, [*(Index(((fresh[u], 1),)) for u in kept), Index()])
    groups = [tuple(fresh[leaf] for u in group for leaf in u.leaves()) for group in batch]
    return array, load, groups
