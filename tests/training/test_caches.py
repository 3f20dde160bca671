"""Decoding with a cache of keys and values that stays on the ranks between calls."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

import distspmd
from distspmd import frontend

WORDS, WIDTH, HEADS, MOST, BATCH, PROMPT, NEW = 50, 16, 4, 12, 2, 4, 4


class Decoder(nn.Module):
    """A layer of attention that writes what it has seen at the places of the words."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.qkv = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.out, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WORDS)
        for name in ("k", "v"):
            self.register_buffer(name, torch.zeros(BATCH, HEADS, MOST, WIDTH // HEADS))

    def forward(self, words: Tensor, places: Tensor) -> Tensor:
        b, t = words.shape
        x = self.table(words)
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        self.k[:, :, places] = k
        self.v[:, :, places] = v
        seen = torch.arange(MOST)[None, :] <= places[:, None]
        scores = (q @ self.k.transpose(-1, -2)).masked_fill(~seen, float("-inf"))
        mixed = (scores.softmax(-1) @ self.v).transpose(1, 2).reshape(b, t, WIDTH)
        return self.head(x + self.out(mixed))[:, -1].argmax(-1, keepdim=True)


def build() -> Decoder:
    torch.manual_seed(1)
    return Decoder().eval()


PRESETS: dict[str, Callable[[int], Any]] = {
    "data_parallel": frontend.data_parallel,
    "megatron": frontend.megatron,
}


@pytest.mark.parametrize("length", [PROMPT, 1])
@pytest.mark.parametrize(
    ("preset", "cut"),
    [("data_parallel", "[1{data}2, 4, 12, 4]"), ("megatron", "[2, 2{model}4, 12, 4]")],
)
def test_a_cache_is_split_and_does_not_move(preset: str, cut: str, length: int) -> None:
    sdfg = frontend.torch_module(
        build(), torch.zeros(BATCH, length, dtype=torch.long), torch.arange(length)
    )
    lowering = distspmd.lower(sdfg, PRESETS[preset](2))
    assert [str(lowering.argument_layouts[name]) for name in ("k", "v")] == [cut, cut]
    assert not {m.data for m in lowering.memlets} & {"k", "v"}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_decoded_words_are_those_of_torch(ranks: int) -> None:
    call_on_ranks("training.test_caches", "decode(comm)", ranks)


def decoded(call: Callable[..., Any], is_root: bool = True) -> list[Tensor]:
    """Words of a prompt, and those that follow."""
    words = torch.arange(BATCH * PROMPT).reshape(BATCH, PROMPT) + 3
    places, found = torch.arange(PROMPT), []
    for _ in range(NEW):
        words = call(words, places) if is_root else call()
        places = places[-1:] + 1
        found.append(words)
    return found


def decode(comm: Any) -> None:
    """Decode on ranks, beside torch on rank 0."""
    for preset in PRESETS.values():
        module = build()
        same = copy.deepcopy(module)
        with frontend.partitioned(module, preset(comm.size), comm) as step:
            found = decoded(step, comm.rank == 0)
            step.collect()
            assert len(step.programs) == 2, "for the prompt, and for a word"
        if comm.rank == 0:
            with torch.no_grad():
                assert torch.equal(torch.cat(found, 1), torch.cat(decoded(same), 1))
            torch.testing.assert_close(module.k, same.k)
            torch.testing.assert_close(module.v, same.v)
