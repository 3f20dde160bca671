"""Models of images, sounds and series in other configurations than in the table."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from zoo.architectures import BATCH, Logits, _certain, images
from zoo.other_configurations import W, audio, enc, vis
from zoo.registry import PAPER, Architecture, enter

vis(
    "swinv2",
    "Swinv2Config",
    "Swinv2ForImageClassification",
    32,
    embed_dim=8,
    depths=[2, 2],
    num_heads=[2, 2],
    window_size=4,
    image_size=32,
    patch_size=2,
    drop_path_rate=0.0,
)
vis(
    "swin_hf",
    "SwinConfig",
    "SwinForImageClassification",
    32,
    embed_dim=8,
    depths=[2, 2],
    num_heads=[2, 2],
    window_size=4,
    image_size=32,
    patch_size=2,
    drop_path_rate=0.0,
)
vis(
    "convnextv2",
    "ConvNextV2Config",
    "ConvNextV2ForImageClassification",
    16,
    hidden_sizes=[4, 8],
    depths=[1, 1],
    num_stages=2,
    image_size=16,
    patch_size=2,
)
vis(
    "poolformer",
    "PoolFormerConfig",
    "PoolFormerForImageClassification",
    32,
    hidden_sizes=[4, 4, 8, 8],
    depths=[1, 1, 1, 1],
    drop_path_rate=0.0,
)
vis(
    "pvt",
    "PvtConfig",
    "PvtForImageClassification",
    32,
    image_size=32,
    hidden_sizes=[4, 4, 8, 8],
    depths=[1, 1, 1, 1],
    num_attention_heads=[1, 1, 2, 2],
    drop_path_rate=0.0,
)
vis(
    "levit",
    "LevitConfig",
    "LevitForImageClassification",
    64,
    image_size=64,
    hidden_sizes=[8, 8, 8],
    num_attention_heads=[2, 2, 2],
    depths=[1, 1, 1],
    key_dim=[4, 4, 4],
    drop_path_rate=0,
)
vis(
    "mobilevit",
    "MobileViTConfig",
    "MobileViTForImageClassification",
    64,
    image_size=64,
    hidden_sizes=[8, 8, 8],
    neck_hidden_sizes=[4, 4, 8, 8, 8, 8, 16],
    num_attention_heads=2,
)
vis(
    "hiera",
    "HieraConfig",
    "HieraForImageClassification",
    32,
    embed_dim=8,
    image_size=[32, 32],
    patch_size=[4, 4],
    patch_stride=[4, 4],
    patch_padding=[0, 0],
    depths=[1, 1],
    num_heads=[1, 2],
    masked_unit_size=[2, 2],
    num_query_pool=1,
    query_stride=[2, 2],
    embed_dim_multiplier=2.0,
)
vis(
    "focalnet",
    "FocalNetConfig",
    "FocalNetForImageClassification",
    32,
    image_size=32,
    embed_dim=8,
    depths=[1, 1],
    hidden_sizes=[8, 16],
    focal_levels=[1, 1],
    focal_windows=[3, 3],
    patch_size=4,
    drop_path_rate=0.0,
)
vis(
    "dpt",
    "DPTConfig",
    "DPTForDepthEstimation",
    32,
    result="predicted_depth",
    hidden_size=16,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=24,
    image_size=32,
    patch_size=4,
    backbone_out_indices=[0, 1, 2, 3],
    neck_hidden_sizes=[4, 4, 8, 8],
    fusion_hidden_size=8,
    is_hybrid=False,
)
vis(
    "vit_b",
    "ViTConfig",
    "ViTForImageClassification",
    (16),
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=32,
    image_size=16,
    patch_size=8,
    qkv_bias=False,
    hidden_act="relu",
)
vis(
    "siglip_v",
    "SiglipVisionConfig",
    "SiglipVisionModel",
    16,
    result="pooler_output",
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    image_size=16,
    patch_size=4,
)
vis(
    "regnet_hf",
    "RegNetConfig",
    "RegNetForImageClassification",
    32,
    embedding_size=4,
    hidden_sizes=[4, 8],
    depths=[1, 1],
    groups_width=2,
)
vis(
    "yolos",
    "YolosConfig",
    "YolosForObjectDetection",
    32,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    image_size=[32, 32],
    patch_size=8,
    num_detection_tokens=4,
)
audio("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC", **W)
audio("hubert", "HubertConfig", "HubertForCTC", **W)
audio("wavlm", "WavLMConfig", "WavLMForCTC", **W)
enc(
    "ast",
    "ASTConfig",
    "ASTForAudioClassification",
    inp=lambda: (torch.randn(BATCH, 24, 16),),
    names=("input_values",),
    num_mel_bins=16,
    max_length=24,
    patch_size=8,
    time_stride=8,
    frequency_stride=8,
)
enc(
    "decision",
    "DecisionTransformerConfig",
    "DecisionTransformerModel",
    state_dim=3,
    act_dim=2,
    hidden_size=16,
    n_layer=1,
    n_head=2,
    n_positions=32,
    num_hidden_layers=None,
    num_attention_heads=None,
    max_ep_len=20,
    result="action_preds",
    names=("states", "actions", "rewards", "returns_to_go", "timesteps", "attention_mask"),
    inp=lambda: (
        torch.randn(2, 4, 3),
        torch.randn(2, 4, 2),
        torch.randn(2, 4, 1),
        torch.randn(2, 4, 1),
        torch.randint(0, 10, (2, 4)),
        torch.ones(2, 4),
    ),
)
enc(
    "patchtst",
    "PatchTSTConfig",
    "PatchTSTForPrediction",
    result="prediction_outputs",
    names=("past_values",),
    inp=lambda: (torch.randn(2, 16, 3),),
    num_input_channels=3,
    context_length=16,
    patch_length=4,
    patch_stride=4,
    prediction_length=4,
    d_model=8,
    num_attention_heads=2,
    ffn_dim=12,
    hidden_size=None,
)


def tv(name: str, model: str, size: int = 32, result: str = "", **settings: Any) -> None:
    """Enter a model of torchvision."""

    def build() -> Architecture:
        import torchvision

        made = torchvision.models.get_model(model, weights=None, num_classes=5, **settings)
        for part in _certain(made).modules():
            if type(part).__name__ == "StochasticDepth":
                part.p = 0.0
        module: nn.Module = Logits(made, "x", result=result) if result else made
        return Architecture(module, (images(size),))

    enter(name, build, PAPER)


tv("wide_resnet", "wide_resnet50_2")
tv("resnet50", "resnet50")
tv("inception", "inception_v3", 96, aux_logits=False, init_weights=False)
tv("efficientnet_v2", "efficientnet_v2_s")
tv("vgg11_bn", "vgg11_bn", 40)
tv("regnet_x", "regnet_x_400mf", 64)
tv("deeplab", "deeplabv3_mobilenet_v3_large", result="out", weights_backbone=None)
