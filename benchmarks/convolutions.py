"""Convolutions beside PyTorch: single layers, and ResNet18, forward and one training step.

``python benchmarks/convolutions.py [--threads 1 2] [--only forward] [--processor]`` starts
a process for each number of threads. In it, our program on one rank and torch take turns on the
same values, so that other work on the machine slows both; the least time of each is printed, and
how many times torch's ours is. With ``--processor``, seconds of the processor are counted in place
of those of the clock, all threads together: on a machine that has more work than processors.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "7 x 7, stride 2, 3 to 64": (lambda: nn.Conv2d(3, 64, 7, 2, 3, bias=False), (6, 3, 224, 224)),
    "3 x 3, 64, 56 x 56": (lambda: nn.Conv2d(64, 64, 3, 1, 1), (6, 64, 56, 56)),
    "3 x 3, stride 2, 64 to 128": (lambda: nn.Conv2d(64, 128, 3, 2, 1), (6, 64, 56, 56)),
    "3 x 3, 256, 14 x 14": (lambda: nn.Conv2d(256, 256, 3, 1, 1), (6, 256, 14, 14)),
    "3 x 3, 512, 7 x 7": (lambda: nn.Conv2d(512, 512, 3, 1, 1), (6, 512, 7, 7)),
    "1 x 1, 64 to 256": (lambda: nn.Conv2d(64, 256, 1), (6, 64, 56, 56)),
    "dilated, 64": (lambda: nn.Conv2d(64, 64, 3, 1, 2, 2), (6, 64, 56, 56)),
    "4 groups, 128": (lambda: nn.Conv2d(128, 128, 3, 1, 1, groups=4), (6, 128, 28, 28)),
    "depthwise, 96": (lambda: nn.Conv2d(96, 96, 3, 1, 1, groups=96), (6, 96, 56, 56)),
    "transposed, stride 2, 128 to 64": (
        lambda: nn.ConvTranspose2d(128, 64, 4, 2, 1),
        (6, 128, 28, 28),
    ),
    "1-D, 128, 1024": (lambda: nn.Conv1d(128, 128, 5, 1, 2), (6, 128, 1024)),
    "3-D, 32, 16^3": (lambda: nn.Conv3d(32, 32, 3, 1, 1), (4, 32, 16, 16, 16)),
}


class Block(nn.Module):
    """Two convolutions beside a short cut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.one, self.two = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short: nn.Module = nn.Identity()
        if stride > 1:
            short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.short = nn.Sequential(short, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.two(self.second(self.one(self.first(x)).relu()))
        return (y + self.short(x)).relu()


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()
        blocks = [
            Block(max(64, width if n else width // 2), width, 1 if n or width == 64 else 2)
            for width in (64, 128, 256, 512)
            for n in range(2)
        ]
        self.features = nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *blocks)
        self.head = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).mean((2, 3)))


Case = tuple[str, Callable[..., Any], tuple[Tensor, ...], bool]
"""What is printed, a function, its arguments, and whether it is a training step."""


def cases(small: bool) -> Iterator[Case]:
    """All that is measured."""
    for name, (make, shape) in LAYERS.items():
        layer, x = make(), torch.randn(2 if small else shape[0], *shape[1:])
        yield f"forward, {name}", layer, (x,), False
        g = torch.randn_like(layer(x))

        def gradients(x: Tensor, g: Tensor, layer: nn.Module = layer) -> Any:
            x = x.detach().requires_grad_()
            return torch.autograd.grad(layer(x), (x, *layer.parameters()), g)

        yield f"forward and gradients, {name}", gradients, (x, g), True
    size, batch = (64, 2) if small else (224, 6)
    x, y = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))
    yield "forward, ResNet18", ResNet18().eval(), (x,), False
    model = ResNet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    yield "step, ResNet18", step, (x, y), True


def least(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    """The least seconds of some calls."""
    found = []
    for _ in range(3):
        start = clock()
        call()
        found.append(clock() - start)
    return min(found)


def compare(case: Case, repeat: int, clock: Callable[[], float]) -> None:
    """Print a line of the table."""
    from mpi4py import MPI

    import distspmd
    from distspmd import frontend

    name, function, arguments, trains = case
    if trains:
        sdfg = frontend.training_step(function, *arguments, name="measured")
    else:
        sdfg = frontend.torch_module(function, *arguments, name="measured")
    sdfg = distspmd.lower(sdfg, {}, arguments=frontend.resident(sdfg)).sdfg
    with distspmd.compile(sdfg, MPI.COMM_SELF) as program, torch.set_grad_enabled(trains):
        ours, torchs = [], []
        for _ in range(repeat):
            ours.append(least(lambda: program(*arguments), clock))
            torchs.append(least(lambda: function(*arguments), clock))
    mine, other = min(ours) * 1e3, min(torchs) * 1e3
    print(f"| {name} | {mine:.2f} | {other:.2f} | {mine / other:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="sizes that take no time")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--processor", action="store_true", help="count its seconds")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names of cases")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        clock = time.process_time if options.processor else time.perf_counter
        print("| case | ours, ms | torch, ms | ratio |\n|---|---|---|---|")
        for case in cases(options.small):
            if any(part in case[0] for part in options.only):
                compare(case, options.repeat, clock)
        return
    for threads in options.threads:
        print(f"{threads} threads" if threads > 1 else "1 thread")
        argv = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--measure"]
        env = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        subprocess.run(argv, env=env, check=True)


if __name__ == "__main__":
    main()
