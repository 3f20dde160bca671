"""Encoders with heads, and encoders with decoders, from `transformers`, called with labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from zoo.steps.table import (
    BATCH,
    Training,
    classes,
    fit,
    loss_of_model,
    padded,
    published,
    transformer,
    words,
)
from zoo.steps.texts import batch_of


def encoder(
    name: str,
    model: str,
    config: str,
    names: tuple[str, ...],
    batch: Callable[[], tuple[Tensor, ...]],
    /,
    **settings: Any,
) -> None:
    """Enter an encoder with a head, that is called with labels."""

    def build() -> Training:
        return fit(transformer(model, config, **settings), loss_of_model(*names), batch)

    build.__name__ = name
    published(build)


def _sentence(*rest: Callable[[], Tensor]) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (words(), padded(), *(make() for make in rest))


_TEXT = ("input_ids", "attention_mask")
encoder(
    "bert_sentences",
    "BertForSequenceClassification",
    "BertConfig",
    (*_TEXT, "token_type_ids", "labels"),
    _sentence(lambda: classes(2, BATCH, 6), lambda: classes(3)),
    num_labels=3,
)
encoder(
    "bert_masked",
    "BertForMaskedLM",
    "BertConfig",
    (*_TEXT, "labels"),
    batch_of,
    position_embedding_type="absolute",
    attn_implementation="eager",
)
encoder(
    "bert_pretraining",
    "BertForPreTraining",
    "BertConfig",
    (*_TEXT, "labels", "next_sentence_label"),
    lambda: (*batch_of(), classes(2)),
)
encoder(
    "roberta_tokens",
    "RobertaForTokenClassification",
    "RobertaConfig",
    (*_TEXT, "labels"),
    _sentence(lambda: classes(5, BATCH, 6)),
    num_labels=5,
)
encoder(
    "distilbert_answers",
    "DistilBertForQuestionAnswering",
    "DistilBertConfig",
    (*_TEXT, "start_positions", "end_positions"),
    _sentence(lambda: classes(6), lambda: classes(6)),
    dim=16,
    hidden_dim=24,
    n_layers=2,
    n_heads=4,
    qa_dropout=0.0,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
)
encoder(
    "electra_replaced",
    "ElectraForPreTraining",
    "ElectraConfig",
    (*_TEXT, "labels"),
    _sentence(lambda: classes(2, BATCH, 6)),
    embedding_size=8,
)
encoder(
    "albert_choices",
    "AlbertForMultipleChoice",
    "AlbertConfig",
    ("input_ids", "labels"),
    lambda: (torch.randint(3, 50, (BATCH, 3, 6)), classes(3)),
    embedding_size=8,
    classifier_dropout_prob=0.0,
)
encoder(
    "deberta_sentences",
    "DebertaForSequenceClassification",
    "DebertaConfig",
    (*_TEXT, "labels"),
    _sentence(lambda: classes(2)),
    relative_attention=True,
    pos_att_type=["c2p", "p2c"],
    max_relative_positions=8,
)
encoder(
    "data2vec_text", "Data2VecTextForMaskedLM", "Data2VecTextConfig", (*_TEXT, "labels"), batch_of
)
encoder(
    "luke",
    "LukeForSequenceClassification",
    "LukeConfig",
    (*_TEXT, "labels"),
    _sentence(lambda: classes(2)),
    entity_vocab_size=10,
    entity_emb_size=8,
    use_entity_aware_attention=False,
)
encoder(
    "tapas",
    "TapasForSequenceClassification",
    "TapasConfig",
    (*_TEXT, "token_type_ids", "labels"),
    _sentence(lambda: torch.zeros(BATCH, 6, 7, dtype=torch.long), lambda: classes(2)),
    type_vocab_sizes=[3, 4, 4, 2, 2, 4, 4],
)
encoder(
    "perceiver_text",
    "PerceiverForMaskedLM",
    "PerceiverConfig",
    ("inputs", "attention_mask", "labels"),
    batch_of,
    num_latents=4,
    d_latents=8,
    d_model=8,
    num_blocks=1,
    num_self_attends_per_block=1,
    num_self_attention_heads=2,
    num_cross_attention_heads=2,
    qk_channels=8,
    v_channels=8,
    max_position_embeddings=6,
)
encoder(
    "modernbert_sentences",
    "ModernBertForSequenceClassification",
    "ModernBertConfig",
    (*_TEXT, "labels"),
    _sentence(lambda: classes(2)),
    local_attention=4,
    global_attn_every_n_layers=2,
    cls_token_id=1,
    sep_token_id=2,
    embedding_dropout=0.0,
    mlp_dropout=0.0,
    classifier_dropout=0.0,
)
encoder(
    "visual_bert",
    "VisualBertForQuestionAnswering",
    "VisualBertConfig",
    (*_TEXT, "visual_embeds", "labels"),
    _sentence(lambda: torch.randn(BATCH, 3, 8), lambda: torch.rand(BATCH, 4)),
    visual_embedding_dim=8,
    num_labels=4,
)

_BOTH = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "hidden_size": None,
    "intermediate_size": None,
    "num_hidden_layers": None,
    "num_attention_heads": None,
    "decoder_start_token_id": 2,
}


def _pairs() -> tuple[Tensor, ...]:
    answer = words(4)
    return words(), padded(), torch.where(answer < 8, -100, answer)


for _name, _model, _config, _settings in (
    ("bart_labels", "BartForConditionalGeneration", "BartConfig", {}),
    ("mvp_labels", "MvpForConditionalGeneration", "MvpConfig", {}),
    ("blenderbot_small", "BlenderbotSmallForConditionalGeneration", "BlenderbotSmallConfig", {}),
    (
        "nllb_moe",
        "NllbMoeForConditionalGeneration",
        "NllbMoeConfig",
        {
            "num_experts": 4,
            "encoder_sparse_step": 2,
            "decoder_sparse_step": 2,
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
        },
    ),
):
    encoder(_name, _model, _config, (*_TEXT, "labels"), _pairs, **{**_BOTH, **_settings})
_T5 = {
    "d_model": 16,
    "d_kv": 4,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 4,
    "dropout_rate": 0.0,
    "decoder_start_token_id": 0,
    **dict.fromkeys(
        (
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "max_position_embeddings",
        )
    ),
}
encoder(
    "t5_labels",
    "T5ForConditionalGeneration",
    "T5Config",
    (*_TEXT, "labels"),
    _pairs,
    **_T5,
    feed_forward_proj="gated-gelu",
    tie_word_embeddings=False,
)
encoder("t5_gemma", "MT5ForConditionalGeneration", "MT5Config", (*_TEXT, "labels"), _pairs, **_T5)
