"""Architectures of `transformers` and torchvision in other configurations than in the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from zoo.architectures import (
    _ENCODER_AND_DECODER,
    _SMALL,
    BATCH,
    Logits,
    _certain,
    images,
    words,
)
from zoo.registry import PAPER, Architecture, enter

ND = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
ON = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None}
_PROBABILITIES = ("dropout", "attention_dropout", "activation_dropout", "dropout_prob")
SINGLE = ("qwen3_moe", "granitemoe", "gpt_oss", "llama4")
"""Those that compute in single precision, whatever their parameters are."""


def enc(
    name: str,
    config: str,
    model: str,
    inp: Callable[[], tuple[Tensor, ...]] | None = None,
    result: str = "logits",
    names: tuple[str, ...] = ("input_ids",),
    **settings: Any,
) -> None:
    """Enter a model of a small configuration, without dropout."""

    def build() -> Architecture:
        import transformers

        wanted = {k: v for k, v in {**_SMALL, **settings}.items() if v is not None}
        made = _certain(getattr(transformers, model)(getattr(transformers, config)(**wanted)))
        for part in made.modules():
            for key in _PROBABILITIES:
                if isinstance(getattr(part, key, None), float):
                    setattr(part, key, 0.0)
        module = Logits(made, *names, result=result)
        return Architecture(module, inp() if inp else (words(),), name in SINGLE)

    enter(name, build, PAPER)


def s2s(name: str, config: str, model: str, **settings: Any) -> None:
    """Enter an encoder with a decoder."""
    names = ("input_ids", "decoder_input_ids")
    enc(name, config, model, lambda: (words(), words(4)), names=names, **settings)


def vis(
    name: str, config: str, model: str, size: int = 16, result: str = "logits", **settings: Any
) -> None:
    """Enter a model of images."""
    settings = {**dict.fromkeys(_SMALL), **settings}
    enc(name, config, model, lambda: (images(size),), result, ("pixel_values",), **settings)


def audio(name: str, config: str, model: str, **settings: Any) -> None:
    """Enter a model of sounds."""
    settings = {"max_position_embeddings": None, **settings}
    enc(
        name,
        config,
        model,
        lambda: (torch.randn(BATCH, 400),),
        "logits",
        ("input_values",),
        **settings,
    )


ED = {**_ENCODER_AND_DECODER, **ON, "intermediate_size": None}
W = {
    "conv_dim": [8, 8],
    "conv_kernel": [10, 3],
    "conv_stride": [5, 2],
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
    "layerdrop": 0.0,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "feat_proj_dropout": 0.0,
    "final_dropout": 0.0,
    "num_feat_extract_layers": 2,
    "apply_spec_augment": False,
}
