"""Published models on the device ``meta`` begin with what their own initialisers write."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from distspmd.frontend.from_torch.closures import closed_over
from distspmd.frontend.from_torch.first_values import Tape
from distspmd.frontend.from_torch.initialisers import initialise, noting


def test_a_llama_is_initialised_as_by_its_library() -> None:
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=1,
        num_attention_heads=4,
        vocab_size=100,
    )
    with torch.device("meta"):
        module = LlamaForCausalLM(config)
    closed = closed_over(module.forward)
    with noting(tape := Tape()), torch.no_grad():
        initialise(closed)
    real = LlamaForCausalLM(config)
    theirs = {**dict(real.named_parameters()), **dict(real.named_buffers())}
    found = {**closed.parameters, **closed.buffers}
    assert found.keys() == theirs.keys()
    for name, tensor in found.items():
        recipe = tape.recipe(tensor, name)
        assert recipe is not None
        assert recipe.is_by_element == (name not in closed.passing)
        places = np.arange(tensor.numel(), dtype=np.uint64)
        values, expected = recipe.values(places, 0), theirs[name].detach().reshape(-1)
        if tensor.dim() == 1:  # frequencies of rotations, and norms
            assert values.equal(expected)
        else:
            assert float(values.std()) == pytest.approx(float(expected.std()), rel=0.1)
            assert abs(float(values.mean())) < 0.003
