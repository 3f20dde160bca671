"""Tensors outside of modules are read and written as those in modules; values that are known."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.execution.binding import binding_of
from from_torch.kernels_in_numpy import Program


class Cache:
    """Keys so far, as decoders keep them."""

    def __init__(self) -> None:
        self.keys = [torch.zeros(4, 3) for _ in range(2)]
        self.length = torch.zeros((), dtype=torch.long)
        self.calls = 0


def both(
    make: Callable[[], tuple[Callable[..., Any], Any]], monkeypatch: pytest.MonkeyPatch, *x: Tensor
) -> tuple[Any, Any]:
    """Results of three calls and what is kept, by us and by torch."""
    found = []
    for ours in (True, False):
        torch.manual_seed(0)
        step, kept = make()
        call = Program(monkeypatch).calls(step, *x) if ours else step
        results = []
        for _ in range(3):
            given = call(*x)
            leaves = given if isinstance(given, list | tuple) else [given]
            results.append([leaf.detach().clone() for leaf in leaves])
        found.append((results, copy.deepcopy(kept() if callable(kept) else kept)))
    return found[0], found[1]


def same(given: Any, wanted: Any) -> None:
    torch.testing.assert_close(given, wanted, rtol=1e-5, atol=1e-6)


def test_a_table_in_a_variable_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.arange(6.0).reshape(2, 3)

    def look_up(i: Tensor) -> Tensor:
        return table[i] * 2

    i = torch.tensor([1, 0, 1])
    call = Program(monkeypatch).calls(look_up, i)
    same(call(i)[0], table[i] * 2)
    table += 1
    same(call(i)[0], table[i] * 2)


def test_an_object_is_written_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> tuple[Callable[..., Any], Any]:
        cache, linear = Cache(), nn.Linear(3, 3)

        def step(x: Tensor) -> Tensor:
            cache.keys[0].index_copy_(0, cache.length[None], linear(x).detach())
            cache.keys[1] = cache.keys[1] + cache.keys[0]
            cache.length += 1
            return cache.keys[1].sum(0)

        return step, lambda: (cache.keys, cache.length)

    same(*both(make, monkeypatch, torch.randn(1, 3)))


def test_a_parameter_on_its_own_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> tuple[Callable[..., Any], Any]:
        scale, linear = torch.ones(3, requires_grad=True), nn.Linear(3, 3)
        optimizer = torch.optim.SGD([scale, *linear.parameters()], lr=0.05, momentum=0.9)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = (linear(x) * scale).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, lambda: (scale.detach(), linear.state_dict())

    same(*both(make, monkeypatch, torch.randn(4, 3)))


def test_a_dictionary_has_states_by_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> tuple[Callable[..., Any], Any]:
        linear = nn.Linear(3, 2)
        momenta = {p: torch.zeros_like(p) for p in linear.parameters()}

        def step(x: Tensor) -> Tensor:
            loss = linear(x).square().sum()
            linear.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p, momentum in momenta.items():
                    momenta[p].mul_(0.9).add_(p.grad)
                    p.sub_(momentum, alpha=0.1)
            return loss

        return step, lambda: [*linear.parameters(), *momenta.values(), *momenta]

    found, wanted = both(make, monkeypatch, torch.randn(4, 3))
    same(found, wanted)


def test_a_state_that_a_dictionary_gets_in_the_step_is_refused_and_undone() -> None:
    linear, momenta = nn.Linear(3, 2), dict[Tensor, Tensor]()
    momenta[linear.bias] = torch.zeros(2)

    def step(x: Tensor) -> Tensor:
        for p in linear.parameters():
            momenta[p] = momenta.get(p, torch.zeros_like(p)) + 1
        return linear(x)

    with pytest.raises(UnsupportedProgram, match=r"keeps a tensor in momenta\[a tensor\]"):
        frontend.training_step(step, torch.randn(4, 3))
    assert [*momenta] == [linear.bias]


def test_data_of_a_parameter_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> tuple[Callable[..., Any], Any]:
        first, second = nn.Linear(3, 3), nn.Linear(3, 3)

        def step(x: Tensor) -> Tensor:
            for p, q in zip(first.parameters(), second.parameters(), strict=True):
                q.data = q.data * 0.9 + p.data * 0.1
            return second(x)

        return step, lambda: [first.state_dict(), second.state_dict()]

    same(*both(make, monkeypatch, torch.randn(4, 3)))


def _grows(cache: Cache) -> Callable[[Tensor], Tensor]:
    def step(x: Tensor) -> Tensor:
        cache.keys.append(x * 2)
        return x

    return step


def _counts(cache: Cache) -> Callable[[Tensor], Tensor]:
    def step(x: Tensor) -> Tensor:
        cache.calls += 1
        return x * cache.calls

    return step


def _longer(cache: Cache) -> Callable[[Tensor], Tensor]:
    def step(x: Tensor) -> Tensor:
        cache.keys[0] = torch.cat([cache.keys[0], x])
        return cache.keys[0]

    return step


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_grows, r"keeps a tensor in cache.keys\[2\]"),
        (_counts, "changes the number cache.calls from 0 to 1"),
        (_longer, r"the shape \[5, 3\] where cache.keys\[0\]"),
    ],
)
def test_what_no_tensor_can_take_is_refused_and_undone(
    make: Callable[[Cache], Any], said: str
) -> None:
    cache = Cache()
    with pytest.raises(UnsupportedProgram, match=said):
        frontend.training_step(make(cache), torch.randn(1, 3))
    assert len(cache.keys) == 2
    assert cache.calls == 0
    assert type(cache.keys[0]) is torch.Tensor
    assert cache.keys[0].shape == (4, 3)


class Carried(nn.Module):
    """It begins where the last call has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.h, self.seen = nn.Linear(3, 3), None, 0

    def forward(self, x: Tensor) -> Tensor:
        self.h = torch.tanh(self.linear(x) + (0 if self.h is None else self.h))
        return self.h


