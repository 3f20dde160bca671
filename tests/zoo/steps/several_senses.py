"""Models of `transformers` that read texts beside images, sounds and series, called with labels."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.steps.encoders import encoder
from zoo.steps.pictures import _SEEN, _SIGHT, _TEXT, _VIT, _classified, model
from zoo.steps.table import (
    BATCH,
    NO,
    Training,
    classes,
    fit,
    images,
    loss_of_model,
    padded,
    published,
    transformer,
    words,
)
from zoo.steps.texts import causal

model(
    "cvt",
    "CvtForImageClassification",
    "CvtConfig",
    _SEEN,
    _classified(32),
    embed_dim=[8, 8, 16],
    num_heads=[1, 2, 2],
    depth=[1, 2, 3],
    patch_sizes=[3, 3, 3],
    drop_rate=[0.0] * 3,
    drop_path_rate=[0.0] * 3,
)
model(
    "vilt",
    "ViltForQuestionAnswering",
    "ViltConfig",
    ("input_ids", "pixel_values", "labels"),
    lambda: (words(), images(16), torch.rand(BATCH, 3)),
    **{**_TEXT, **_VIT},
    num_labels=3,
    max_image_length=-1,
)
model(
    "git_captions",
    "GitForCausalLM",
    "GitConfig",
    ("input_ids", "attention_mask", "pixel_values", "labels"),
    lambda: (words(), padded(), images(16), words()),
    **_TEXT,
    vision_config={**_SIGHT},
)
model(
    "efficientformer_like_swiftformer",
    "SwiftFormerForImageClassification",
    "SwiftFormerConfig",
    _SEEN,
    _classified(32),
    image_size=32,
    depths=[1, 1, 1, 1],
    embed_dims=[8, 8, 8, 8],
    mlp_ratio=2,
    drop_path_rate=0.0,
)
model(
    "textnet",
    "TextNetForImageClassification",
    "TextNetConfig",
    _SEEN,
    _classified(32),
    stem_num_channels=3,
    stem_out_channels=4,
    hidden_sizes=[4, 4, 8, 8, 8],
    conv_layer_kernel_sizes=[[[3, 3]], [[3, 1]], [[1, 3]], [[3, 3]]],
    conv_layer_strides=[[2], [2], [2], [1]],
)
model(
    "sew",
    "SEWForSequenceClassification",
    "SEWConfig",
    ("input_values", "labels"),
    lambda: (torch.randn(BATCH, 400), classes(2)),
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    squeeze_factor=2,
    conv_dim=[8, 8],
    conv_kernel=[10, 3],
    conv_stride=[5, 2],
    num_conv_pos_embeddings=4,
    num_conv_pos_embedding_groups=2,
    layerdrop=0.0,
    hidden_dropout=0.0,
    feat_proj_dropout=0.0,
    activation_dropout=0.0,
    attention_dropout=0.0,
    apply_spec_augment=False,
    classifier_proj_size=8,
)
model(
    "autoformer_like_patchtsmixer",
    "PatchTSMixerForPrediction",
    "PatchTSMixerConfig",
    ("past_values", "future_values"),
    lambda: (torch.randn(BATCH, 16, 2), torch.randn(BATCH, 4, 2)),
    context_length=16,
    prediction_length=4,
    patch_length=4,
    patch_stride=4,
    num_input_channels=2,
    d_model=8,
    num_layers=2,
    dropout=0.0,
    head_dropout=0.0,
)


def _boxes() -> Tensor:
    """Left, top, right, bottom."""
    return torch.randint(0, 60, (BATCH, 6, 4)).sort(-1).values


encoder(
    "layoutlm_tokens",
    "LayoutLMForTokenClassification",
    "LayoutLMConfig",
    ("input_ids", "bbox", "attention_mask", "labels"),
    lambda: (words(), _boxes(), padded(), classes(2, BATCH, 6)),
    max_2d_position_embeddings=64,
)
encoder(
    "lxmert",
    "LxmertForQuestionAnswering",
    "LxmertConfig",
    ("input_ids", "visual_feats", "visual_pos", "attention_mask", "labels"),
    lambda: (words(), torch.randn(BATCH, 3, 8), torch.rand(BATCH, 3, 4), padded(), classes(3)),
    num_qa_labels=3,
    l_layers=1,
    x_layers=1,
    r_layers=1,
    visual_feat_dim=8,
)
causal("biogpt_padded", "BioGptForCausalLM", "BioGptConfig", layerdrop=0.0)
causal("glm4_padded", "Glm4ForCausalLM", "Glm4Config", head_dim=4, num_key_value_heads=2)
causal("smollm3_padded", "SmolLM3ForCausalLM", "SmolLM3Config", num_key_value_heads=2)
causal(
    "hunyuan_padded",
    "HunYuanDenseV1ForCausalLM",
    "HunYuanDenseV1Config",
    head_dim=4,
    num_key_value_heads=2,
)
causal("nanochat_padded", "NanoChatForCausalLM", "NanoChatConfig", num_key_value_heads=2)
causal(
    "zamba2",
    "Zamba2ForCausalLM",
    "Zamba2Config",
    mamba_d_state=4,
    mamba_expand=2,
    mamba_ngroups=1,
    n_mamba_heads=4,
    mamba_headdim=8,
    chunk_size=4,
    hybrid_layer_ids=[1],
    layers_block_type=["mamba", "hybrid"],
    num_mem_blocks=1,
    adapter_rank=4,
)


@published
def blip_contrastive() -> Training:
    """Texts beside images, with a temperature that is learned."""
    from transformers import BlipConfig, BlipModel

    text = {
        **_TEXT,
        "encoder_hidden_size": 16,
        **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0),
    }
    made = BlipModel(BlipConfig(text_config=text, vision_config=_SIGHT, projection_dim=12))

    def loss_of(m: torch.nn.Module, *inputs: Tensor) -> Tensor:
        names = ("input_ids", "attention_mask", "pixel_values")
        loss: Tensor = m(**dict(zip(names, inputs, strict=True)), return_loss=True).loss
        return loss

    return fit(made, loss_of, lambda: (words(), padded(), images(16)))


@published
def swin2sr() -> Training:
    """Images of twice the size."""
    settings = {"image_size": 8, "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2]}
    made = transformer(
        "Swin2SRForImageSuperResolution",
        "Swin2SRConfig",
        **{**NO, **settings, "window_size": 4, "upscale": 2, "drop_path_rate": 0.0},
    )
    return fit(
        made,
        lambda m, x, y: (m(pixel_values=x).reconstruction - y).abs().mean(),
        lambda: (images(8), images(16)),
    )


@published
def depth_anything() -> Training:
    """Depth over the features of a DINOv2."""
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    seen = Dinov2Config(
        **{**_VIT, "mlp_ratio": 2, "patch_size": 4},
        out_features=["stage1", "stage2"],
        reshape_hidden_states=False,
        drop_path_rate=0.0,
    )
    config = DepthAnythingConfig(
        backbone_config=seen,
        patch_size=4,
        reassemble_hidden_size=16,
        reassemble_factors=[2, 1],
        neck_hidden_sizes=[8, 8],
        fusion_hidden_size=8,
        head_hidden_size=4,
    )
    return fit(
        DepthAnythingForDepthEstimation(config),
        lambda m, x, y: (m(pixel_values=x).predicted_depth - y).abs().mean(),
        lambda: (images(16), torch.rand(BATCH, 16, 16)),
    )


@published
def speech_to_text() -> Training:
    """Sound through strided convolutions, words out."""
    made = transformer(
        "Speech2TextForConditionalGeneration",
        "Speech2TextConfig",
        **{
            **NO,
            "vocab_size": 50,
            "d_model": 16,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24,
            "input_feat_per_channel": 8,
            "conv_channels": 16,
            "max_source_positions": 32,
            "max_target_positions": 16,
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    )
    return fit(
        made,
        loss_of_model("input_features", "labels"),
        lambda: (torch.randn(BATCH, 16, 8), words(4)),
    )


@published
def trocr() -> Training:
    """An encoder of images before a decoder of texts."""
    from transformers import TrOCRConfig, TrOCRForCausalLM, ViTConfig, ViTModel
    from transformers import VisionEncoderDecoderModel as Both

    encoder_of = ViTModel(
        ViTConfig(**_VIT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    )
    decoder = TrOCRForCausalLM(
        TrOCRConfig(
            vocab_size=50,
            d_model=16,
            decoder_layers=2,
            decoder_attention_heads=4,
            decoder_ffn_dim=24,
            max_position_embeddings=16,
            dropout=0.0,
            pad_token_id=0,
        )
    )
    made = Both(encoder=encoder_of, decoder=decoder)
    made.config.decoder_start_token_id, made.config.pad_token_id = 1, 0
    return fit(made, loss_of_model(*_SEEN), lambda: (images(16), words(4)))
