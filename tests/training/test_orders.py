"""Temporaries in the order that their readers want: seen in the products that are left."""

from __future__ import annotations

import torch
from dace import SDFG
from torch import Tensor, nn

from distspmd import frontend
from distspmd.nodes import contraction_gemm
from distspmd.nodes.contraction import PACKED, Contraction, fastest_implementation, windows


class Attention(nn.Module):
    """Heads in a dimension of their own, as most write it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts
        mixed = torch.softmax(q @ k.transpose(-2, -1), -1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def calls(sdfg: SDFG) -> dict[str, str]:
    """Of each product the letters in loops around the calls of BLAS; none, if it is packed."""
    found = {}
    for node, state in sdfg.all_nodes_recursive():
        if isinstance(node, Contraction):
            product = (
                contraction_gemm.largest(windows(node, state)) if node.reduced is None else None
            )
            if product is not None:
                is_packed = fastest_implementation(node, state) == PACKED
                found[node.label] = "" if is_packed else product.loops
    return found


def test_only_products_of_heads_are_in_loops() -> None:
    torch.manual_seed(0)
    model, x = Attention(64, 4), torch.randn(3, 32, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    loops = calls(frontend.training_step(step, x))
    heads = {name for name, around in loops.items() if around}
    assert heads == {name for name in loops if "matmul" in name or "bmm" in name}
    assert len(heads) == 6
    assert all(len(loops[name]) == 2 for name in heads)
    assert len(loops) == 6 + 5  # forward, weights, and the operand of the second layer
