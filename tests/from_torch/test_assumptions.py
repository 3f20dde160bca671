"""What a traced program took from the caller's objects is checked at each call, or an argument."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dace
import pytest
import torch
from dace import SDFG
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.codegen.build import load_unlowered
from distspmd.errors import ArgumentError
from distspmd.execution.binding import binding_of

COEFFICIENT = 2.0


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.drop = nn.Dropout(0.0)
        self.head = nn.Linear(6, 5)
        self.slope = 0.5
        self.sizes = [6, 5]

    def forward(self, ids: Tensor) -> Tensor:
        return functional.leaky_relu(self.head(self.drop(self.table(ids)).mean(1)), self.slope)


Step = Callable[[Tensor, Tensor], Tensor]


def training(
    momentum: float = 0.9, model: Classifier | None = None
) -> tuple[Classifier, torch.optim.SGD, Step]:
    torch.manual_seed(0)
    module = model or Classifier()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=momentum)

    def step(ids: Tensor, classes: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = COEFFICIENT * functional.cross_entropy(module(ids), classes)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    return module, optimizer, step


def batch() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 10, (4, 3)), torch.randint(0, 5, (4,))


def refusal(sdfg: SDFG) -> str:
    binding = binding_of(sdfg)
    assert binding is not None
    with pytest.raises(ArgumentError) as raised:
        binding.arguments()
    assert "Trace the function again" in str(raised.value)
    return str(raised.value)


def freeze(module: Classifier, optimizer: torch.optim.SGD) -> None:
    module.head.bias.requires_grad_(False)


def replaced(module: Classifier, optimizer: torch.optim.SGD) -> None:
    module.head.bias = nn.Parameter(torch.zeros(5))


CHANGES: dict[str, Callable[[Classifier, torch.optim.SGD], Any]] = {
    "'training' of the module 'module' was True": lambda m, o: m.eval(),
    "'training' of the module 'module.drop' was True": lambda m, o: m.drop.eval(),
    "'p' of the module 'module.drop' was 0.0": lambda m, o: setattr(m.drop, "p", 0.5),
    "'slope' of the module 'module' was 0.5": lambda m, o: setattr(m, "slope", 0.1),
    "'sizes' of the module 'module' was (6, 5)": lambda m, o: m.sizes.append(4),
    "'weight_decay' of group 0": lambda m, o: o.param_groups[0].update(weight_decay=0.1),
    "'momentum' of group 0 of the optimizer 'optimizer' was 0.9": lambda m, o: o.param_groups[
        0
    ].update(momentum=0.8),
    "the parameter groups of 'optimizer' was 1": lambda m, o: o.add_param_group({"params": []}),
    "requires_grad of 'head.bias' was True": freeze,
    "the parameter 'head.bias'": replaced,
    "the hooks of 'head.weight'": lambda m, o: m.head.weight.register_hook(lambda g: g),
    "forward_hooks of the module 'module.head'": lambda m, o: m.head.register_forward_hook(print),
}


@pytest.mark.parametrize("message", CHANGES)
def test_a_change_that_the_program_does_not_read_is_refused(message: str) -> None:
    module, optimizer, step = training()
    sdfg = frontend.training_step(step, *batch())
    binding = binding_of(sdfg)
    assert binding is not None
    binding.arguments()
    CHANGES[message](module, optimizer)
    assert message in refusal(sdfg)


def test_a_variable_that_changes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, step = training()
    sdfg = frontend.training_step(step, *batch())
    monkeypatch.setattr(sys.modules[__name__], "COEFFICIENT", 3.0)
    assert "the variable 'COEFFICIENT' of step() was 2.0" in refusal(sdfg)


def test_a_schedule_of_momentum_is_refused_and_one_of_rates_is_read() -> None:
    _, optimizer, step = training()
    sdfg = frontend.training_step(step, *batch())
    binding = binding_of(sdfg)
    assert binding is not None
    optimizer.param_groups[0]["lr"] = 0.05
    rates = [v for name, v in binding.arguments().items() if name.endswith("lr")]
    assert [float(rate[0]) for rate in rates] == [0.05]
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6)
    optimizer.step()
    scheduler.step()
    assert "'momentum' of group 0" in refusal(sdfg)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("ids", [[0, 1, 10]] * 4, "embedding takes indices from 0 to 9"),
        ("ids", [[0, 1, -1]] * 4, "the value -1"),
        ("classes", [0, 1, 2, 5], "from 0 to 4, or -100"),
        ("classes", [0, 1, 2, -1], "the value -1"),
    ],
)
def test_indices_out_of_range_are_refused(name: str, values: Any, said: str) -> None:
    _, _, step = training()
    binding = binding_of(frontend.training_step(step, *batch()))
    assert binding is not None
    with pytest.raises(ArgumentError, match=said):
        binding.given(name, torch.tensor(values))
    with pytest.raises(ArgumentError, match=said):
        binding.elsewhere().given(name, torch.tensor(values))
    binding.given("classes", torch.tensor([0, -100, 4, 1]))


def test_indices_in_brackets_may_be_negative_but_not_out_of_range() -> None:
    class Chosen(nn.Module):
        def forward(self, x: Tensor, rows: Tensor) -> Tensor:
            return x[rows]

    binding = binding_of(frontend.torch_module(Chosen(), torch.randn(4, 3), torch.arange(2)))
    assert binding is not None
    binding.given("rows", torch.tensor([-4, 3]))
    for wrong in ([0, 4], [-5, 0]):
        with pytest.raises(ArgumentError, match="index takes indices from -4 to 3"):
            binding.given("rows", torch.tensor(wrong))


def test_hooks_of_parameters_run_in_the_step() -> None:
    results = []
    for traced in (False, True):
        module, _, step = training(0.0)
        module.head.weight.register_hook(lambda gradient: 0.25 * gradient)
        module.head.bias.register_post_accumulate_grad_hook(halve)
        call = compiled(step) if traced else step
        torch.manual_seed(1)
        for _ in range(2):
            call(*batch())
        results.append(copy.deepcopy(module.state_dict()))
    for name, value in results[0].items():
        assert torch.allclose(value, results[1][name], atol=1e-6), name


def halve(parameter: Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.mul_(0.5)


def compiled(step: Step) -> Callable[..., Any]:
    """A step as DaCe runs it in one process, not lowered."""
    sdfg = frontend.training_step(step, *batch())
    binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None

    def call(*inputs: Tensor) -> Any:
        given = {n: binding.given(n, x) for n, x in zip(sdfg.arg_names, inputs, strict=True)}
        with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
            return binding.returned([run(**binding.arguments(), **given)])

    return call


AFTER_COMPILE = """
import torch
from torch import nn
from distspmd import frontend

twice = torch.compile(lambda x: 2 * x, backend="eager")
twice(torch.ones(3))
model = nn.Linear(3, 2)
for kind in (torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adagrad):
    optimizer = kind(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    frontend.training_step(step, torch.ones(4, 3))
print("traced")
"""


def test_steps_are_traced_after_torch_compiled_something() -> None:
    done = subprocess.run([sys.executable, "-c", AFTER_COMPILE], capture_output=True, text=True)
    assert done.stdout.strip() == "traced", done.stderr
