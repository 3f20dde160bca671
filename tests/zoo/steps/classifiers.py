"""Classifiers and backbones of torchvision and timm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.table import BATCH, Training, classes, fit, images, published


def sgd(parameters: Any, rate: float = 0.05) -> torch.optim.Optimizer:
    """The optimizer of most image classifiers."""
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=1e-4, nesterov=True)


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
    rate: float = 0.05,
) -> None:
    """Enter an image classifier with ten classes; with large rates some amplify rounding."""

    def build() -> Training:
        def loss_of(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
            return functional.cross_entropy(module(x), y, label_smoothing=smoothing)

        def batch() -> tuple[Tensor, ...]:
            return (torch.randn(4, *shape) if shape else images(size, batch=4)), classes(10, 4)

        made = _without_dropout(make())
        return fit(made, loss_of, batch, lambda p: sgd(p, rate), tolerance=1e-5)

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
        (32, 32), 8, 4, [8, 8], [1, 1], 4, 0.0, num_classes=10
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


def timm(
    name: str, size: int = 32, /, label: str | None = None, rate: float = 0.05, **settings: Any
) -> None:
    """Enter a model of timm."""

    def make() -> nn.Module:
        import timm as library

        made: nn.Module = library.create_model(name, pretrained=False, num_classes=10, **settings)
        return made

    classifier("timm_" + (label or name), make, size, rate=rate)


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
timm("efficientnet_lite0", 64)
timm("regnetx_002", 32)
timm("regnety_002", 32)
timm("resnet10t", 32)
timm("seresnet18", 32, label="seresnet")
timm("resnest14d", 32)
timm("repvgg_a0", 32)
timm("mobileone_s0", 64, rate=1e-3)
timm("hgnetv2_b0", 32)
classifier(
    "timm_convmixer",
    lambda: __import__("timm").models.convmixer.ConvMixer(
        8, 2, kernel_size=5, patch_size=4, num_classes=10, act_layer=nn.ReLU
    ),
)
timm("edgenext_xx_small", 32, dims=(8, 8, 16, 16), depths=(1, 1, 1, 1))
classifier(
    "timm_poolformer",
    lambda: __import__("timm").models.metaformer.MetaFormer(
        num_classes=10, depths=(1, 1), dims=(8, 16), mlp_act=nn.GELU, layer_scale_init_values=1e-5
    ),
)
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
