"""Training steps of a session beside torch: parameters here, on the ranks, and in files."""

import copy
import sys

import numpy as np
import torch
from torch import nn

import distspmd
from distspmd import frontend

RANKS = 2


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def step_of(net, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def batches(count):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        yield torch.randn(4, 6, generator=generator), torch.randn(4, 3, generator=generator)


def beside_torch(schedule):
    mine = module()
    other = copy.deepcopy(mine)
    makers = [torch.optim.AdamW(net.parameters(), lr=0.05) for net in (mine, other)]
    wanted = step_of(other, makers[1])
    with frontend.partitioned(step_of(mine, makers[0]), schedule) as step:
        for number, (x, y) in enumerate(batches(5)):
            loss, want = step(x, y), wanted(x, y).detach()
            assert torch.allclose(loss, want, rtol=1e-4), (loss, want)
            if number == 2:  # what is written here counts, there as here
                with torch.no_grad():
                    step.collect()
                    for net in (mine, other):
                        net[0].weight.mul_(0.5)
        step.collect()
        for here, there in zip(mine.parameters(), other.parameters(), strict=True):
            assert torch.allclose(here, there, rtol=1e-3, atol=1e-5)
        mine.eval()
        forward = frontend.partitioned(mine, schedule)
        x, _ = next(batches(1))
        with torch.no_grad():
            assert torch.allclose(forward(x), mine(x), rtol=1e-4, atol=1e-5)
        forward.close()
    return mine


def in_files(folder):
    with frontend.deferred() as values:
        net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    with frontend.partitioned(step_of(net, optimizer), frontend.fsdp(RANKS)) as step:
        frontend.initialize(step, values, seed=3)
        losses = [float(step(x, y)) for x, y in batches(2)]
        frontend.save(step, folder)
        after = [float(step(x, y)) for x, y in batches(2)]
        frontend.load(step, folder)
        again = [float(step(x, y)) for x, y in batches(2)]
    assert np.allclose(after, again, rtol=1e-6), (after, again)
    assert losses[1] != after[1]


def main():
    with distspmd.ranks(RANKS):
        for schedule in (frontend.data_parallel(RANKS), frontend.fsdp(RANKS)):
            beside_torch(schedule)
        print("steps are those of torch")
        in_files(sys.argv[1])
        print("files give back what was saved")


if __name__ == "__main__":
    main()
