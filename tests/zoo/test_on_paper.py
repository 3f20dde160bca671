"""Architectures whose steps are evaluated by NumPy, in double precision: no program is compiled."""

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
@pytest.mark.parametrize("what", ["forward", "step"])
@pytest.mark.parametrize("name", MORE)
def test_an_architecture_means_what_it_does_in_torch(
    name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_torchvision()
    torch.manual_seed(0)
    example = MORE[name]()
    module, inputs = example.module, list(example.inputs)
    if not example.is_single:
        module = module.double()
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    tolerance = 2e-5 if example.is_single else 1e-7
    if what == "forward":
        (found,) = Program(monkeypatch).of(module.eval(), *inputs)
        with torch.no_grad():
            assert difference(found, module(*inputs)) < tolerance
        return
    same = copy.deepcopy(module.train())
    (loss,), live = Program(monkeypatch).step(step_of(module), *inputs)
    assert difference(loss, step_of(same)(*inputs)) < tolerance
    wanted = {key: value for key, value in same.state_dict().items() if key in live}
    assert len(wanted) > 5
    assert max(difference(live[key], value) for key, value in wanted.items()) < tolerance
