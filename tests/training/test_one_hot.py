"""Sums of what is zero but at one place: no loops are left of them, and the values are torch's."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.nodes.contraction import Contraction


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
