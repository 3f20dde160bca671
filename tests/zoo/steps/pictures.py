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


def sgd(parameters: Any) -> torch.optim.Optimizer:
    """The optimizer of most image classifiers."""
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)


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


# -- torchvision ----------------------------------------------------------------------------------


def _without_dropout(module: nn.Module) -> nn.Module:
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return module


def classifier(
    name: str,
    make: Callable[[], nn.Module],
    size: int = 32,
    shape: tuple[int, ...] = (),
    smoothing: float = 0.1,
) -> None:
    """Enter an image classifier with ten classes."""

    def build() -> Training:
        def loss_of(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
            return functional.cross_entropy(module(x), y, label_smoothing=smoothing)

        def batch() -> tuple[Tensor, ...]:
            return (torch.randn(4, *shape) if shape else images(size, batch=4)), classes(10, 4)

        return fit(_without_dropout(make()), loss_of, batch, optimizer=sgd, tolerance=1e-5)

    build.__name__ = name
    published(build)


def _torchvision(function: str, **settings: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import torchvision

        made: nn.Module = getattr(torchvision.models, function)(num_classes=10, **settings)
        return made

    return make


def _video(function: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from torchvision.models import video

        made: nn.Module = getattr(video, function)(num_classes=10)
        return made

    return make


classifier("resnet18_smoothed", _torchvision("resnet18"))
classifier(
    "maxvit",
    lambda: __import__("torchvision").models.maxvit.MaxVit(
        (32, 32), 8, 4, 4, [8, 8], [1, 1], 0.0, num_classes=10
    ),
)
classifier(
    "swin_v2",
    lambda: __import__("torchvision").models.SwinTransformer(
        [2, 2], 8, [1, 1], [2, 2], [2, 2], 2.0, stochastic_depth_prob=0.0, num_classes=10
    ),
)
classifier("video_resnet", _video("r3d_18"), shape=(3, 4, 16, 16))


@published
def deeplab() -> Training:
    """Segmentation with an auxiliary loss."""
    import torchvision.models.segmentation as segmentation

    made = segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=4, aux_loss=True
    )

    def loss_of(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        found = module(x)
        losses = [functional.cross_entropy(found[k], y, ignore_index=255) for k in ("out", "aux")]
        return losses[0] + 0.5 * losses[1]

    return fit(
        _without_dropout(made),
        loss_of,
        lambda: (images(32), classes(4, BATCH, 32, 32)),
        tolerance=1e-4,
    )


@published
def pyramid() -> Training:
    """A backbone for detection, with features of all scales."""
    from torchvision.models import resnet
    from torchvision.models.detection.backbone_utils import BackboneWithFPN

    body = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1])
    made = BackboneWithFPN(body, {"layer2": "0", "layer3": "1", "layer4": "2"}, [128, 256, 512], 8)

    def loss_of(module: nn.Module, x: Tensor) -> Tensor:
        return sum(level.square().mean() for level in module(x).values())

    return fit(made, loss_of, lambda: (images(32),), tolerance=1e-5)


# -- timm -----------------------------------------------------------------------------------------


def timm(name: str, size: int = 32, /, label: str | None = None, **settings: Any) -> None:
    """Enter a model of timm."""

    def make() -> nn.Module:
        import timm as library

        made: nn.Module = library.create_model(name, pretrained=False, num_classes=10, **settings)
        return made

    classifier("timm_" + (label or name), make, size)


timm("convnext_atto", 32, depths=(1, 1, 1, 1), dims=(4, 8, 8, 8))
timm(
    "swin_tiny_patch4_window7_224",
    32,
    label="swin",
    img_size=32,
    window_size=4,
    embed_dim=8,
    depths=(2, 2),
    num_heads=(2, 2),
    drop_path_rate=0.0,
)
timm("mixer_s32_224", 64, label="mixer", img_size=64)
timm("resmlp_12_224", 32, label="resmlp", img_size=32)
timm("gmlp_ti16_224", 32, label="gmlp", img_size=32)
timm(
    "vit_tiny_patch16_224",
    32,
    label="vit_registers",
    img_size=32,
    patch_size=8,
    depth=2,
    embed_dim=16,
    num_heads=4,
    reg_tokens=2,
    qk_norm=True,
    init_values=0.1,
    global_pool="avg",
)
timm(
    "deit3_small_patch16_224",
    32,
    label="deit3",
    img_size=32,
    patch_size=8,
    depth=2,
    embed_dim=16,
    num_heads=4,
)
timm(
    "cait_xxs24_224",
    32,
    label="cait",
    img_size=32,
    patch_size=8,
    depth=2,
    embed_dim=16,
    num_heads=2,
)
timm("xcit_nano_12_p16_224", 32, label="xcit", img_size=32, depth=2, embed_dim=16, num_heads=4)
timm(
    "beit_base_patch16_224",
    32,
    label="beit",
    img_size=32,
    patch_size=8,
    depth=2,
    embed_dim=16,
    num_heads=4,
    use_shared_rel_pos_bias=True,
    use_rel_pos_bias=False,
)
timm(
    "eva02_tiny_patch14_224",
    32,
    label="eva02",
    img_size=32,
    patch_size=8,
    depth=2,
    embed_dim=16,
    num_heads=4,
)
timm("mobilenetv3_small_050", 32)
timm("efficientnet_lite0", 32)
timm("regnetx_002", 32)
timm("regnety_002", 32)
timm("ghostnet_050", 32)
timm("resnet10t", 32)
timm("seresnet18", 32, label="seresnet")
timm("resnest14d", 32)
timm("repvgg_a0", 32)
timm("mobileone_s0", 32)
timm("hgnetv2_b0", 32)
timm("convmixer_768_32", 32, label="convmixer", dim=8, depth=2)
timm("edgenext_xx_small", 32, dims=(8, 8, 16, 16), depths=(1, 1, 1, 1))
timm("poolformer_s12", 32, layers=(1, 1), embed_dims=(8, 16))
timm("nf_resnet26", 32, channels=(8, 8, 16, 16), stem_chs=8)
timm(
    "tiny_vit_5m_224",
    32,
    label="tiny_vit",
    embed_dims=(8, 16),
    depths=(1, 1),
    num_heads=(1, 2),
    window_sizes=(4, 4),
)
timm(
    "twins_svt_small",
    32,
    label="twins",
    img_size=32,
    embed_dims=(8, 8, 16, 16),
    depths=(1, 1, 1, 2),
    num_heads=(1, 1, 2, 2),
    wss=(4, 4, 2, 1),
)
timm("coatnet_nano_rw_224", 32, label="coatnet", img_size=32)
timm("davit_tiny", 32, embed_dims=(8, 16), depths=(1, 1), num_heads=(1, 2), window_size=4)
timm("mambaout_femto", 32, depths=(1, 1), dims=(8, 16))
timm("volo_d1_224", 32, label="volo", img_size=32)
timm("hrnet_w18_small", 32)
