"""Models of texts from `transformers`, with labels, masks of padding, and unusual settings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from zoo.steps.table import (
    CALLS,
    Training,
    adamw,
    fit,
    labelled,
    loss_of_model,
    padded,
    published,
    transformer,
    words,
)

GROUPS = ("deepseek2", "flex_olmo", "lfm2_moe", "minimax_m2", "dots1")
"""Mixtures of experts: torch has products by groups in single precision alone."""
SINGLE: dict[str, Any] = {"dtype": torch.float32, "tolerance": 1e-4}
GROUPED = {"num_key_value_heads": 2}
CAUSAL = ("input_ids", "attention_mask", "labels")


def batch_of(on_left: bool = False) -> tuple[Tensor, ...]:
    """Texts with their mask and labels."""
    text, mask = words(), padded(on_left=on_left)
    return text, mask, labelled(text, mask)


def causal(name: str, model: str, config: str, /, left: bool = False, **settings: Any) -> None:
    """Enter a decoder that is called with a mask and labels."""

    def build() -> Training:
        made = transformer(model, config, **settings)
        if name in GROUPS:
            return fit(made, loss_of_model(*CAUSAL), batch_of, clip=1.0, **SINGLE)
        return fit(made, loss_of_model(*CAUSAL), lambda: batch_of(left), clip=1.0)

    build.__name__ = name
    published(build)


causal("llama_padded", "LlamaForCausalLM", "LlamaConfig", attn_implementation="eager", **GROUPED)
causal("llama_left", "LlamaForCausalLM", "LlamaConfig", True, tie_word_embeddings=True, **GROUPED)
causal("mistral_window", "MistralForCausalLM", "MistralConfig", sliding_window=3, **GROUPED)
causal(
    "gemma2_capped",
    "Gemma2ForCausalLM",
    "Gemma2Config",
    head_dim=4,
    sliding_window=4,
    attn_implementation="eager",
    **GROUPED,
)
causal(
    "gemma3_window",
    "Gemma3ForCausalLM",
    "Gemma3TextConfig",
    head_dim=4,
    sliding_window=4,
    layer_types=["sliding_attention", "full_attention"],
    **GROUPED,
)
causal(
    "gpt2_padded",
    "GPT2LMHeadModel",
    "GPT2Config",
    n_embd=16,
    n_layer=2,
    n_head=4,
    n_positions=32,
    n_inner=20,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
)
causal("opt_padded", "OPTForCausalLM", "OPTConfig", ffn_dim=24, word_embed_proj_dim=16)
causal("falcon_padded", "FalconForCausalLM", "FalconConfig", multi_query=True, alibi=True)
causal("bloom_padded", "BloomForCausalLM", "BloomConfig", hidden_dropout=0.0)
causal(
    "gptj_padded",
    "GPTJForCausalLM",
    "GPTJConfig",
    n_embd=16,
    n_layer=2,
    n_head=4,
    rotary_dim=2,
    n_positions=32,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
)
causal(
    "seed_oss", "SeedOssForCausalLM", "SeedOssConfig", head_dim=4, residual_dropout=0.0, **GROUPED
)
causal("olmo3_padded", "Olmo3ForCausalLM", "Olmo3Config", sliding_window=4, **GROUPED)
causal(
    "dots1",
    "Dots1ForCausalLM",
    "Dots1Config",
    n_routed_experts=4,
    n_shared_experts=1,
    moe_intermediate_size=8,
    num_experts_per_tok=2,
    first_k_dense_replace=1,
    n_group=1,
    topk_group=1,
    head_dim=4,
    **GROUPED,
)
causal(
    "deepseek2",
    "DeepseekV2ForCausalLM",
    "DeepseekV2Config",
    n_routed_experts=4,
    n_shared_experts=1,
    moe_intermediate_size=8,
    num_experts_per_tok=2,
    kv_lora_rank=8,
    q_lora_rank=None,
    qk_rope_head_dim=4,
    qk_nope_head_dim=4,
    v_head_dim=4,
    first_k_dense_replace=1,
    n_group=1,
    topk_group=1,
    num_key_value_heads=4,
)
causal(
    "flex_olmo",
    "FlexOlmoForCausalLM",
    "FlexOlmoConfig",
    num_experts=4,
    num_experts_per_tok=2,
    **GROUPED,
)
causal(
    "granite_hybrid",
    "GraniteMoeHybridForCausalLM",
    "GraniteMoeHybridConfig",
    layer_types=["mamba", "attention"],
    num_local_experts=0,
    shared_intermediate_size=24,
    mamba_n_heads=4,
    mamba_d_head=8,
    mamba_d_state=4,
    mamba_n_groups=1,
    **GROUPED,
)
causal("mamba_labels", "MambaForCausalLM", "MambaConfig", state_size=4, num_attention_heads=None)
causal(
    "lfm2_moe",
    "Lfm2MoeForCausalLM",
    "Lfm2MoeConfig",
    moe_intermediate_size=8,
    num_experts=4,
    num_experts_per_tok=2,
    num_dense_layers=1,
    layer_types=["conv", "full_attention"],
    **GROUPED,
)
causal(
    "minimax_m2",
    "MiniMaxM2ForCausalLM",
    "MiniMaxM2Config",
    num_local_experts=4,
    num_experts_per_tok=2,
    head_dim=4,
    rotary_dim=2,
    **GROUPED,
)
causal(
    "exaone_padded",
    "Exaone4ForCausalLM",
    "Exaone4Config",
    sliding_window=4,
    sliding_window_pattern=2,
    **GROUPED,
)
causal(
    "jetmoe",
    "JetMoeForCausalLM",
    "JetMoeConfig",
    num_local_experts=4,
    num_experts_per_tok=2,
    kv_channels=4,
    **GROUPED,
)
causal("bert_generation", "BertGenerationDecoder", "BertGenerationConfig", is_decoder=True)
causal("qwen3_checkpointed", "Qwen3ForCausalLM", "Qwen3Config", head_dim=4, **GROUPED)


@published
def mixtral_balanced() -> Training:
    """With the loss that balances its experts."""
    made = transformer(
        "MixtralForCausalLM",
        "MixtralConfig",
        num_local_experts=4,
        output_router_logits=True,
        router_aux_loss_coef=0.1,
        **GROUPED,
    )
    return fit(made, loss_of_model(*CAUSAL), batch_of, clip=1.0, **SINGLE)


@published
def qwen2_accumulated() -> Training:
    """Two micro-batches a step, a schedule of warm-up, and clipping."""
    made = transformer(
        "Qwen2ForCausalLM",
        "Qwen2Config",
        use_sliding_window=True,
        sliding_window=3,
        max_window_layers=1,
        **GROUPED,
    ).double()
    optimizer = adamw(made.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 4))

    def step(text: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), dtype=torch.float64)
        for part in text.chunk(2):
            loss = made(input_ids=part, labels=part).loss / 2
            loss.backward()
            total = total + loss.detach()
        torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
        return total

    batches = [(words(batch=4),) for _ in range(CALLS)]
    return Training(step, batches, [made], scheduler.step)


@published
def phi3_checkpointed() -> Training:
    """With gradient checkpointing, as `transformers` switches it on."""
    made = transformer("Phi3ForCausalLM", "Phi3Config", resid_pdrop=0.0, embd_pdrop=0.0, **GROUPED)
    made.gradient_checkpointing_enable()
    return fit(made, loss_of_model(*CAUSAL), batch_of)


@published
def llama_autocast() -> Training:
    """In bfloat16, as torch casts."""
    made = transformer("LlamaForCausalLM", "LlamaConfig", **GROUPED)

    def loss_of(module: nn.Module, *inputs: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return loss_of_model(*CAUSAL)(module, *inputs)

    return fit(made, loss_of, batch_of, dtype=torch.float32, tolerance=2e-2)


@published
def gpt2_dropout() -> Training:
    """With the dropout of its default configuration."""
    made = transformer(
        "GPT2LMHeadModel",
        "GPT2Config",
        n_embd=16,
        n_layer=2,
        n_head=4,
        n_positions=32,
        hidden_size=None,
        num_hidden_layers=None,
        num_attention_heads=None,
    )
    return fit(made, loss_of_model(*CAUSAL), batch_of, tolerance=None)


class LowRank(nn.Module):
    """A linear layer that stays, and a product of two small matrices that learns."""

    def __init__(self, base: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.base = base
        self.a = nn.Parameter(0.1 * torch.randn(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2.0 * nn.functional.linear(nn.functional.linear(x, self.a), self.b)


@published
def llama_lora() -> Training:
    """Frozen but for low-rank updates of queries and values."""
    made = transformer("LlamaForCausalLM", "LlamaConfig", **GROUPED)
    made.requires_grad_(False)
    for layer in made.model.layers:
        layer.self_attn.q_proj = LowRank(layer.self_attn.q_proj)
        layer.self_attn.v_proj = LowRank(layer.self_attn.v_proj)
    return fit(made, loss_of_model(*CAUSAL), batch_of)