class Counted(Carried):
    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        return self.linear(x) * self.seen


class Shown(Carried):
    """What it keeps is for others to look at."""

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        self.h = torch.tanh(self.linear(x))
        return self.h


@pytest.mark.parametrize("kind", [Carried, Counted])
def test_a_module_that_carries_something_on_is_refused(kind: type[nn.Module]) -> None:
    with pytest.raises(UnsupportedProgram, match="does something else where it finds them"):
        frontend.torch_module(kind(), torch.randn(2, 3))


def test_a_module_may_keep_what_it_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = Shown(), torch.randn(2, 3)
    same(Program(monkeypatch).of(module, x)[0], torch.tanh(module.linear(x)))
    assert module.h is None


class Graph:
    """One graph, and which of its nodes are trained."""

    def __init__(self) -> None:
        self.x, self.y = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
        self.mask = torch.tensor([True, False, True, True, False])


def test_a_mask_that_is_known_decides_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    data, module = Graph(), nn.Linear(3, 3)

    def loss() -> Tensor:
        return functional.cross_entropy(module(data.x)[data.mask], data.y[data.mask])

    call = Program(monkeypatch).calls(loss)
    same(call()[0], loss().detach())
    data.mask[1] = True
    with pytest.raises(ArgumentError, match=r"'data.mask' has the values that it had"):
        call()


def test_a_mask_of_constants_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_diagonal(x: Tensor) -> Tensor:
        n = x.shape[0]
        return x[~torch.eye(n, dtype=torch.bool)].view(n, n - 1)

    x = torch.randn(4, 4)
    same(Program(monkeypatch).calls(off_diagonal, x)(x)[0], off_diagonal(x))


def test_a_mask_that_an_argument_decides_is_refused() -> None:
    with pytest.raises(UnsupportedProgram, match="depends on the values of tensors"):
        frontend.training_step(lambda x: x[x > 0], torch.randn(4))


def test_what_the_function_changes_decides_nothing() -> None:
    cache = Cache()

    def step(x: Tensor) -> Tensor:
        found = x * int(cache.length)
        cache.length += 1
        return found

    with pytest.raises(UnsupportedProgram, match="decide what the function does"):
        frontend.training_step(step, torch.randn(3))


def test_distributions_do_not_look_at_their_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    def likelihood(x: Tensor) -> Tensor:
        normal = torch.distributions.Normal(x, x.exp())
        return normal.log_prob(x + 1) + torch.distributions.Categorical(logits=x).entropy()

    x = torch.randn(4)
    same(Program(monkeypatch).calls(likelihood, x)(x)[0], likelihood(x))


def test_numbers_of_an_argument_are_counted_below_the_least_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def counted(x: Tensor) -> Tensor:
        return torch.bincount(x.reshape(-1), minlength=4).clamp(min=1)

    x = torch.tensor([[2, 0], [2, 3]])
    (found,), _ = Program(monkeypatch).step(counted, x)
    assert torch.equal(found, counted(x))
    binding = binding_of(frontend.training_step(counted, x))
    assert binding is not None
    for wrong in (4, -1):
        with pytest.raises(ArgumentError, match="takes indices from 0 to 3"):
            binding.given("x", torch.tensor([[2, 0], [2, wrong]]))
    with pytest.raises(UnsupportedProgram, match="the shape of what"):
        frontend.training_step(lambda x: torch.bincount(x + 1, minlength=4), x)
