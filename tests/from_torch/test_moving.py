"""What moves while a function is traced is refused with its line: no program has it."""

from __future__ import annotations

import datetime
import itertools
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from distspmd.execution.binding import binding_of

torch.manual_seed(0)
LAYER = nn.Linear(3, 2)
RNG = np.random.default_rng(0)
RANDOM = random.Random(0)
LOADER = DataLoader(TensorDataset(torch.randn(8, 3)), batch_size=4)
BATCHES = iter(LOADER)
COUNTS = itertools.count()
WAITING = [1.0, 2.0]
QUEUE = deque([1.0, 2.0])
FLAGS = {"first": True, "name": "a"}
X = torch.randn(4, 3)


def drawn() -> Iterator[Tensor]:
    """Batches that nobody has in a list."""
    while True:
        yield torch.zeros(3)


DRAWN = drawn()


class Data:
    """Has a reader of lines."""

    def __init__(self) -> None:
        self.lines = iter(["1", "2"])


DATA = Data()


def of_numpy(x: Tensor) -> Tensor:
    mixed = x * 2
    return LAYER(mixed) * np.random.rand()  # noqa: NPY002 # here


def of_python(x: Tensor) -> Tensor:
    return LAYER(x) * random.random()  # here


def permuted(x: Tensor) -> Tensor:
    return LAYER(x[np.random.permutation(4).tolist()])  # noqa: NPY002 # here


def of_a_generator(x: Tensor) -> Tensor:
    return LAYER(x + torch.from_numpy(RNG.standard_normal(3).astype(np.float32)))  # here


def in_a_helper(x: Tensor) -> Tensor:
    return scaled(LAYER(x))


def scaled(y: Tensor) -> Tensor:
    return y * RANDOM.uniform(0, 1)  # here


def next_batch(x: Tensor) -> Tensor:
    (batch,) = next(BATCHES)  # here
    return LAYER(batch + x)


def for_batch(x: Tensor) -> Tensor:
    for each in DRAWN:  # here
        return LAYER(each + x)
    return x


def sent(x: Tensor) -> Tensor:
    return LAYER(x + DRAWN.send(None))  # type: ignore[attr-defined]  # here


def next_line(x: Tensor) -> Tensor:
    return LAYER(x) * float(next(DATA.lines))  # here


def counted(x: Tensor) -> Tensor:
    return LAYER(x) * next(COUNTS)  # here


def timed(x: Tensor) -> Tensor:
    return LAYER(x) * (time.time() % 1)  # here


def timed_by_name(x: Tensor) -> Tensor:
    return LAYER(x) * perf_counter()  # here


def dated(x: Tensor) -> Tensor:
    return LAYER(x) * datetime.datetime.now().microsecond  # here


