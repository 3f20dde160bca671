"""Kernels that call LAPACK on matrices, each of which is whole on one rank.

Dimensions of a stack are those of the iteration space. A matrix is stored in dimensions of its own,
which are not split, so that operands and results are containers of the node
(:class:`distspmd.nodes.lapack.Lapack`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
from distspmd.frontend.tensor_ir.kernels import LAPACK, Builder, Kernel, name_of


@dataclass(frozen=True)
class Routine:
    """A function of LAPACK, as the node has it.

    Attributes:
        function: a row of :data:`distspmd.nodes.lapack.FUNCTIONS`.
        subscripts: the letters of one matrix each.
        options: arguments of the function's template.
    """

    function: str
    subscripts: str
    options: str = ""

    @classmethod
    def of(cls, call: Call) -> Routine:
        """What a result of a kernel comes from."""
        return cls(*str(call.label[0]).split("|")[1:])

    def label(self, number: int) -> str:
        """The name of its result of a number."""
        return "|".join([str(number), self.function, self.subscripts, self.options])

    @property
    def ranks(self) -> tuple[list[int], list[int]]:
        """The numbers of dimensions of one operand each, and of one result each."""
        before, after = (side.split(",") for side in self.subscripts.split("->"))
        return [len(term) for term in before], [len(term) for term in after]


def call_lapack(
    builder: Builder,
    node: fx.Node,
    routine: Routine,
    operands: Sequence[Value],
    results: Sequence[tuple[Sequence[int], DType]],
) -> list[Value]:
    """Call a function for each matrix of stacks, all of the same extents.

    Args:
        builder: gets the kernels.
        node: names them.
        routine: what is called.
        operands: stacks of matrices, whose last dimensions are those of one.
        results: the shapes of one matrix each, and their types; the last one is what LAPACK
            reports (:data:`distspmd.nodes.lapack.INFO`).

    Returns:
        stacks of results.
    """
    own: list[tuple[Variable, ...]] | None = None
    loads: list[Load] = []
    for value, rank in zip(operands, routine.ranks[0], strict=True):
        load, over = _stored(builder, node, value, rank)
        if own is None:
            own = over
        else:
            by: dict[Variable, Index] = {}
            for mine, its in zip(own, over, strict=True):
                by |= align_groups(mine, its)
            load = move_load(load, by)
        loads.append(load)
    assert own is not None
    batch = [leaf for group in own for u in group for leaf in u.leaves()]
    lead = operands[0].shape[: len(own)]
    made, found = [], []
    for number, (shape, dtype) in enumerate(results):
        core = [whole_variable(length) for length in shape]
        array = builder.container(name_of(node), [*batch, *core], dtype, node)
        array.written = element(array, [*_places(batch), *(Index() for _ in core)])
        made.append((array, Call(routine.label(number), tuple(loads), dtype)))
        groups = [(u,) if u.length != 1 else () for u in core]
        places = [*_places(batch), *(Index.of(group) for group in groups)]
        value = Value((*own, *groups), element(array, places), (*lead, *shape))
        found.append(value.renamed())
    builder.kernels.append(Kernel(tuple(batch), list(made), made[0][0].name, LAPACK))
    return found


def _places(variables: Sequence[Variable]) -> list[Index]:
    return [Index(((u, 1),)) for u in variables]


def whole_variable(length: int) -> Variable:
    """A variable of a dimension that is not split."""
    variable = Variable(Extent(length))
    variable.extent.solid = True
    return variable


def stored_whole(builder: Builder, node: fx.Node, value: Value) -> Load:
    """A value in an array of its own shape, that of a function or anew: its first element."""
    load = value.expression
    if isinstance(load, Load) and _is_as_stored(value, load):
        return element(load.array, [Index() for _ in load.index])
    return _stored(builder, node, value, len(value.dims))[0]


def _is_as_stored(value: Value, load: Load) -> bool:
    """Whether a value is an array, whose dimensions nobody splits, from the first to the last."""
    extents = load.array.extents
    return (
        load.array.written is not None
        and [extent.length for extent in extents] == list(value.shape)
        and all(extent.find().solid for extent in extents)
        and all(
            index == Index(tuple((v, 1) for v in own))
            for index, own in zip(load.index, value.dims, strict=True)
        )
    )


def _stored(
    builder: Builder, node: fx.Node, value: Value, rank: int
) -> tuple[Load, list[tuple[Variable, ...]]]:
    """A stack stored anew: the first element of a matrix, and the variables of which."""
    lead = len(value.dims) - rank
    kept = [leaf for group in value.dims[:lead] for u in group for leaf in u.leaves()]
    core = [[leaf for u in group for leaf in u.leaves()] for group in value.dims[lead:]]
    own = [whole_variable(math.prod(u.length for u in group)) for group in core]
    array: Array = builder.container(f"{name_of(node)}_of", [*kept, *own], value.dtype, node)
    array.written = element(array, [*_places(kept), *map(Index.of, core)])
    builder.kernels.append(Kernel(value.variables, [(array, value.expression)], array.name))
    fresh = {u: Variable(u.extent) for u in kept}
    load = element(array, [*_places([fresh[u] for u in kept]), *(Index() for _ in own)])
    groups = [
        tuple(fresh[leaf] for u in group for leaf in u.leaves()) for group in value.dims[:lead]
    ]
    return load, groups
