"""Training steps before they are lowered, run by DaCe in one process, beside torch."""

from __future__ import annotations

from typing import Any

import dace
import pytest
import torch
from torch.utils import _pytree as pytree

from distspmd import frontend
from distspmd.binding import binding_of
from distspmd.codegen.build import plain
from training.models import MODELS, Model

CHECKED = ("attention", "einsums", "lenet", "residual")


def farthest(given: Any, wanted: Any) -> float:
    pairs = zip(pytree.tree_leaves(given), pytree.tree_leaves(wanted), strict=True)
    return max(float((a.detach() - b.detach()).abs().max()) for a, b in pairs)


@pytest.mark.parametrize("model", [m for m in MODELS if m.name in CHECKED], ids=lambda m: m.name)
def test_three_steps_are_those_of_torch(model: Model) -> None:
    module, _, step = model.build()
    same, _, reference = model.build()
    sdfg = frontend.training_step(step, *model.batch(), name=model.name)
    binding, run = binding_of(sdfg), plain(sdfg)
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
    binding, run = binding_of(sdfg), plain(sdfg)
    assert binding is not None
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        given = {n: binding.given(n, x) for n in sdfg.arg_names}
        first, second = (torch.tensor(run(**binding.arguments(), **given)) for _ in range(2))
    kept = first != 0
    assert 0.7 < kept.double().mean() < 0.8
    assert torch.allclose(first[kept], x[kept] / 0.75)
    assert (kept != (second != 0)).any()
    assert len({tuple(row) for row in kept.tolist()}) > 30