def seeded(x: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(0)  # here
        return LAYER(x + torch.rand(3))


def asked(x: Tensor) -> Tensor:
    found = subprocess.run([sys.executable, "-V"], capture_output=True, check=True)  # here
    return LAYER(x) * len(found.stdout)


MOVING: dict[Callable[..., Any], str] = {
    of_numpy: r"draws from NumPy's random numbers \(np.random\), in ",
    of_python: r"draws from Python's random numbers \(random\), in ",
    permuted: r"draws from NumPy's random numbers \(np.random\), in ",
    of_a_generator: r"draws from the generator 'RNG', in ",
    in_a_helper: r"draws from the generator 'RANDOM', in ",
    next_batch: r"takes the next element of 'BATCHES' in ",
    for_batch: r"takes the next element of 'DRAWN' in ",
    sent: r"takes the next element of 'DRAWN' in ",
    next_line: r"takes the next element of 'DATA.lines' in ",
    counted: r"takes the next element of 'COUNTS' in ",
    timed: r"calls time.time in ",
    timed_by_name: r"calls time.perf_counter in ",
    dated: r"calls datetime.datetime.now in ",
    seeded: r"sets the seed of torch's random numbers in ",
    asked: r"asks another process in ",
}


@pytest.mark.parametrize("function", MOVING, ids=lambda f: f.__name__)
def test_what_moves_is_refused_with_its_line(function: Callable[..., Any]) -> None:
    text = Path(__file__).read_text().splitlines()
    inner = scaled if function is in_a_helper else function
    first = inner.__code__.co_firstlineno
    line = next(n for n in range(first, first + 9) if text[n - 1].endswith("# here"))
    with pytest.raises(UnsupportedProgram, match=rf"{MOVING[function]}\S*test_moving\.py:{line}"):
        frontend.training_step(function, X)


def test_what_was_asked_while_a_function_was_traced_is_as_it_was() -> None:
    before = RNG.bit_generator.state, random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    for function in MOVING:
        with pytest.raises(UnsupportedProgram):
            frontend.training_step(function, X)
    assert RNG.bit_generator.state == before[0]
    assert random.getstate() == before[1]
    np.testing.assert_equal(np.random.get_state(legacy=False), before[2])  # noqa: NPY002
    assert (next(COUNTS), next(DATA.lines), len(next(BATCHES)[0])) == (0, "1", 4)
    assert time.time() > 0
    assert isinstance(datetime.datetime.now(), datetime.datetime)
    torch.manual_seed(0)


def popped(x: Tensor) -> Tensor:
    return LAYER(x) * WAITING.pop()


def rotated(x: Tensor) -> Tensor:
    QUEUE.rotate()
    return LAYER(x) * QUEUE[0]


def at_first(x: Tensor) -> Tensor:
    if FLAGS["first"]:
        FLAGS["first"] = False
        return LAYER(x) * 2
    return LAYER(x)


def named(x: Tensor) -> Tensor:
    FLAGS["name"] = "b"
    return LAYER(x)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (popped, "takes an element from WAITING"),
        (rotated, "adds to QUEUE or takes from it"),
        (at_first, "changes the value FLAGS.first from True to False"),
        (named, "changes the value FLAGS.name from 'a' to 'b'"),
    ],
)
def test_changes_of_objects_are_refused_and_undone(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        frontend.training_step(function, X)
    assert (WAITING, list(QUEUE)) == ([1.0, 2.0], [1.0, 2.0])
    assert FLAGS == {"first": True, "name": "a"}


def test_a_generator_of_torch_is_refused() -> None:
    generator = torch.Generator()

    def function(x: Tensor) -> Tensor:
        return LAYER(x + torch.rand(3, generator=generator))

    with pytest.raises(UnsupportedProgram, match=r"draws from a torch.Generator \(rand\)"):
        frontend.training_step(function, X)


def test_a_loader_inside_of_the_function_is_refused() -> None:
    def function(x: Tensor) -> Tensor:
        return sum(LAYER(batch + x).mean() for (batch,) in LOADER)  # type: ignore[return-value]

    with pytest.raises(UnsupportedProgram, match="neither an argument nor where it can be found"):
        frontend.training_step(function, X)


def test_a_file_that_is_read_is_an_assumption(tmp_path: Path) -> None:
    file = tmp_path / "weights.npy"
    np.save(file, np.ones(3, np.float32))

    def function(x: Tensor) -> Tensor:
        return LAYER(x * torch.from_numpy(np.load(file)))

    binding: Any = binding_of(frontend.training_step(function, X))
    assert list(binding.assumptions.changes()) == []
    np.save(file, np.zeros(4, np.float32))
    ((said, _, _),) = binding.assumptions.changes()
    assert f"the file '{file}', which " in said
    assert "test_moving.py:" in said


def test_what_torch_draws_and_keeps_is_traced() -> None:
    def function(x: Tensor) -> Tensor:
        hidden = checkpoint(LAYER, x, use_reentrant=False)
        with torch.random.fork_rng():
            return nn.functional.dropout(hidden, 0.5) + torch.rand(2)

    frontend.training_step(function, X)
