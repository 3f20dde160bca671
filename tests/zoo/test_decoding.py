"""Greedy decoding with the caches of keys and values of `transformers`, beside its `generate`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from from_torch.kernels_in_numpy import Program
from torch import Tensor, nn

from zoo.registry import tell_torchvision

BATCH, PROMPT, NEW, MOST = 2, 4, 3, 12
pytestmark = pytest.mark.slow


class Growing(nn.Module):
    """The next words, and a cache that is longer with each of them."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, *held: Tensor) -> tuple[Tensor, ...]:
        from transformers import DynamicCache

        cache = DynamicCache(config=self.model.config)
        for layer in range(len(held) // 2):
            cache.update(held[2 * layer], held[2 * layer + 1], layer)
        found = self.model(input_ids=words, past_key_values=cache, use_cache=True)
        return (_likeliest(found), *_held(cache))


class Static(nn.Module):
    """The next words, and a cache of one size: programs for two shapes are enough."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, places: Tensor, *held: Tensor) -> tuple[Tensor, ...]:
        from transformers import StaticCache

        cache = StaticCache(config=self.model.config, max_cache_len=MOST)
        for layer, keys, values in zip(cache.layers, held[::2], held[1::2], strict=True):
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
            layer.cumulative_length = places[:1].clone()
        found = self.model(
            input_ids=words,
            past_key_values=cache,
            position_ids=places.expand(words.shape[0], -1),
            cache_position=places,
            use_cache=True,
        )
        return (_likeliest(found), *_held(cache))


def _likeliest(found: Any) -> Tensor:
    words: Tensor = found.logits[:, -1].argmax(-1, keepdim=True)
    return words


def _held(cache: Any) -> list[Tensor]:
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


def small_llama() -> Any:
    """Of two layers."""
    tell_torchvision()
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def model() -> Any:
    return small_llama()


@pytest.mark.parametrize("kind", [Growing, Static])
def test_words_are_those_that_generate_gives(
    kind: type[nn.Module], model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, program = kind(model).eval(), Program(monkeypatch)
    prompt = torch.randint(3, 50, (BATCH, PROMPT))
    wanted = model.generate(prompt, max_new_tokens=NEW, do_sample=False)
    held = [torch.zeros(BATCH, 2, MOST, 4) for _ in range(4)] if kind is Static else []
    words, places, made = prompt, torch.arange(PROMPT), [prompt]
    for _ in range(NEW):
        given = [words, places] if kind is Static else [words]
        words, *held = program.of(module, *given, *held)
        places = places[-1:] + 1
        made.append(words)
    assert torch.equal(torch.cat(made, dim=1), wanted)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_static_cache_stays_on_the_ranks(ranks: int) -> None:
    call_on_ranks("zoo.test_decoding", "decode(comm)", ranks)


def decode(comm: Any) -> None:
    """Greedy decoding with a cache that the function closes over, by presets, beside `generate`."""
    from transformers import StaticCache

    from distspmd import frontend

    model = small_llama()
    prompt = torch.randint(3, 50, (BATCH, PROMPT))
    wanted = model.generate(prompt, max_new_tokens=NEW, do_sample=False)
    for preset in (frontend.megatron(comm.size), frontend.data_parallel(comm.size)):
        cache = StaticCache(config=model.config, max_cache_len=MOST)
        cache.early_initialization(BATCH, 2, 4, torch.float32, torch.device("cpu"))

        def following(words: Tensor, cache: Any = cache) -> Tensor:
            with torch.no_grad():
                return _likeliest(model(input_ids=words, past_key_values=cache, use_cache=True))

        with frontend.partitioned(following, preset, comm) as step:
            words, made = prompt, [prompt]
            for _ in range(NEW):
                words = step(words) if comm.rank == 0 else step()
                made.append(words)
            for program in step.programs if comm.rank == 0 else ():
                moved = {m.data for m in program.lowering.memlets}
                assert not any("keys" in name or "values" in name for name in moved)
        if comm.rank == 0:
            assert torch.equal(torch.cat(made, dim=1), wanted)
