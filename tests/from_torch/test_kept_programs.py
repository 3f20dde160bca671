"""Programs of an earlier process are found if all that they are made from is as it was."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import _pytest.python
import pytest
import torch
from torch import Tensor, nn

from distspmd import frontend
from distspmd.errors import ScheduleWarning
from distspmd.frontend.from_torch import fingerprints, kept_programs
from distspmd.frontend.from_torch.kept_programs import KeptProgram
from distspmd.frontend.from_torch.partitioned import Given, Partitioned
from distspmd.plans.machine import Machine
from distspmd.schedule import as_entries

FACTOR = 2.0
HELPERS = types.SimpleNamespace(shift=1.0)


def helper(x: Tensor, by: float = 0.5) -> Tensor:
    return x * by + HELPERS.shift


def other_helper(x: Tensor, by: float = 0.5) -> Tensor:
    return x * by - HELPERS.shift


class Block(nn.Module):
    scale = 1.5

    def __init__(self) -> None:
        super().__init__()
        self.config = types.SimpleNamespace(width=4, sizes=[4, 4])
        self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)
        self.drop = nn.Dropout(0.25)
        self.register_buffer("shift", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.drop(self.outer(torch.relu(self.inner(x))))
        return helper(hidden) * self.scale * FACTOR


class Caller:
    """What a program is made from, all of which can be changed."""

    def __init__(self) -> None:
        self.module = Block()
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=0.1)
        self.captured: Any = 1.0
        self.x = torch.ones(6, 4)
        self.schedule: Any = frontend.data_parallel(2)
        self.varying: set[str] = set()
        self.rest: tuple[Any, ...] = ("step", {}, "vector", 2)
        self.device: str | None = None

    def entry(self) -> KeptProgram:
        captured, module, optimizer = self.captured, self.module, self.optimizer

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = (module(x) * captured).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        given = Given.of(step, (self.x,), {})
        call = (as_entries(self.schedule, None), *self.rest, given.key, given.strides)
        return KeptProgram.of(
            given.function, given.tensors, self.varying, *call, device=self.device
        )


def key(change: Callable[[Caller], object] = lambda caller: None) -> str:
    caller = Caller()
    change(caller)
    found = caller.entry()
    assert found.key, found.reason
    return found.key


def test_what_is_the_same_in_another_process_has_the_same_key() -> None:
    def train(caller: Caller) -> None:
        for tensor in caller.module.parameters():
            tensor.data.add_(1)
        caller.x = torch.zeros(6, 4)

    assert key() == key() == key(train)


CHANGES: dict[str, Callable[[Caller], object]] = {
    "a number that it closes over": lambda c: setattr(c, "captured", 2.0),
    "a type that it closes over": lambda c: setattr(c, "captured", 1),
    "the shape of an argument": lambda c: setattr(c, "x", torch.ones(5, 4)),
    "the type of an argument": lambda c: setattr(c, "x", c.x.double()),
    "an argument with a gradient": lambda c: c.x.requires_grad_(),
    "the order of an argument in memory": lambda c: setattr(c, "x", torch.ones(4, 6).T),
    "the schedule": lambda c: setattr(c, "schedule", frontend.fsdp(2)),
    "its size": lambda c: setattr(c, "schedule", frontend.data_parallel(3)),
    "options": lambda c: setattr(c, "rest", ("step", {"x": "replicated"}, "vector", 2)),
    "arithmetic": lambda c: setattr(c, "rest", ("step", {}, "strict", 2)),
    "the number of ranks": lambda c: setattr(c, "rest", ("step", {}, "vector", 4)),
    "numbers that vary": lambda c: c.varying.add("weight_decay"),
    "eval()": lambda c: c.module.eval(),
    "a frozen parameter": lambda c: c.module.inner.weight.requires_grad_(False),
    "the type of parameters": lambda c: c.module.double(),
    "a gradient that is there": lambda c: setattr(c.module.inner.weight, "grad", torch.zeros(4, 4)),
    "dropout": lambda c: setattr(c.module.drop, "p", 0.5),
    "a configuration": lambda c: setattr(c.module.config, "width", 5),
    "a list in it": lambda c: c.module.config.sizes.append(4),
    "another layer": lambda c: setattr(c.module, "drop", nn.Identity()),
    "another parameter": lambda c: setattr(c.module, "also", nn.Parameter(torch.ones(4))),
    "tied parameters": lambda c: setattr(c.module, "also", c.module.inner.bias),
    "tied buffers": lambda c: c.module.inner.register_buffer("also", c.module.shift),
    "a hook": lambda c: c.module.inner.register_forward_hook(lambda *_: None),
    "a hook of a parameter": lambda c: c.module.inner.weight.register_hook(lambda g: 2 * g),
    "a forward of its own": lambda c: setattr(c.module, "forward", c.module.inner.forward),
    "an optimizer": lambda c: setattr(
        c, "optimizer", torch.optim.SGD(c.module.parameters(), lr=0.1)
    ),
    "its settings": lambda c: c.optimizer.param_groups[0].update(weight_decay=0.5),
    "a tensor that is in no module": lambda c: setattr(c, "captured", torch.ones(2)),
}


def test_each_change_has_a_key_of_its_own() -> None:
    keys = {what: key(change) for what, change in CHANGES.items()}
    keys["nothing"] = key()
    keys["its value"] = key(lambda c: setattr(c, "captured", torch.zeros(2)))
    assert len(set(keys.values())) == len(keys), sorted(keys, key=lambda what: keys[what])


def negated(x: Tensor) -> Tensor:
    return -x.clamp(max=0)


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (None, "FACTOR", 3.0),
        (HELPERS, "shift", 2.0),
        (None, "helper", other_helper),
        (helper, "__defaults__", (0.75,)),
        (Block, "scale", 2.5),
        (Block, "forward", lambda self, x: self.inner(x)),
        (torch, "relu", negated),
    ],
)
def test_code_and_global_values_are_in_the_key(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, value: Any
) -> None:
    before = key()
    if owner is None:
        monkeypatch.setitem(globals(), name, value)
    else:
        monkeypatch.setattr(owner, name, value)
    assert key() != before


def test_settings_versions_and_sources_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [key()]
    with torch.autocast("cpu", torch.bfloat16):
        keys.append(key())
    with torch.no_grad():
        keys.append(key())
    with monkeypatch.context() as changed:
        changed.setattr(torch, "__version__", "0.0")
        keys.append(key())
    with monkeypatch.context() as changed:
        changed.setattr(kept_programs, "own_text", lambda: "another distspmd")
        keys.append(key())
    with monkeypatch.context() as changed:
        changed.setattr(kept_programs.toolchain, "find_blas", lambda: "another BLAS")
        keys.append(key())
    with monkeypatch.context() as changed:
        changed.setenv("DISTSPMD_TRANSPORT", "another")
        keys.append(key())
    with monkeypatch.context() as changed:
        slower = replace(Machine.measured(), alpha=1.0)
        changed.setattr(Machine, "measured", lambda: slower)
        keys.append(key())
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("value", [threading.Lock(), (n for n in range(3)), {object()}])
def test_what_nobody_can_tell_elsewhere_is_not_kept(value: Any) -> None:
    caller = Caller()
    caller.captured = value
    found = caller.entry()
    assert not found.key
    assert found.reason
    assert found.find() is None


def test_modules_of_a_record_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def record(texts: dict[str, tuple[str, str]]) -> kept_programs._Record:
        held = fingerprints.held_by({"_pytest"})
        assert "_pytest.python" in held
        return kept_programs._Record(*(None,) * 7, texts, held)  # type: ignore[arg-type]

    file, text = fingerprints.texts()[__name__]
    made = record({__name__: (file, text), "not_imported": (file, text)})
    assert made.is_as_it_was(fingerprints.held_by({"_pytest"}))
    assert not record({__name__: (file, "another")}).is_as_it_was({})
    assert not record({"not_imported": ("no file", text)}).is_as_it_was({})
    monkeypatch.setattr(_pytest.python, "hasinit", lambda obj: False)
    assert not made.is_as_it_was(fingerprints.held_by({"_pytest"}))


def test_programs_of_devices_are_not_kept() -> None:
    caller = Caller()
    caller.device = "emulated"
    assert caller.entry().reason == "it runs on a device"


def test_what_the_first_start_was_warned_of_a_later_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made = None, types.SimpleNamespace(warned=("a rank is idle",)), None
    monkeypatch.setattr(KeptProgram, "find", lambda entry: made)
    own = types.SimpleNamespace(name="step", found=0, _entries={}, _options={}, _varying=set())
    own._arithmetic, own._device, own._wanted = "vector", None, None
    own._agreement = types.SimpleNamespace(ranks=2)
    with pytest.warns(ScheduleWarning, match="a rank is idle"):
        make = Partitioned._program(own, Given.of(helper, (torch.ones(2),), {}))  # type: ignore[arg-type]
    assert make() is made
    assert own.found == 1
