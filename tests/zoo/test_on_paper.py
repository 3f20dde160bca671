"""Architectures whose steps are evaluated by NumPy, in double precision: nothing is compiled."""

from __future__ import annotations

import copy

import pytest
import torch
from from_torch.kernels_in_numpy import Program
from training.run_models import difference

from zoo.architectures import tell_torchvision
from zoo.more_architectures import MORE
from zoo.run_zoo import step_of


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_a_step_means_what_it_does_in_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tell_torchvision()
    torch.manual_seed(0)
    example = MORE[name]()
    module = example.module.double().train()
    same = copy.deepcopy(module)
    inputs = [x.double() if x.is_floating_point() else x for x in example.inputs]
    (loss,), live = Program(monkeypatch).step(step_of(module), *inputs)
    assert difference(loss, step_of(same)(*inputs)) < 1e-9
    wanted = {key: value for key, value in same.state_dict().items() if key in live}
    assert len(wanted) > 10
    assert max(difference(live[key], value) for key, value in wanted.items()) < 1e-8
