"""More architectures of `transformers`, which are tried on paper alone."""

from __future__ import annotations

from functools import partial
from typing import Any

from zoo.architectures import Logits, enter_decoder, images
from zoo.registry import EXACT, Architecture, enter

_decoder = partial(enter_decoder, tried=EXACT)
_GROUPED = {"num_key_value_heads": 2}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_OTHER_NAMES = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None}

_decoder("granite", "GraniteConfig", "GraniteForCausalLM", **_GROUPED)
_decoder(
    "starcoder2",
    "Starcoder2Config",
    "Starcoder2ForCausalLM",
    residual_dropout=0.0,
    embedding_dropout=0.0,
    **_GROUPED,
)
_decoder(
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
_decoder(
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
_decoder("glm", "GlmConfig", "GlmForCausalLM", head_dim=4, **_GROUPED)
_decoder("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", **_GROUPED)
_decoder("nemotron", "NemotronConfig", "NemotronForCausalLM", **_GROUPED)
_decoder(
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
_decoder(
    "squeezebert",
    "SqueezeBertConfig",
    "SqueezeBertForMaskedLM",
    embedding_size=16,
    **_NO_DROPOUT,
)
_decoder(
    "lfm2", "Lfm2Config", "Lfm2ForCausalLM", layer_types=["conv", "full_attention"], **_GROUPED
)
_decoder(
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
_decoder(
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
_decoder(
    "olmoe",
    "OlmoeConfig",
    "OlmoeForCausalLM",
    is_single=True,
    num_experts=4,
    num_experts_per_tok=2,
    **_GROUPED,
)
_decoder(
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
_decoder("mpnet", "MPNetConfig", "MPNetForMaskedLM", **_NO_DROPOUT)
_decoder(
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

    enter(name, build, EXACT)


_classifier("deit", "DeiTConfig", "DeiTForImageClassification")
_classifier(
    "beit",
    "BeitConfig",
    "BeitForImageClassification",
    drop_path_rate=0.0,
    use_relative_position_bias=True,
)
_classifier("dinov2", "Dinov2Config", "Dinov2ForImageClassification")
