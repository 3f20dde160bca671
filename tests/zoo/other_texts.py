"""Models of texts in other configurations than in the table of architectures."""

from __future__ import annotations

import torch

from zoo.architectures import words
from zoo.other_configurations import ED, ND, ON, enc, s2s

enc(
    "llama3rope",
    "LlamaConfig",
    "LlamaForCausalLM",
    rope_parameters={
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
    attention_bias=True,
    mlp_bias=True,
    tie_word_embeddings=True,
    num_key_value_heads=1,
)
enc(
    "llama_hd",
    "LlamaConfig",
    "LlamaForCausalLM",
    head_dim=6,
    num_key_value_heads=2,
    num_hidden_layers=3,
)
enc(
    "llama_linear",
    "LlamaConfig",
    "LlamaForCausalLM",
    rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0},
    hidden_size=24,
    num_attention_heads=6,
    num_key_value_heads=3,
    pretraining_tp=1,
)
enc(
    "llama_yarn",
    "LlamaConfig",
    "LlamaForCausalLM",
    rope_parameters={
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 2.0,
        "original_max_position_embeddings": 16,
    },
)
enc(
    "qwen2_sliding",
    "Qwen2Config",
    "Qwen2ForCausalLM",
    use_sliding_window=True,
    sliding_window=3,
    max_window_layers=1,
    num_key_value_heads=2,
)
enc(
    "phi_half",
    "PhiConfig",
    "PhiForCausalLM",
    partial_rotary_factor=0.5,
    qk_layernorm=True,
    num_key_value_heads=2,
)
enc(
    "phi3_long",
    "Phi3Config",
    "Phi3ForCausalLM",
    num_key_value_heads=2,
    rope_parameters={
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0, 2.0],
        "long_factor": [2.0, 3.0],
        "original_max_position_embeddings": 16,
        "factor": 2.0,
    },
    sliding_window=4,
)
enc(
    "gpt2_scaled",
    "GPT2Config",
    "GPT2LMHeadModel",
    scale_attn_by_inverse_layer_idx=True,
    reorder_and_upcast_attn=True,
    activation_function="relu",
    n_embd=16,
    n_layer=2,
    n_head=2,
    n_positions=32,
    n_inner=20,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
)
enc(
    "opt350",
    "OPTConfig",
    "OPTForCausalLM",
    ffn_dim=24,
    word_embed_proj_dim=8,
    do_layer_norm_before=False,
)
enc(
    "falcon_new", "FalconConfig", "FalconForCausalLM", new_decoder_architecture=True, num_kv_heads=2
)
enc(
    "falcon_alibi",
    "FalconConfig",
    "FalconForCausalLM",
    alibi=True,
    multi_query=False,
    parallel_attn=False,
)
enc(
    "gemma3_mm",
    "Gemma3TextConfig",
    "Gemma3ForCausalLM",
    head_dim=8,
    sliding_window=3,
    num_key_value_heads=1,
    num_hidden_layers=6,
    layer_types=None,
)
enc(
    "qwen3_moe",
    "Qwen3MoeConfig",
    "Qwen3MoeForCausalLM",
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=12,
    head_dim=4,
    num_key_value_heads=2,
)
enc(
    "granitemoe",
    "GraniteMoeConfig",
    "GraniteMoeForCausalLM",
    num_local_experts=4,
    num_experts_per_tok=2,
    num_key_value_heads=2,
)
enc(
    "gpt_oss",
    "GptOssConfig",
    "GptOssForCausalLM",
    num_local_experts=4,
    num_experts_per_tok=2,
    head_dim=4,
    num_key_value_heads=2,
    sliding_window=4,
)
enc("falconmamba", "FalconMambaConfig", "FalconMambaForCausalLM", state_size=4)
enc(
    "rwkv",
    "RwkvConfig",
    "RwkvForCausalLM",
    attention_hidden_size=16,
    context_length=32,
    rescale_every=0,
)
enc(
    "recurrentgemma",
    "RecurrentGemmaConfig",
    "RecurrentGemmaForCausalLM",
    num_key_value_heads=1,
    lru_width=16,
    attention_window_size=4,
    head_dim=4,
    num_hidden_layers=3,
)
enc(
    "codegen",
    "CodeGenConfig",
    "CodeGenForCausalLM",
    n_embd=16,
    n_layer=2,
    n_head=4,
    n_positions=32,
    rotary_dim=2,
    **ON,
)
enc(
    "bigcode",
    "GPTBigCodeConfig",
    "GPTBigCodeForCausalLM",
    attn_pdrop=0.0,
    embd_pdrop=0.0,
    resid_pdrop=0.0,
    n_embd=16,
    n_layer=2,
    n_head=4,
    n_positions=32,
    **ON,
)
enc("persimmon", "PersimmonConfig", "PersimmonForCausalLM")
enc("olmo", "OlmoConfig", "OlmoForCausalLM", clip_qkv=1.0)
enc("helium", "HeliumConfig", "HeliumForCausalLM", head_dim=4, num_key_value_heads=2)
enc(
    "llama4",
    "Llama4TextConfig",
    "Llama4ForCausalLM",
    num_local_experts=4,
    num_key_value_heads=2,
    head_dim=4,
    intermediate_size_mlp=24,
    attention_chunk_size=4,
)
enc("roformer", "RoFormerConfig", "RoFormerForMaskedLM", embedding_size=16, **ND)
enc("fnet", "FNetConfig", "FNetForMaskedLM", hidden_dropout_prob=0.0)
enc("convbert", "ConvBertConfig", "ConvBertForMaskedLM", embedding_size=16, **ND)
enc(
    "mobilebert",
    "MobileBertConfig",
    "MobileBertForMaskedLM",
    embedding_size=8,
    intra_bottleneck_size=8,
    **ND,
)
enc("ernie", "ErnieConfig", "ErnieForMaskedLM", **ND)
enc("megatronbert", "MegatronBertConfig", "MegatronBertForMaskedLM", **ND)
enc("camembert", "CamembertConfig", "CamembertForMaskedLM", **ND)
enc(
    "bert_cls",
    "BertConfig",
    "BertForSequenceClassification",
    num_labels=3,
    names=("input_ids", "attention_mask"),
    inp=lambda: (words(), torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])),
    **ND,
)
enc(
    "funnel",
    "FunnelConfig",
    "FunnelForMaskedLM",
    d_model=16,
    n_head=4,
    d_head=4,
    d_inner=24,
    block_sizes=[1, 1],
    **ON,
)
enc(
    "nystrom",
    "NystromformerConfig",
    "NystromformerForMaskedLM",
    num_landmarks=6,
    segment_means_seq_len=6,
    conv_kernel_size=3,
    **ND,
)
enc("bigbird", "BigBirdConfig", "BigBirdForMaskedLM", attention_type="original_full", **ND)
s2s(
    "t5_gated",
    "T5Config",
    "T5ForConditionalGeneration",
    d_model=16,
    d_kv=4,
    d_ff=24,
    num_layers=2,
    num_heads=4,
    feed_forward_proj="gated-gelu",
    tie_word_embeddings=False,
    dropout_rate=0.0,
    decoder_start_token_id=0,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
)
s2s(
    "umt5",
    "UMT5Config",
    "UMT5ForConditionalGeneration",
    d_model=16,
    d_kv=4,
    d_ff=24,
    num_layers=2,
    num_heads=4,
    dropout_rate=0.0,
    decoder_start_token_id=0,
    **ON,
)
s2s("pegasus", "PegasusConfig", "PegasusForConditionalGeneration", **ED)
s2s("mbart", "MBartConfig", "MBartForConditionalGeneration", **ED)
s2s(
    "marian",
    "MarianConfig",
    "MarianMTModel",
    **{**ED, "pad_token_id": 0, "decoder_start_token_id": 0},
)
