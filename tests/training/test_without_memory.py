"""Modules on the device ``meta``: initialised, trained, saved and loaded, each rank its part."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

from distspmd import frontend
from distspmd.errors import ArgumentError
from distspmd.frontend.from_torch.tensor_files import Reader, find_tensors
from training.models import speak

WIDTH, HIDDEN, WORDS = 12, 20, 14


class Layer(nn.Module):
    """A perceptron, with a norm and numbers that no state dictionary has."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("slopes", torch.empty(width), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.slopes.copy_(1.0 / (10.0 ** (torch.arange(len(self.slopes)) / 4)))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = x + self.slopes * self.down(torch.tanh(self.up(self.norm(x))))
        return found


class Speaker(nn.Module):
    """Layers between a table of words and the same table."""

    def __init__(self, layers: int = 2, width: int = WIDTH, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=3)
        self.layers = nn.ModuleList(Layer(width, hidden) for _ in range(layers))
        self.head = nn.Linear(width, WORDS, bias=False)
        self.head.weight = self.words.weight
        self.unused = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        found = self.words(x)
        for layer in self.layers:
            found = layer(found)
        logits: Tensor = self.head(found)
        return logits


def step_of(module: nn.Module) -> tuple[torch.optim.Optimizer, Callable[..., Tensor]]:
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    return optimizer, speak(module, optimizer)


def batches(made: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Words, after some steps that were made."""
    generator = torch.Generator().manual_seed(7 + made)
    while True:
        words = torch.randint(0, WORDS, (4, 6), generator=generator)
        yield words, words.roll(1, 1)
        generator.manual_seed(generator.initial_seed() + 1)


def on_ranks(function: str, folder: Path, ranks: int) -> None:
    call_on_ranks("training.test_without_memory", f"{function}(comm, {str(folder)!r})", ranks)


def trained(comm: Any, schedule: Any) -> tuple[Any, Callable[[int, int], list[float]]]:
    """A step whose module has no memory, and a function that makes some steps."""
    step = None
    if comm.rank == 0:
        with torch.device("meta"):
            module = Speaker()
        step = step_of(module)[1]
    train = frontend.partitioned(step, schedule, comm)

    def run(first: int, last: int) -> list[float]:
        given = batches(first)
        pairs = [next(given) for _ in range(first, last)]
        return [float(train(*pair)) if comm.rank == 0 else train() for pair in pairs]

    return train, run


def begin(comm: Any, folder: str) -> None:
    """Initialise, save, train beside torch, save again."""
    train, run = trained(comm, frontend.megatron(comm.size))
    with pytest.raises(ArgumentError, match=r"All ranks call frontend\.initialize"):
        run(0, 1)
    frontend.initialize(train, seed=5)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'unused'")
        losses = run(0, 1)
        frontend.save(train, f"{folder}/one")
        losses += run(1, 3)
        frontend.save(train, f"{folder}/three")
    if comm.rank == 0:
        Path(folder, "losses.json").write_text(json.dumps(losses))
    train.close()
    peak = peak_of_large(comm, folder)
    Path(folder, f"peak-{comm.rank}.json").write_text(json.dumps(peak))


LARGE = 1536


def peak_of_large(comm: Any, folder: str) -> int:
    """The most memory that this rank takes for a model of which no rank could hold everything."""
    step = None
    if comm.rank == 0:
        with torch.device("meta"):
            module = nn.Sequential(
                nn.Linear(LARGE, 4 * LARGE, bias=False),
                nn.GELU(),
                nn.Linear(4 * LARGE, LARGE, bias=False),
            )
        optimizer = torch.optim.AdamW(module.parameters())

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = module(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = memory("VmRSS")
    with frontend.partitioned(step, frontend.megatron(comm.size), comm) as train:
        frontend.initialize(train)
        for _ in range(2):
            train(torch.randn(4, LARGE)) if comm.rank == 0 else train()
        frontend.save(train, f"{folder}/large")
        frontend.load(train, f"{folder}/large")
    return memory("VmHWM") - before


def memory(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def go_on(comm: Any, folder: str) -> None:
    """Load what other ranks have saved after a step, in another layout, and make two more."""
    train, run = trained(comm, frontend.fsdp(comm.size))
    frontend.load(train, f"{folder}/one")
    losses = run(1, 3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'unused'")
        frontend.save(train, f"{folder}/other")
    if comm.rank == 0:
        expected = json.loads(Path(folder, "losses.json").read_text())[1:]
        assert losses == pytest.approx(expected, rel=1e-5)
        assert read(f"{folder}/other").keys() == read(f"{folder}/three").keys()
        for name, tensor in read(f"{folder}/other").items():
            torch.testing.assert_close(tensor, read(f"{folder}/three")[name])
    train.close()


def read(folder: str) -> dict[str, Tensor]:
    found = {**find_tensors(folder), **find_tensors(folder, "optimizer")}
    reader = Reader()
    return {
        name: reader.part(stored, stored.shape, tuple(slice(None) for _ in stored.shape))
        for name, stored in found.items()
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    on_ranks("begin", folder, 3)
    return folder


def test_other_ranks_go_on_with_what_was_saved(saved: Path) -> None:
    on_ranks("go_on", saved, 2)


def test_no_rank_holds_the_whole_model(saved: Path) -> None:
    everything = 3 * 4 * 8 * LARGE**2  # parameters and two states, in bytes
    peaks = [json.loads(file.read_text()) for file in sorted(saved.glob("peak-*.json"))]
    assert len(peaks) == 3
    assert max(peaks) < 0.8 * everything


def test_torch_goes_on_with_what_was_saved(saved: Path) -> None:
    tensors = read(str(saved / "one"))
    module = Speaker()
    optimizer, step = step_of(module)
    given = batches(1)
    module.load_state_dict({n: tensors[n] for n in tensors if n in module.state_dict()}, False)
    for name, parameter in module.named_parameters():
        if name != "unused":
            optimizer.state[parameter] = {
                key: tensors[f"{name}.{key}"].reshape(() if key == "step" else parameter.shape)
                for key in ("exp_avg", "exp_avg_sq", "step")
            }
    losses = [float(step(*next(given)).detach()) for _ in range(2)]
    assert losses == pytest.approx(json.loads((saved / "losses.json").read_text())[1:], rel=1e-5)
