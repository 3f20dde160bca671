"""One training step of a perceptron and of a GPT, beside PyTorch.

``python benchmarks/training.py [--models mlp gpt] [--methods ...]`` starts each method in processes
of its own, of two threads in all: distspmd on one rank of two threads and on two ranks of one (data
parallel, parameters and states on the ranks), torch eager and ``torch.compile`` with two threads,
and DistributedDataParallel on gloo with two ranks of one thread. It prints the best and the median
time of a step, the bytes that each rank received in one, and the most memory that each process
held while it trained; and what came before the first step: tracing, lowering and compiling, with
``--fresh`` into empty caches. With ``--processor``, ours and eager torch take turns in one process
of two threads, and the least seconds of the processor of each are printed, with their ratio: on a
machine that has other work.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

METHODS = {
    "distspmd 1": (1, 2),
    "eager": (1, 2),
    "compile": (1, 2),
    "distspmd 2": (2, 1),
    "DDP 2": (2, 1),
}
"""Ranks, and threads of each."""


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class GPT(nn.Module):
    """Layers, with a table of words that is the head, too."""

    def __init__(self, words: int, width: int, heads: int, length: int, layers: int = 4) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.table.weight, std=0.02)
        self.head.weight = self.table.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.table(x) + self.places))).flatten(0, 1)


def gpt(small: bool, parts: int) -> tuple[nn.Module, tuple[Tensor, ...], str]:
    """Model, a part of the batch, and the space whose batch is split."""
    words, width, heads, length, batch = (20, 8, 2, 4, 4) if small else (4096, 256, 8, 128, 8)
    x, y = torch.randint(0, words, (2, batch // parts, length))
    return GPT(words, width, heads, length), (x, y.flatten()), "layers_0_qkv_addmm"


def gpt2(small: bool, parts: int) -> tuple[nn.Module, tuple[Tensor, ...], str]:
    """Of the published size: 12 layers, 768 wide."""
    words, width, heads, length, batch = (20, 8, 2, 4, 4) if small else (50257, 768, 12, 128, 2)
    x, y = torch.randint(0, words, (2, batch // parts, length))
    model = GPT(words, width, heads, length, 2 if small else 12)
    return model, (x, y.flatten()), "layers_0_qkv_addmm"


def mlp(small: bool, parts: int) -> tuple[nn.Module, tuple[Tensor, ...], str]:
    width, batch = (16, 8) if small else (2048, 512)
    model = nn.Sequential(
        *(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()),
        nn.Linear(width, 10),
    )
    x, y = torch.randn(batch // parts, 784), torch.randint(0, 10, (batch // parts,))
    return model, (x, y), "t_0_addmm"


MODELS = {"mlp": mlp, "gpt": gpt, "gpt2": gpt2}


def step_of(model: nn.Module, called: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """The usual step, with the model called through what wraps it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(called(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@dataclass(frozen=True)
class Figures:
    """What a rank measured: seconds of steps, bytes received in one, and memory in bytes."""

    seconds: Sequence[float]
    received: float
    peak: int


def timed(call: Callable[[], Any], repeat: int, received: Callable[[], float]) -> Figures:
    """Call some times to warm up, then count."""
    for _ in range(3):
        call()
    seconds, before = [], received()
    forget_peak()
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return Figures(seconds, (received() - before) / repeat, peak())


def forget_peak() -> None:
    """Let the most memory that this process held be what it holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most memory that this process held, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def ours(name: str, small: bool, repeat: int) -> tuple[list[Figures], str]:
    """Figures of all ranks, and what came before."""
    from mpi4py import MPI

    import distspmd
    from distspmd import frontend

    comm = MPI.COMM_WORLD
    model, batch, space = MODELS[name](small, 1)
    sdfg, laps = None, [time.perf_counter()]
    if comm.rank == 0:
        sdfg = frontend.training_step(step_of(model, model), *batch, name=name)
        laps.append(time.perf_counter())
        schedule = {space: {"b": comm.size}}
        sdfg = distspmd.lower(sdfg, schedule, arguments=frontend.resident(sdfg)).sdfg
        laps.append(time.perf_counter())
    with distspmd.compile(sdfg, comm) as program:
        laps.append(time.perf_counter())
        figures = timed(
            (lambda: program(*batch)) if comm.rank == 0 else program,
            repeat,
            lambda: sum(counted.received_bytes for _, counted in program.statistics()),
        )
    parts = zip(("trace", "lower", "compile"), itertools.pairwise(laps), strict=False)
    made = ", ".join(f"{word} {end - begin:.1f} s" for word, (begin, end) in parts)
    return comm.gather(figures) or [], made


def torchs(method: str, name: str, small: bool, repeat: int) -> tuple[list[Figures], str]:
    """Figures of all ranks, and what came before."""
    ranks = METHODS[method][0]
    model, batch, _ = MODELS[name](small, ranks)
    called: Any = model
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        called = nn.parallel.DistributedDataParallel(model)
    if method == "compile":
        called = torch.compile(model)
    step = step_of(model, called)
    start = time.perf_counter()
    step(*batch)
    made = f"first step {time.perf_counter() - start:.1f} s"
    # gloo does not count: what a ring passes on of the gradients
    nbytes = 2 * (ranks - 1) / ranks * sum(4 * p.numel() for p in model.parameters())
    figures: list[Any] = [
        timed(lambda: step(*batch), repeat, itertools.count(0, nbytes * repeat).__next__)
    ]
    if ranks > 1:
        gathered: list[Any] = [None] * ranks
        torch.distributed.all_gather_object(gathered, figures[0])
        torch.distributed.destroy_process_group()
        return gathered, made
    return figures, made


def run(method: str, name: str, small: bool, repeat: int) -> None:
    """In the processes of a method: measure, and print on the first one."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(METHODS[method][1])
    measure = ours if method.startswith("distspmd") else torchs
    arguments = (method, name, small, repeat)
    figures, made = measure(*arguments[measure is ours :])
    from distspmd.runtime.allocation import rank_of_launch

    if int(os.environ.get("RANK", rank_of_launch())) == 0:
        steps = [max(turn) for turn in zip(*(f.seconds for f in figures), strict=True)]
        best, median = min(steps) * 1e3, statistics.median(steps) * 1e3
        received = ", ".join(f"{f.received / 1e6:.1f}" for f in figures)
        peaks = ", ".join(f"{f.peak / 1e6:.0f}" for f in figures)
        times = f"{best:7.1f} ms best, {median:7.1f} ms median"
        print(f"{name:4} {method:10} {times}; received {received} MB; held {peaks} MB; {made}")


def beside_eager(name: str, small: bool, repeat: int) -> None:
    """Print the processor's seconds of our step and of torch's, which take turns."""
    from convolutions import compare

    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    model, batch, _ = MODELS[name](small, 1)
    compare((f"step, {name}", step_of(model, model), batch, True), repeat, time.process_time)


def start(method: str, arguments: list[str]) -> None:
    """Start the processes of a method."""
    ranks, threads = METHODS[method]
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    argv = [str(Path(__file__).resolve()), "--method", method, *arguments]
    if method.startswith("distspmd"):
        from distspmd.runtime.launch.mpiexec import launch

        launch(argv, ranks=ranks, env=env, timeout=900).check()
    elif ranks > 1:
        command = ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}", *argv]
        subprocess.run([sys.executable, *command], env=env, check=True)
    else:
        subprocess.run([sys.executable, *argv], env=env, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="sizes that take no time")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--models", nargs="*", default=["mlp", "gpt"], choices=list(MODELS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--fresh", action="store_true", help="compile into empty caches")
    parser.add_argument("--processor", action="store_true", help="its seconds, beside eager")
    parser.add_argument("--method", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.method == "beside":
        beside_eager(options.models[0], options.small, options.repeat)
        return
    if options.method:
        run(options.method, options.models[0], options.small, options.repeat)
        return
    small = ["--small"] if options.small else []
    for name in options.models:
        if options.processor:
            argv = [str(Path(__file__).resolve()), "--method", "beside", *small, "--models", name]
            env = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
            command = [sys.executable, *argv, "--repeat", str(options.repeat)]
            subprocess.run(command, env=env, check=True)
            continue
        for method in options.methods:
            with tempfile.TemporaryDirectory() as folder:
                if options.fresh:
                    caches = ("DISTSPMD_CACHE", "DACE_BUILD_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
                    os.environ |= {cache: f"{folder}/{cache}" for cache in caches}
                start(method, [*small, "--repeat", str(options.repeat), "--models", name])


if __name__ == "__main__":
    main()
