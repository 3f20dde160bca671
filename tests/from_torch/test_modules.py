"""Modules that ranks run wherever they are called: classes, instances, gradients, searches."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

from distspmd import frontend
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.runtime import notices


@frontend.module(schedule=frontend.data_parallel(2))
class Perceptron(nn.Module):
    """Written as for DaCeML."""

    def __init__(self) -> None:
        super(Perceptron, self).__init__()  # noqa: UP008 - as it used to be written
        self.up, self.down = nn.Linear(6, 32).double(), nn.Linear(32, 3).double()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.down(torch.tanh(self.up(x)))
        return found


def plain(module: nn.Module, x: Tensor) -> Tensor:
    """What the parameters of a perceptron give, without its class."""
    w, b, v, c = module.parameters()
    return torch.tanh(x @ w.T + b) @ v.T + c


def test_classes_and_instances_run_on_ranks() -> None:
    call_on_ranks("from_torch.test_modules", "run(comm)", 2)


def run(comm: Any) -> None:
    torch.manual_seed(0)
    module, x = Perceptron(), torch.randn(5, 6, dtype=torch.float64)
    assert isinstance(module, Perceptron)
    assert list(module.state_dict()) == ["up.weight", "up.bias", "down.weight", "down.bias"]
    found = module(x)
    assert module.partitioned.programs[0].lowering.ranks == 2
    if comm.rank == 0:
        torch.testing.assert_close(found, plain(module, x))
        refuse_gradients(module, found, x)
    trained(comm, module, x)
    one_instance(comm, x)
    searched(comm, x)


def refuse_gradients(module: nn.Module, found: Tensor, x: Tensor) -> None:
    for ask in (
        lambda: found.sum().backward(retain_graph=True),
        lambda: torch.autograd.grad(found.sum(), [*module.parameters()], retain_graph=True),
        lambda: (found * module.down.bias).sum().backward(),
    ):
        with pytest.raises(UnsupportedProgram, match=r"Put the loss and backward\(\) into a"):
            ask()
    assert module.up.weight.grad is None


def trained(comm: Any, module: nn.Module, x: Tensor) -> None:
    """A step that calls it has a schedule of its own; then the module has its parameters."""
    other = copy.deepcopy(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    with frontend.partitioned(step, frontend.zero(3, 2), comm) as train:
        for _ in range(3):
            train(x)
        with torch.no_grad():
            found = module(x)
    if comm.rank == 0:
        assert not found.requires_grad
        theirs = torch.optim.SGD(other.parameters(), lr=0.1)
        for _ in range(3):
            theirs.zero_grad()
            plain(other, x).square().mean().backward()
            theirs.step()
        torch.testing.assert_close(found, plain(other, x).detach())


def one_instance(comm: Any, x: Tensor) -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6)).double()
    with torch.no_grad():
        wanted = module(x)
    assert frontend.module(module, schedule=frontend.megatron(2), comm=comm) is module
    assert type(module).__name__ == "Sequential"
    assert isinstance(module, nn.Sequential)
    found = module(x)
    if comm.rank == 0:
        torch.testing.assert_close(found.detach(), wanted)
        assert module.partitioned.programs[0].lowering.ranks == 2


def searched(comm: Any, x: Tensor) -> None:
    """Without a schedule there is a search, of a forward pass and of a training step."""
    torch.manual_seed(1)
    model, other = (nn.Linear(300, 200).double() for _ in range(2))
    other.load_state_dict(model.state_dict())
    x = torch.randn(400, 300, dtype=torch.float64)

    def step_of(model: nn.Module) -> Any:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    reference = step_of(other)
    with (
        frontend.partitioned(step_of(model), comm=comm) as train,
        frontend.partitioned(model, comm=comm) as evaluate,
    ):
        for _ in range(3):
            loss, wanted = train(x), reference(x)
            assert comm.rank or float(loss) == pytest.approx(float(wanted), rel=1e-9)
        found = evaluate(x)
        if comm.rank == 0:
            torch.testing.assert_close(found, other(x), rtol=1e-6, atol=1e-8)
            said = [line for line in notices._said if "searched: 2 ranks" in str(line)]
            assert len(said) == 2, notices._said
            assert [each.programs[0].lowering.searched for each in (train, evaluate)]


def test_a_partitioned_module_is_copied_and_pickled_as_before() -> None:
    module = Perceptron()
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert type(other) is Perceptron
        torch.testing.assert_close(other.state_dict(), module.state_dict())


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"Functions are for frontend\.partitioned"):
        frontend.module(lambda x: x)
    with pytest.raises(ArgumentError, match=r"Functions are for frontend\.partitioned"):
        frontend.module(schedule=frontend.fsdp(2))(int)
    with pytest.raises(ArgumentError, match=r"class 'Linear' was given\. Write @frontend\.module"):
        frontend.partitioned(nn.Linear, frontend.fsdp(2))


def test_options_of_a_search_need_one() -> None:
    with pytest.raises(ArgumentError, match="are of a search"):
        frontend.partitioned(nn.Linear(2, 2), frontend.fsdp(2), comm=object(), memory="1 GB")
    with pytest.raises(ArgumentError, match="are of a search"):
        frontend.partitioned(nn.Linear(2, 2), comm=object(), ranks=2, search=False)
