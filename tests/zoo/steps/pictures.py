"""Models of images, videos and sounds: from `transformers`, torchvision and timm, with labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

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


def model(
    name: str,
    kind: str,
    config: str,
    names: tuple[str, ...],
    batch: Callable[[], tuple[Tensor, ...]],
    /,
    **settings: Any,
) -> None:
    """Enter a model of `transformers`, which is called with labels."""

    def build() -> Training:
        made = transformer(kind, config, **{**NO, **settings})
        return fit(made, loss_of_model(*names), batch)

    build.__name__ = name
    published(build)


_VIT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "image_size": 16,
    "patch_size": 4,
}
_SEEN = ("pixel_values", "labels")


def _classified(size: int, count: int = 2) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (images(size), classes(count))


def _segmented(size: int, count: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (images(size), classes(count, BATCH, size, size))


model(
    "vit_labels",
    "ViTForImageClassification",
    "ViTConfig",
    _SEEN,
    _classified(16),
    **_VIT,
    qkv_bias=False,
    attn_implementation="eager",
)
model(
    "segformer_labels",
    "SegformerForSemanticSegmentation",
    "SegformerConfig",
    _SEEN,
    _segmented(32, 4),
    num_encoder_blocks=2,
    depths=[1, 1],
    sr_ratios=[2, 1],
    hidden_sizes=[8, 16],
    patch_sizes=[3, 3],
    strides=[2, 2],
    num_attention_heads=[1, 2],
    mlp_ratios=[2, 2],
    decoder_hidden_size=8,
    num_labels=4,
    drop_path_rate=0.0,
    classifier_dropout_prob=0.0,
)
model(
    "mobilenet2_labels",
    "MobileNetV2ForImageClassification",
    "MobileNetV2Config",
    _SEEN,
    _classified(32),
    depth_multiplier=0.25,
    classifier_dropout_prob=0.0,
)
model(
    "data2vec_vision",
    "Data2VecVisionForImageClassification",
    "Data2VecVisionConfig",
    _SEEN,
    _classified(16),
    **_VIT,
    use_relative_position_bias=True,
    drop_path_rate=0.0,
)
model(
    "mobilevit2",
    "MobileViTV2ForImageClassification",
    "MobileViTV2Config",
    _SEEN,
    _classified(64),
    width_multiplier=0.25,
    image_size=64,
    classifier_dropout_prob=0.0,
    ffn_dropout=0.0,
    attn_dropout=0.0,
)
model(
    "videomae",
    "VideoMAEForVideoClassification",
    "VideoMAEConfig",
    _SEEN,
    lambda: (torch.randn(BATCH, 4, 3, 8, 8), classes(2)),
    **{**_VIT, "image_size": 8},
    num_frames=4,
    tubelet_size=2,
)
model(
    "timesformer",
    "TimesformerForVideoClassification",
    "TimesformerConfig",
    _SEEN,
    lambda: (torch.randn(BATCH, 2, 3, 8, 8), classes(2)),
    **{**_VIT, "image_size": 8},
    num_frames=2,
    drop_path_rate=0,
)
model(
    "vivit",
    "VivitForVideoClassification",
    "VivitConfig",
    _SEEN,
    lambda: (torch.randn(BATCH, 4, 3, 8, 8), classes(2)),
    **{**_VIT, "image_size": 8},
    num_frames=4,
    tubelet_size=[2, 4, 4],
)
model(
    "mae",
    "ViTMAEForPreTraining",
    "ViTMAEConfig",
    ("pixel_values", "noise"),
    lambda: (images(16), torch.rand(BATCH, 16)),
    **_VIT,
    decoder_hidden_size=8,
    decoder_num_hidden_layers=1,
    decoder_num_attention_heads=2,
    decoder_intermediate_size=12,
)
model(
    "convnext_labels",
    "ConvNextForImageClassification",
    "ConvNextConfig",
    _SEEN,
    _classified(32),
    hidden_sizes=[4, 8],
    depths=[1, 1],
    num_stages=2,
    drop_path_rate=0.0,
)
model(
    "ast_labels",
    "ASTForAudioClassification",
    "ASTConfig",
    ("input_values", "labels"),
    lambda: (torch.randn(BATCH, 24, 16), classes(2)),
    **{**_VIT, "image_size": None},
    max_length=24,
    num_mel_bins=16,
    frequency_stride=4,
    time_stride=4,
)
model(
    "wav2vec_words",
    "Wav2Vec2ForSequenceClassification",
    "Wav2Vec2Config",
    ("input_values", "labels"),
    lambda: (torch.randn(BATCH, 400), classes(2)),
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    conv_dim=[8, 8],
    conv_kernel=[10, 3],
    conv_stride=[5, 2],
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=4,
    num_conv_pos_embedding_groups=2,
    mask_time_prob=0.0,
    layerdrop=0.0,
    hidden_dropout=0.0,
    feat_proj_dropout=0.0,
    apply_spec_augment=False,
    feat_extract_norm="layer",
    do_stable_layer_norm=True,
    classifier_proj_size=8,
)
model(
    "whisper_labels",
    "WhisperForConditionalGeneration",
    "WhisperConfig",
    ("input_features", "labels"),
    lambda: (torch.randn(BATCH, 8, 16), words(4)),
    vocab_size=50,
    d_model=16,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=24,
    decoder_ffn_dim=24,
    num_mel_bins=8,
    max_source_positions=8,
    max_target_positions=16,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
)
model(
    "time_series",
    "TimeSeriesTransformerForPrediction",
    "TimeSeriesTransformerConfig",
    (
        "past_values",
        "past_time_features",
        "past_observed_mask",
        "future_values",
        "future_time_features",
    ),
    lambda: (
        torch.rand(BATCH, 15),
        torch.randn(BATCH, 15, 2),
        torch.ones(BATCH, 15),
        torch.rand(BATCH, 4),
        torch.randn(BATCH, 4, 2),
    ),
    encoder_layerdrop=0.0,
    decoder_layerdrop=0.0,
    prediction_length=4,
    context_length=8,
    num_time_features=2,
    d_model=8,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=8,
    decoder_ffn_dim=8,
    distribution_output="normal",
)


_TEXT = {
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 49,
}
_SIGHT = dict(_VIT.items())


def _contrast(module: nn.Module, *inputs: Tensor) -> Tensor:
    names = ("input_ids", "attention_mask", "pixel_values")
    loss: Tensor = module(**dict(zip(names, inputs, strict=True)), return_loss=True).loss
    return loss


@published
def dinov3() -> Training:
    """Features with registers, and rotations of patches."""
    made = transformer(
        "DINOv3ViTModel",
        "DINOv3ViTConfig",
        **{**NO, **_VIT},
        num_register_tokens=2,
        drop_path_rate=0.0,
        pos_embed_rescale=None,
    )
    return fit(
        made,
        lambda m, x: m(pixel_values=x).last_hidden_state.square().mean(),
        lambda: (images(16),),
    )


@published
def upernet() -> Training:
    """Segmentation over the stages of a ConvNeXt."""
    from transformers import ConvNextConfig, UperNetConfig, UperNetForSemanticSegmentation

    stages = ConvNextConfig(
        hidden_sizes=[4, 8, 8, 8],
        depths=[1, 1, 1, 1],
        num_stages=4,
        drop_path_rate=0.0,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = UperNetConfig(
        backbone_config=stages,
        hidden_size=8,
        num_labels=3,
        pool_scales=[1, 2],
        auxiliary_in_channels=8,
        auxiliary_channels=4,
    )
    made = UperNetForSemanticSegmentation(config)
    return fit(made, loss_of_model(*_SEEN), _segmented(64, 3), tolerance=1e-5)


@published
def clip_contrastive() -> Training:
    """Texts beside images."""
    from transformers import CLIPConfig, CLIPModel

    made = CLIPModel(CLIPConfig(text_config=_TEXT, vision_config=_SIGHT, projection_dim=12))
    return fit(
        made, _contrast, lambda: (words(batch=4), padded().repeat(2, 1), images(16, batch=4))
    )


@published
def siglip_contrastive() -> Training:
    """Texts beside images, each pair by itself."""
    from transformers import SiglipConfig, SiglipModel

    made = SiglipModel(SiglipConfig(text_config=_TEXT, vision_config=_SIGHT))
    return fit(
        made, _contrast, lambda: (words(batch=4), padded().repeat(2, 1), images(16, batch=4))
    )


@published
def encodec() -> Training:
    """A codec of sound: convolutions with weight norms, and an LSTM between them."""
    made = transformer(
        "EncodecModel",
        "EncodecConfig",
        **{**NO, "hidden_size": 4},
        num_filters=2,
        upsampling_ratios=[2, 2],
        codebook_size=8,
        codebook_dim=4,
        num_lstm_layers=1,
        sampling_rate=400,
        target_bandwidths=[1.5],
    )

    def loss_of(module: Any, sound: Tensor) -> Tensor:
        return functional.l1_loss(module.decoder(module.encoder(sound)), sound)

    return fit(made, loss_of, lambda: (torch.randn(BATCH, 1, 40),))
