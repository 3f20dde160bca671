"""What the front end refuses, and that it leaves the caller's objects as they were."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.execution.binding import binding_of


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def stepped(
    model: nn.Module, optimizer: torch.optim.Optimizer, inside: Callable[[Tensor], object]
) -> Callable[[Tensor], Tensor]:
    """A step that does something with its loss."""

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        inside(loss)
        loss.backward()
        optimizer.step()
        return loss

    return step


def refused(step: Callable[..., object], *inputs: Tensor) -> str:
    with pytest.raises(UnsupportedProgram) as raised:
        frontend.training_step(step, *inputs)
    return str(raised.value)


def test_an_operator_that_is_not_covered_is_named_with_its_module() -> None:
    class Inverted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.erfinv()

    model = nn.Sequential(nn.Linear(4, 3), Inverted())
    with pytest.raises(UnsupportedProgram, match=r"erfinv.*in the forward of 1\).*Covered are"):
        frontend.torch_module(model, torch.randn(2, 4))


@pytest.mark.parametrize(
    "fill",
    [
        lambda x: x + torch.full((), torch.finfo(torch.float64).min),
        lambda x: x.masked_fill(x > 0, 1e300),
        lambda x: functional.pad(x, (1, 1), value=1e300),
        lambda x: torch.full_like(x, 200, dtype=torch.int8),
        lambda x: torch.full_like(x, torch.nan, dtype=torch.int64),
    ],
)
def test_numbers_that_torch_refuses_are_not_made_infinite(fill: Callable[[Tensor], Tensor]) -> None:
    class Filled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return fill(x)

    x = torch.randn(2, 4)
    with pytest.raises(RuntimeError, match="without overflow"):
        fill(x)
    with pytest.raises(UnsupportedProgram, match=r"which elements of the type|numbers end at"):
        frontend.torch_module(Filled(), x)
    frontend.torch_module(nn.Sequential(nn.ConstantPad1d(1, torch.inf)), x)


@pytest.mark.parametrize(
    "read",
    [
        float,
        lambda loss: bool(loss > 0),
        lambda loss: loss.item() > 0,
        lambda loss: f"{loss.item():.3f}",
        lambda loss: loss[int(loss.item())],
        lambda loss: loss.tolist(),
    ],
)
def test_values_are_not_read_inside_of_a_step(read: Callable[[Tensor], object]) -> None:
    model = net()
    step = stepped(model, torch.optim.SGD(model.parameters()), read)
    assert "return the tensor, and read it after the call" in refused(step, torch.randn(2, 4))


def test_shapes_do_not_depend_on_data() -> None:
    model = net()
    assert "depends on the values" in refused(lambda x: model(x[x[:, 0] > 0]), torch.randn(2, 4))


def test_the_learning_rate_does_not_change_inside_of_a_step() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    step = stepped(model, optimizer, id)

    def step_and_schedule(x: Tensor) -> Tensor:
        loss = step(x)
        scheduler.step()
        return loss

    assert "scheduler.step() outside" in refused(step_and_schedule, torch.randn(2, 4))
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_dampened_first_step_is_refused() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9, dampening=0.1)
    assert "Run one step" in refused(stepped(model, optimizer, id), torch.randn(2, 4))


def test_modules_are_no_results() -> None:
    model = net()
    assert "returns Sequential" in refused(lambda x: (model(x), model), torch.randn(2, 4))


def test_arguments_are_tensors_on_the_cpu() -> None:
    model = net()
    with pytest.raises(UnsupportedProgram, match="device meta"):
        frontend.torch_module(net().to("meta"), torch.randn(2, 4, device="meta"))
    with pytest.raises(UnsupportedProgram, match="device meta"):
        frontend.torch_module(model, torch.randn(2, 4, device="meta"))
    with pytest.raises(UnsupportedProgram, match="is a int"):
        frontend.training_step(lambda x, n: model(x) * n, torch.randn(2, 4), 3)  # type: ignore[arg-type]


def test_tracing_leaves_the_module_and_the_optimizer_as_they_were() -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    tensors, values = list(model.parameters()), copy.deepcopy(model.state_dict())
    groups = [dict(group) for group in optimizer.param_groups]
    frontend.training_step(stepped(model, optimizer, id), torch.randn(2, 4))
    assert all(a is b for a, b in zip(model.parameters(), tensors, strict=True))
    assert all(tensor.grad is None for tensor in tensors)
    assert all(torch.equal(values[k], v) for k, v in model.state_dict().items())
    assert [dict(group) for group in optimizer.param_groups] == groups
    assert all(state["step"] == 0 for state in optimizer.state.values())


def test_arguments_are_bound_to_the_live_tensors() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sdfg = frontend.training_step(stepped(model, optimizer, id), torch.randn(2, 4))
    binding = binding_of(sdfg)
    assert binding is not None
    arguments = binding.arguments()
    assert arguments["t_0_weight"].ctypes.data == model[0].weight.data_ptr()
    optimizer.param_groups[0]["lr"] = 0.25
    (rate,) = (v for name, v in binding.arguments().items() if name.endswith("lr"))
    assert float(rate[0]) == 0.25
    with pytest.raises(ArgumentError, match=r"must have the shape \[2, 4\]"):
        binding.given("x", torch.randn(3, 4))


def test_views_keep_the_heads_apart() -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(8, 24)

        def forward(self, x: Tensor) -> Tensor:
            q, k, _ = self.project(x).view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
            return q @ k.transpose(-2, -1)

    sdfg = frontend.torch_module(Heads(), torch.randn(2, 5, 8))
    assert tuple(sdfg.arrays["project_weight"].shape) == (3, 2, 4, 8)
    assert tuple(sdfg.arrays["project_addmm"].shape) == (2, 5, 3, 2, 4)


def test_what_a_forward_pass_keeps_is_forgotten() -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4))
            self.cache: dict[str, Tensor] = {}
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            self.last = x
            self.cache.setdefault("square", self.weight**2)
            return x * self.cache["square"]

    model, x = Cached(), torch.randn(2, 4)
    frontend.torch_module(model, x)
    assert (model.calls, model.cache, hasattr(model, "last")) == (0, {}, False)
    assert torch.equal(model(x), x * model.weight**2)
