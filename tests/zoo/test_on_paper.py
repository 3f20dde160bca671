"""Architectures whose steps are evaluated by NumPy, in double precision: no program is compiled."""

from __future__ import annotations

import copy

import pytest
import torch
from from_torch.kernels_in_numpy import Program
from torch import Tensor, nn
from training.run_models import difference

from zoo.registry import EXACT, PAPER, build, named, tried_by
from zoo.run_zoo import nudged, step_of


def after(module: nn.Module, inputs: list[Tensor]) -> dict[str, Tensor]:
    """The loss of a step, and all tensors after it."""
    loss = step_of(module)(*inputs)
    return {"": loss, **module.state_dict()}


@pytest.mark.slow
@pytest.mark.parametrize("what", ["forward", "step"])
@pytest.mark.parametrize("name", named(EXACT, PAPER))
def test_an_architecture_means_what_it_does_in_torch(
    name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = build(name)
    module, inputs = example.module, list(example.inputs)
    if not example.is_single:
        module = module.double()
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    tolerance = 2e-5 if example.is_single else 1e-6  # parts of some compute in single precision
    if what == "forward":
        (found,) = Program(monkeypatch).of(module.eval(), *inputs)
        with torch.no_grad():
            assert difference(found, module(*inputs)) < tolerance
        return
    module.train()
    same, other = copy.deepcopy(module), nudged(module)
    (loss,), live = Program(monkeypatch).step(step_of(module), *inputs)
    wanted = after(same, inputs)
    given = {"": loss, **live}
    keys = [key for key in wanted if key in given]
    assert len(keys) > 5
    worst = max(difference(given[key], wanted[key]) for key in keys)
    if EXACT in tried_by(name) and not example.is_single:  # none of these amplifies rounding
        assert len(keys) > 11
        assert difference(loss, wanted[""]) < 1e-9
        assert worst < 1e-8
    elif worst > tolerance:  # norms of few elements amplify rounding, in torch too
        again = after(other, inputs)
        assert worst < 10 * max(difference(again[key], wanted[key]) for key in keys) < 1e-2
