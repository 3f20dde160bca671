"""Sums of what is zero but at one place: no loops are left of them, and the values are torch's."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.expressions.ir import INT64, Constant, apply
from distspmd.frontend.tensor_ir.indices import (
    Array,
    Extent,
    Index,
    Value,
    Variable,
    at,
    split_variable,
)
from distspmd.frontend.tensor_ir.one_hot import without_picks
from distspmd.nodes.contraction import Contraction

FLOAT = np.dtype(np.float32)


def test_a_variable_counts_as_a_part_of_another() -> None:
    whole = Variable(Extent(6))
    load = Array("x", (whole.extent,), FLOAT).load([whole])
    split_variable(whole, 3)
    outer, inner = whole.leaves()
    chosen, zero = Constant(1, INT64), Constant(0.0, FLOAT)
    place = at(Index(((outer, 1),)))
    for there, left in ((load, (outer,)), (Constant(2.0, FLOAT), ())):
        picked = apply("pick", chosen, place, there, zero)
        value = Value(((outer,), (inner,)), picked, (2, 3))
        assert without_picks(value, [0]).dim(0) == left


def test_the_derivative_of_a_cross_entropy_sums_nothing_over_classes() -> None:
    held, y = nn.ParameterList([torch.randn(6, 10)]), torch.randint(0, 10, (6,))
    optimizer = torch.optim.SGD(held.parameters(), lr=0.1)

    def step(y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(held[0], y)
        loss.backward()
        optimizer.step()
        return loss

    sdfg = frontend.training_step(step, y)
    sums = [
        node
        for node, _ in sdfg.all_nodes_recursive()
        if isinstance(node, Contraction) and node.operation == "sum"
    ]
    # the normaliser, what is gathered (picked, so no loop), the mean, and how many count
    assert len(sums) == 4, [str(node) for node in sums]
    full = [name for name, array in sdfg.arrays.items() if tuple(array.shape) == (6, 10)]
    assert len(full) == 1, full  # the logits alone
