"""Tensor parallel (Megatron): heads and hidden units over ranks, which have a part of the weights.

Forward and backward add up partial results twice a layer: at its attention and its perceptron.
"""

import torch
from learning import Training, main, stepped
from torch import nn

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, RANKS = 2, 6, 32, 4, 64, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        parts = self.qkv(self.first(x)).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


def build():
    model = Layer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return stepped(model, optimizer, nn.functional.mse_loss)


def schedule(sdfg, ranks=RANKS):
    heads = {"qkv_addmm": {"p": ranks}, "out_addmm": {"i": ranks}, "qkv_mm_backward": {"j": ranks}}
    hidden = {"up_addmm": {"o": ranks}, "down_addmm": {"i": ranks}, "up_mm_backward": {"i": ranks}}
    return heads | hidden


def batch():
    return torch.randn(2, BATCH, LENGTH, WIDTH).unbind()


EXAMPLE = Training(build, batch, schedule, {"parameters": "distributed"})

if __name__ == "__main__":
    main(__file__, EXAMPLE)
