"""Training steps before they are lowered, run by DaCe in one process, beside torch."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from typing import Any

import dace
import pytest
import torch
from dace import SDFG
from torch import nn
from torch.utils import _pytree as pytree

from distspmd import frontend
from distspmd.codegen.build import load_unlowered
from distspmd.execution.binding import binding_of
from distspmd.nodes.contraction import Contraction
from training.models import MODELS

CHECKED = ("attention", "einsums", "lenet", "residual")
FIRST = ("attention", "rotary", "group norm", "places")
"""Those that are not slow."""
pytestmark = pytest.mark.usefixtures("unoptimised")


def by_tier(names: Iterable[str]) -> list[Any]:
    return [n if n in FIRST else pytest.param(n, marks=pytest.mark.slow) for n in names]


def farthest(given: Any, wanted: Any) -> float:
    pairs = zip(pytree.tree_leaves(given), pytree.tree_leaves(wanted), strict=True)
    return max(float((a.detach() - b.detach()).abs().max()) for a, b in pairs)


@pytest.mark.parametrize("name", by_tier(CHECKED))
def test_three_steps_are_those_of_torch(name: str) -> None:
    (model,) = (model for model in MODELS if model.name == name)
    module, _, step = model.build()
    same, _, reference = model.build()
    sdfg = frontend.training_step(step, *model.batch(), name=model.name)
    binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None
    torch.manual_seed(5)
    for _ in range(3):
        batch = model.batch()
        given = {n: binding.given(n, x) for n, x in zip(sdfg.arg_names, batch, strict=True)}
        with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
            result = run(**binding.arguments(), **given)
        assert farthest(binding.returned([result]), reference(*batch)) < 1e-5
        assert farthest(module.state_dict(), same.state_dict()) < 1e-5


def test_dropout_draws_by_place_and_call() -> None:
    torch.manual_seed(3)
    x = torch.rand(40, 30) + 1
    sdfg = frontend.torch_module(torch.nn.Dropout(0.25).train(), x, name="dropped")
    binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        given = {n: binding.given(n, x) for n in sdfg.arg_names}
        first, second = (torch.tensor(run(**binding.arguments(), **given)) for _ in range(2))
    kept = first != 0
    assert 0.7 < kept.double().mean() < 0.8
    assert torch.allclose(first[kept], x[kept] / 0.75)
    assert (kept != (second != 0)).any()
    assert len({tuple(row) for row in kept.tolist()}) > 30


WINDOWS = [
    nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2),
    nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1),
    nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 1), padding=1, dilation=(1, 2), groups=2),
    nn.AvgPool1d(3, 2, 1),
    nn.AvgPool2d(2),
    nn.MaxPool1d(2),
    nn.AdaptiveAvgPool2d((5, 1)),
    nn.UpsamplingNearest2d(scale_factor=2),
    nn.AvgPool2d((3, 2), 2, 1, count_include_pad=False),
    nn.Conv3d(4, 6, (2, 3, 1), stride=(1, 2, 3), padding=(1, 0, 2), dilation=(1, 1, 2), groups=2),
    nn.ConvTranspose3d(4, 2, 2, stride=(1, 2, 2), padding=1, output_padding=(0, 1, 0)),
    nn.AvgPool3d((2, 1, 3), 2, (0, 0, 1)),
    nn.MaxPool3d(2, (1, 2, 2), 1),
]
EXTENTS = {"1": (7,), "2": (5, 7), "3": (3, 4, 7)}


def test_gradients_of_windows_are_those_of_torch() -> None:
    torch.manual_seed(3)
    befores = [nn.Linear(7, 7) for _ in WINDOWS]
    inner = [EXTENTS[re.findall(r"(\d)d", type(window).__name__)[0]] for window in WINDOWS]

    def gradients(*inputs: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for window, before, x in zip(WINDOWS, befores, inputs, strict=True):
            tensors = [*before.parameters(), *window.parameters()]
            made = window(before(x))
            found += [made, *torch.autograd.grad((made * made.detach().cos()).sum(), tensors)]
        return found

    check(gradients, "windows", *(torch.randn(2, 4, *extents) for extents in inner))


def rotated(x: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Heads with their places mixed in, by halves and by pairs."""
    cos, sin = x[..., :1, None].cos(), x[..., :1, None].sin()
    heads = q.view(2, 6, 2, 4).transpose(1, 2)
    by_halves = torch.cat([-heads[..., 2:], heads[..., :2]], -1)
    by_pairs = torch.stack([-heads[..., 1::2], heads[..., ::2]], -1).flatten(-2)
    cos, sin = cos.transpose(1, 2), sin.transpose(1, 2)
    return heads * cos + by_halves * sin, heads * cos + by_pairs * sin


