"""More architectures of `transformers`, which are tried on paper alone."""

from __future__ import annotations

from typing import Any

from zoo.architectures import (
    ARCHITECTURES,
    Architecture,
    Logits,
    enter_decoder,
    images,
)

_BEFORE = set(ARCHITECTURES)
_GROUPED = {"num_key_value_heads": 2}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_OTHER_NAMES = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None}

enter_decoder("granite", "GraniteConfig", "GraniteForCausalLM", **_GROUPED)
enter_decoder(
    "starcoder2",
    "Starcoder2Config",
    "Starcoder2ForCausalLM",
    residual_dropout=0.0,
    embedding_dropout=0.0,
    **_GROUPED,
)
enter_decoder(
    "gptj",
    "GPTJConfig",
    "GPTJForCausalLM",
    n_embd=16,
    n_layer=2,
    n_head=4,
    n_positions=32,
    rotary_dim=2,
    attn_pdrop=0.0,
    embd_pdrop=0.0,
    resid_pdrop=0.0,
    **_OTHER_NAMES,
)
enter_decoder(
    "gpt_neo",
    "GPTNeoConfig",
    "GPTNeoForCausalLM",
    **{**_OTHER_NAMES, "hidden_size": 16},
    num_layers=2,
    num_heads=4,
    attention_types=[[["global", "local"], 1]],
    window_size=4,
    resid_dropout=0.0,
    embed_dropout=0.0,
    attention_dropout=0.0,
)
enter_decoder("glm", "GlmConfig", "GlmForCausalLM", head_dim=4, **_GROUPED)
enter_decoder("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", **_GROUPED)
enter_decoder("nemotron", "NemotronConfig", "NemotronForCausalLM", **_GROUPED)
enter_decoder(
    "mpt",
    "MptConfig",
    "MptForCausalLM",
    d_model=16,
    n_heads=4,
    n_layers=2,
    expansion_ratio=2,
    max_seq_len=32,
    **_OTHER_NAMES,
)
enter_decoder(
    "squeezebert",
    "SqueezeBertConfig",
    "SqueezeBertForMaskedLM",
    embedding_size=16,
    **_NO_DROPOUT,
)
enter_decoder(
    "lfm2", "Lfm2Config", "Lfm2ForCausalLM", layer_types=["conv", "full_attention"], **_GROUPED
)
enter_decoder(
    "xglm",
    "XGLMConfig",
    "XGLMForCausalLM",
    is_single=True,
    d_model=16,
    ffn_dim=24,
    num_layers=2,
    attention_heads=4,
    dropout=0.0,
    attention_dropout=0.0,
    **_OTHER_NAMES,
)
enter_decoder(
    "deepseek3",
    "DeepseekV3Config",
    "DeepseekV3ForCausalLM",
    is_single=True,
    num_key_value_heads=4,
    n_routed_experts=4,
    n_group=2,
    topk_group=1,
    num_experts_per_tok=2,
    moe_intermediate_size=12,
    kv_lora_rank=8,
    q_lora_rank=8,
    qk_rope_head_dim=4,
    qk_nope_head_dim=4,
    v_head_dim=4,
    first_k_dense_replace=1,
    n_shared_experts=1,
)
enter_decoder(
    "olmoe",
    "OlmoeConfig",
    "OlmoeForCausalLM",
    is_single=True,
    num_experts=4,
    num_experts_per_tok=2,
    **_GROUPED,
)
enter_decoder(
    "mamba2",
    "Mamba2Config",
    "Mamba2ForCausalLM",
    is_single=True,
    state_size=4,
    num_heads=4,
    head_dim=8,
    n_groups=2,
    chunk_size=4,
    num_attention_heads=None,
    intermediate_size=None,
)
enter_decoder("mpnet", "MPNetConfig", "MPNetForMaskedLM", **_NO_DROPOUT)
enter_decoder(
    "xlnet",
    "XLNetConfig",
    "XLNetLMHeadModel",
    d_model=16,
    n_layer=2,
    n_head=4,
    d_inner=24,
    dropout=0.0,
    max_position_embeddings=None,
    **_OTHER_NAMES,
)


def _classifier(name: str, config: str, model: str, **settings: Any) -> None:
    def build() -> Architecture:
        import transformers

        wanted = {
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 16,
            "patch_size": 4,
            "num_labels": 5,
        }
        made = getattr(transformers, config)(**wanted, **_NO_DROPOUT, **settings)
        return Architecture(
            Logits(getattr(transformers, model)(made), "pixel_values"), (images(16),)
        )

    ARCHITECTURES[name] = build


_classifier("deit", "DeiTConfig", "DeiTForImageClassification")
_classifier(
    "beit",
    "BeitConfig",
    "BeitForImageClassification",
    drop_path_rate=0.0,
    use_relative_position_bias=True,
)
_classifier("dinov2", "Dinov2Config", "Dinov2ForImageClassification")

MORE = {name: ARCHITECTURES.pop(name) for name in [*ARCHITECTURES] if name not in _BEFORE}
"""By name, as in the table of the others."""
