"""Tensor parallel (Megatron): heads and hidden units over ranks; two sums a layer, each way."""

from learning import Training, main, stepped
from torch import nn, optim, randn

from distspmd import frontend

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, RANKS = 2, 6, 32, 4, 64, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).view(BATCH, LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


def build():
    return stepped(Layer(), nn.functional.mse_loss, optim.SGD, lr=0.1, momentum=0.9)


def batch():
    return randn(2, BATCH, LENGTH, WIDTH).unbind()


EXAMPLE = Training(build, batch, frontend.megatron(RANKS))

if __name__ == "__main__":
    main(__file__, EXAMPLE)
