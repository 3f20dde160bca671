"""Kernels that are functions of whole arrays, each an SDFG of its own.

Operands and results are containers whose dimensions are not split, so that they have the shapes
that the function was read for. Lowering inlines the SDFG, whose maps are spaces like others.
"""

from __future__ import annotations

from collections.abc import Sequence

from dace import SDFG
from torch import fx

from distspmd.expressions.ir import Call, Expression
from distspmd.expressions.operations import DType
from distspmd.frontend.tensor_ir.indices import Array, Index, Value, element
from distspmd.frontend.tensor_ir.kernels import FUNCTION, Builder, Kernel, name_of
from distspmd.frontend.tensor_ir.matrices import stored_whole, whole_variable


def call_function(
    builder: Builder,
    node: fx.Node,
    body: SDFG,
    operands: Sequence[tuple[str, Value]],
    results: Sequence[tuple[str, Sequence[int], DType]],
) -> list[Value]:
    """Call a function.

    Args:
        builder: gets the kernels.
        node: names them.
        body: of the function.
        operands: with the containers of the body that they are.
        results: containers of the body, with shapes and types.
    """
    loads = tuple(stored_whole(builder, node, value) for _, value in operands)
    made: list[tuple[Array, Expression]] = []
    found = []
    for name, shape, dtype in results:
        core = [whole_variable(length) for length in shape]
        array = builder.container(name_of(node), core, dtype, node)
        array.written = element(array, [Index() for _ in core])
        made.append((array, Call(name, loads, dtype)))
        groups = [(u,) if u.length != 1 else () for u in core]
        places = [Index.of(group) for group in groups]
        found.append(Value(tuple(groups), element(array, places), tuple(shape)).renamed())
    inputs = tuple(name for name, _ in operands)
    label = made[0][0].name
    builder.kernels.append(Kernel((), made, label, FUNCTION, body=(body, inputs)))
    return found
