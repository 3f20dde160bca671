"""Mixed precision as CUDA has it, in steps of modules that live on a device.

A program is compared with PyTorch itself, which runs the same step on the same device.
"""

import contextlib
import os
import sys
from pathlib import Path

import torch
from mpi4py import MPI
from torch import nn

import distspmd
from distspmd import frontend

sys.path.insert(0, str(Path(__file__).parents[1]))
from training import emulated_torch
from training.emulated_autocast import autocast_of_cuda

comm = MPI.COMM_WORLD
torch.set_num_threads(1)
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", emulated_torch.NAME)
if DEVICE == emulated_torch.NAME:
    emulated_torch.register()
    casts = autocast_of_cuda
else:
    casts = contextlib.nullcontext


class Block(nn.Module):
    """What transformers consist of."""

    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.up, self.down, self.out = nn.Linear(8, 12), nn.Linear(12, 8), nn.Linear(8, 11)

    def forward(self, words):
        x = self.words(words)
        q = self.norm(x).unflatten(-1, (2, 4)).transpose(1, 2)
        mixed = nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        x = x + mixed.transpose(1, 2).flatten(2)
        return self.out(x + self.down(nn.functional.gelu(self.up(x))))


def build(half):
    """A module, its optimizer, a scaler of halves, and a step."""
    torch.manual_seed(0)
    model = Block().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(DEVICE, 2.0**10, growth_interval=2, enabled=half is torch.float16)

    def step(words, wanted, weight):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=half):
            out = model(words)
            loss = nn.functional.cross_entropy(out.flatten(0, 1), wanted.flatten()) * weight
        assert out.dtype == half
        assert loss.dtype == torch.float32, "as CUDA has it"
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return model, optimizer, scaler, step


def inputs(number):
    """Words, and a weight with which the third step overflows."""
    torch.manual_seed(number)
    words, wanted = torch.randint(0, 11, (3, 5)), torch.randint(0, 11, (3, 5))
    return [x.to(DEVICE) for x in (words, wanted, torch.tensor(1e30 if number == 2 else 1.0))]


def train(half, parameters):
    with casts():
        ours, theirs = build(half), build(half)
        sdfg = None
        if comm.rank == 0:
            sdfg = frontend.training_step(ours[3], *inputs(0))
            held = frontend.resident(sdfg, parameters=parameters)
            sdfg = distspmd.lower(sdfg, frontend.data_parallel(comm.size), arguments=held).sdfg
        with distspmd.compile(sdfg, comm, device=DEVICE) as program:
            for number in range(5):
                loss = program(*(inputs(number) if comm.rank == 0 else ()))
                if comm.rank == 0:
                    wanted = theirs[3](*inputs(number))
                    torch.testing.assert_close(loss.cpu(), wanted.cpu(), rtol=2e-2, atol=1e-2)
            program.collect()
        if comm.rank == 0:
            for a, b in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
                torch.testing.assert_close(a.cpu(), b.cpu(), rtol=3e-2, atol=2e-2)
            assert ours[2].state_dict() == theirs[2].state_dict()
            print(half, parameters, "trained on the device")


for case in sys.argv[1:]:
    name, placement = case.split(",")
    train(getattr(torch, name), placement)
