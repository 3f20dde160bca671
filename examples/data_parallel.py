"""Data parallel: each rank has all parameters and a part of the batch; gradients are added up.

The preset splits what has a batch; all else follows. Each gradient is reduced once: to all ranks,
which all do the whole update.
"""

import torch
from learning import Training, main, stepped
from torch import nn

from distspmd import frontend

BATCH, INPUTS, HIDDEN, CLASSES, RANKS = 32, 64, 100, 10, 4


def build():
    model = nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    return stepped(model, nn.functional.cross_entropy, torch.optim.Adam, lr=0.01)


def batch():
    return torch.randn(BATCH, INPUTS), torch.randint(0, CLASSES, (BATCH,))


EXAMPLE = Training(build, batch, frontend.data_parallel(RANKS))

if __name__ == "__main__":
    main(__file__, EXAMPLE)