LAYERS: dict[str, tuple[nn.Module, Callable[..., Any]]] = {
    "LSTM": (nn.LSTM(8, 3, 2, bidirectional=True), lambda x, m: m(x)[0]),
    "GRU": (nn.GRU(8, 3, batch_first=True), lambda x, m: m(x)[0]),
    "decoder": (nn.TransformerDecoderLayer(8, 2, 12, 0.0), lambda x, m: m(x, x[:1].sin())),
    "rotary": (nn.Linear(8, 8), lambda x, m: torch.cat(rotated(x, m(x)), -1)),
    "group norm": (nn.Sequential(nn.GroupNorm(3, 6), nn.ReLU6()), lambda x, m: m(3 * x)),
    "places": (
        nn.Linear(8, 8),
        lambda x, m: m(x).max(1)[0] + m(x).gather(1, x[:, 1:2].abs().long()),
    ),
}


@pytest.mark.parametrize("name", by_tier(LAYERS))
def test_gradients_of_layers_are_those_of_torch(name: str) -> None:
    torch.manual_seed(3)
    layer, call = LAYERS[name]

    def gradients(x: torch.Tensor) -> list[torch.Tensor]:
        made = call(x, layer)
        loss = (made * made.detach().cos()).sum()
        return [made, *torch.autograd.grad(loss, list(layer.parameters()))]

    check(gradients, name.replace(" ", "_"), torch.randn(2, 6, 8))


def check(function: Callable[..., list[torch.Tensor]], name: str, *inputs: torch.Tensor) -> SDFG:
    """One call of a function, run by DaCe, gives what torch does; the program."""
    sdfg = frontend.training_step(function, *inputs, name=name)
    binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        given = {n: binding.given(n, x) for n, x in zip(sdfg.arg_names, inputs, strict=True)}
        found = binding.returned(run(**binding.arguments(), **given))
    for place, pair in enumerate(zip(found, function(*inputs), strict=True)):
        assert farthest(*pair) < 1e-4, place
    return sdfg


def test_a_dimension_may_be_split_after_it_was_sliced() -> None:
    torch.manual_seed(3)
    layer, x = nn.Linear(5, 6), torch.randn(4, 5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        left = layer(x)[..., :3] * x[0, :3] - layer(x)[..., 3:]
        loss = (torch.cat([left, layer(x)[..., 3:]], -1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    sdfg = frontend.training_step(step, x)
    binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None
    before = copy.deepcopy(layer.state_dict())
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        run(**binding.arguments(), x=x)
    found = copy.deepcopy(layer.state_dict())
    layer.load_state_dict(before)
    step(x)
    assert farthest(found, layer.state_dict()) < 1e-6 < farthest(found, before)


def test_rows_of_a_table_are_picked() -> None:
    torch.manual_seed(3)
    table = nn.Embedding(11, 6, padding_idx=2)

    def gradients(words: torch.Tensor) -> list[torch.Tensor]:
        made = table(words)
        return [made, *torch.autograd.grad((made * made.detach().cos()).sum(), [table.weight])]

    sdfg = check(gradients, "picked", torch.randint(0, 11, (5, 7)))
    picks = [n.pick for n, _ in sdfg.all_nodes_recursive() if isinstance(n, Contraction)]
    assert len([pick for pick in picks if pick]) == 2


def test_an_operand_in_both_orders_is_stored_once() -> None:
    class Squared(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            shifted = 2 * x + 1
            return shifted @ shifted.t()

    sdfg = frontend.torch_module(Squared(), torch.randn(6, 5))
    (state,) = sdfg.states()
    maps = [n for n in state.nodes() if isinstance(n, dace.nodes.MapEntry)]
    assert len(maps) == 2  # one makes the operand, one hands out the result
    (node,) = (n for n in state.nodes() if isinstance(n, Contraction))
    assert len({edge.data.data for edge in state.in_edges(node)}) == 1
