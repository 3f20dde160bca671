"""Presets on a Llama of `transformers` with 4 layers: its calls are those of the textbooks."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
import torch
from dace import SDFG

import distspmd
from distspmd import frontend
from zoo.registry import build, tell_torchvision

BATCH, LENGTH, WIDTH, HIDDEN, WORDS, LAYERS, RANKS = 4, 8, 32, 48, 64, 4, 4
ACTIVATIONS = 4 * BATCH * LENGTH * WIDTH
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def llama() -> Any:
    tell_torchvision()
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=32,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config)


@pytest.fixture(scope="module")
def step(llama: Any) -> SDFG:
    optimizer = torch.optim.AdamW(llama.parameters())

    def step(words: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = llama(input_ids=words, labels=words).loss
        loss.backward()
        optimizer.step()
        return loss

    return frontend.training_step(step, torch.randint(3, WORDS, (BATCH, LENGTH)))


def moved(sdfg: SDFG, schedule: Any) -> Counter[int]:
    """How often so many bytes move, of what is at least a row; not arguments and results."""
    lowering = distspmd.lower(copy.deepcopy(sdfg), schedule)
    own = [m for m in lowering.memlets if m.data not in sdfg.arg_names]
    found = [m.solution.cost.nbytes for m in own if not m.data.startswith("__return")]
    return Counter(nbytes for nbytes in found if nbytes >= 4 * WIDTH)


def test_fsdp_gathers_each_parameter_twice(step: SDFG, llama: Any) -> None:
    """But the table and the head, each of which only one pass reads, or both at once."""
    found = moved(step, frontend.fsdp(RANKS))
    once = Counter((RANKS - 1) * nbytes for nbytes in gradients(llama))
    ends = Counter({(RANKS - 1) * 4 * WORDS * WIDTH: 2})
    assert found == once + once + once - ends


def gradients(llama: Any) -> list[int]:
    """Bytes of each."""
    return [4 * p.numel() for p in llama.parameters()]


def test_tensor_parallel_needs_two_all_reduces_a_layer_each_way(step: SDFG) -> None:
    """And one for the words of each end; of the logits two numbers of each token are reduced."""
    each = 2 * (RANKS - 1)
    wanted = {each * ACTIVATIONS: 4 * LAYERS + 2, each * ACTIVATIONS // WIDTH: 2}
    assert moved(step, frontend.megatron(RANKS)) == wanted


def test_sequence_parallel_needs_as_many_scatters_and_gathers(step: SDFG) -> None:
    found = moved(step, frontend.sequence_parallel(RANKS))
    assert found[(RANKS - 1) * ACTIVATIONS] == 8 * LAYERS + 4


def test_data_parallel_reduces_each_gradient_once(step: SDFG, llama: Any) -> None:
    found = moved(step, frontend.data_parallel(RANKS))
    assert found == Counter(2 * (RANKS - 1) * nbytes for nbytes in gradients(llama))


def test_zero_scatters_each_gradient_and_gathers_each_parameter(step: SDFG, llama: Any) -> None:
    found = moved(step, frontend.zero(1, RANKS))
    once = Counter((RANKS - 1) * nbytes for nbytes in gradients(llama))
    assert found == once + once


def test_encoders_with_decoders_need_one_all_reduce_a_product_of_heads_or_hidden_units() -> None:
    """Two a layer of the encoder, three of the decoder, and one for the words of each."""
    example = build("t5")
    sdfg = frontend.torch_module(example.module.eval(), *example.inputs)
    (batch, length), width = example.inputs[0].shape, example.module.model.config.d_model
    layers, of_decoder = example.module.model.config.num_layers, example.inputs[1].shape[1]
    each = 2 * 4 * batch * width
    assert moved(sdfg, frontend.megatron(2)) == Counter(
        {each * length: 2 * layers + 1, each * of_decoder: 3 * layers + 1}
    )
