"""A case of each layer of torch.nn: how it is made, and the shapes that it is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Case = tuple[Callable[[], nn.Module], tuple[Any, ...]]
LINE, IMAGE, VOLUME = (2, 4, 9), (2, 4, 8, 9), (2, 4, 6, 5, 4)
POINTWISE = (
    *("CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity"),
    *("LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid"),
    *("Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "ChannelShuffle", "Flatten"),
)
EVERY: dict[str, Case] = {
    **{name: (lambda name=name: getattr(nn, name)(), (IMAGE,)) for name in POINTWISE[:-2]},
    "GLU": (nn.GLU, (VOLUME,)),
    "Threshold": (lambda: nn.Threshold(0.1, 2.0), (IMAGE,)),
    "RReLU": (lambda: nn.RReLU().eval(), (IMAGE,)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), (IMAGE,)),
    "Flatten": (nn.Flatten, (IMAGE,)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), (IMAGE,)),
    "Softmax": (lambda: nn.Softmax(1), (IMAGE,)),
    "Softmax2d": (nn.Softmax2d, (IMAGE,)),
    "Softmin": (lambda: nn.Softmin(2), (IMAGE,)),
    "LogSoftmax": (lambda: nn.LogSoftmax(1), (IMAGE,)),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(5, 12, [4, 8]),
        ((6, 5), ("index", (6,), 12)),
    ),
    # linear
    "Linear": (lambda: nn.Linear(9, 5), (LINE,)),
    "LazyLinear": (lambda: nn.LazyLinear(5), (LINE,)),
    "Bilinear": (lambda: nn.Bilinear(5, 6, 3), ((4, 5), (4, 6))),
    "Embedding": (lambda: nn.Embedding(7, 5, padding_idx=2), (("index", (3, 4), 7),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(7, 5), (("index", (3, 4), 7),)),
    "CosineSimilarity": (nn.CosineSimilarity, (LINE, LINE)),
    "PairwiseDistance": (nn.PairwiseDistance, ((4, 5), (4, 5))),
    # convolutions
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, 2, 1, groups=2), (LINE,)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, 2, 1, dilation=2), (IMAGE,)),
    "Conv3d": (lambda: nn.Conv3d(4, 3, 2, padding=1), (VOLUME,)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1), (LINE,)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), (IMAGE,)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(4, 2, 2, 2), (VOLUME,)),
    "LazyConv1d": (lambda: nn.LazyConv1d(3, 3), (LINE,)),
    "LazyConv2d": (lambda: nn.LazyConv2d(3, 3), (IMAGE,)),
    "LazyConv3d": (lambda: nn.LazyConv3d(3, 2), (VOLUME,)),
    "LazyConvTranspose1d": (lambda: nn.LazyConvTranspose1d(3, 3), (LINE,)),
    "LazyConvTranspose2d": (lambda: nn.LazyConvTranspose2d(3, 3), (IMAGE,)),
    "LazyConvTranspose3d": (lambda: nn.LazyConvTranspose3d(3, 2), (VOLUME,)),
    "Fold": (lambda: nn.Fold((4, 5), 2), ((2, 8, 12),)),
    "Unfold": (lambda: nn.Unfold(2, 1, 1, 2), (IMAGE,)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (IMAGE,)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), ((2, 3, 4, 6),)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (IMAGE,)),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d((5, 12)), (IMAGE,)),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d((5, 12)), (IMAGE,)),
    # pooling
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2, 1, ceil_mode=True), (LINE,)),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, ceil_mode=True), (IMAGE,)),
    "AvgPool3d": (lambda: nn.AvgPool3d(2, 2, 1, count_include_pad=False), (VOLUME,)),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1), (LINE,)),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), (IMAGE,)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2), (VOLUME,)),
    "LPPool1d": (lambda: nn.LPPool1d(2, 3), (LINE,)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 3, 2), (IMAGE,)),
    "LPPool3d": (lambda: nn.LPPool3d(2, 2), (VOLUME,)),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(4), (LINE,)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 4)), (IMAGE,)),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d((3, 2, 3)), (VOLUME,)),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(4), (LINE,)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((3, 4)), (IMAGE,)),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d((3, 2, 3)), (VOLUME,)),
    "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, (3, 4)), (IMAGE,)),
    "FractionalMaxPool3d": (lambda: nn.FractionalMaxPool3d(2, (3, 2, 2)), (VOLUME,)),
    "MaxUnpool1d": (lambda: _Unpooled(nn.MaxPool1d, nn.MaxUnpool1d), ((2, 4, 8),)),
    "MaxUnpool2d": (lambda: _Unpooled(nn.MaxPool2d, nn.MaxUnpool2d), ((2, 4, 8, 6),)),
    "MaxUnpool3d": (lambda: _Unpooled(nn.MaxPool3d, nn.MaxUnpool3d), ((2, 4, 4, 6, 4),)),
    # norms
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), (LINE,)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), (IMAGE,)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), (VOLUME,)),
    "LazyBatchNorm1d": (nn.LazyBatchNorm1d, (LINE,)),
    "LazyBatchNorm2d": (nn.LazyBatchNorm2d, (IMAGE,)),
    "LazyBatchNorm3d": (nn.LazyBatchNorm3d, (VOLUME,)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), (LINE,)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, track_running_stats=True), (IMAGE,)),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4), (VOLUME,)),
    "LazyInstanceNorm1d": (nn.LazyInstanceNorm1d, (LINE,)),
    "LazyInstanceNorm2d": (nn.LazyInstanceNorm2d, (IMAGE,)),
    "LazyInstanceNorm3d": (nn.LazyInstanceNorm3d, (VOLUME,)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (IMAGE,)),
    "LayerNorm": (lambda: nn.LayerNorm((8, 9)), (IMAGE,)),
    "RMSNorm": (lambda: nn.RMSNorm(9), (LINE,)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), (IMAGE,)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(3), (IMAGE,)),
    # borders
    **{
        f"{kind}Pad{n}d": (
            lambda kind=kind, n=n: getattr(nn, f"{kind}Pad{n}d")(
                (1, 2, *(1, 0) * (n - 1)), *((1.5,) if kind == "Constant" else ())
            ),
            ((LINE, IMAGE, VOLUME)[n - 1],),
        )
        for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
        for n in (1, 2, 3)
    },
    # dropout does nothing while a module is evaluated; how it draws is tested elsewhere
    **{
        name: (lambda name=name: getattr(nn, name)().eval(), (shape,))
        for name, shape in (
            *(("Dropout", IMAGE), ("Dropout1d", LINE), ("Dropout2d", IMAGE), ("Dropout3d", VOLUME)),
            *(("AlphaDropout", IMAGE), ("FeatureAlphaDropout", IMAGE)),
        )
    },
    # sequences
    "RNN": (lambda: nn.RNN(5, 4, 2, batch_first=True), ((2, 3, 5),)),
    "LSTM": (lambda: nn.LSTM(5, 4, bidirectional=True), ((3, 2, 5),)),
    "GRU": (lambda: nn.GRU(5, 4, 2), ((3, 2, 5),)),
    "RNNCell": (lambda: nn.RNNCell(5, 4, nonlinearity="relu"), ((3, 5), (3, 4))),
    "LSTMCell": (lambda: nn.LSTMCell(5, 4), ((3, 5),)),
    "GRUCell": (lambda: nn.GRUCell(5, 4), ((3, 5), (3, 4))),
    "MultiheadAttention": (lambda: _Attention(), ((2, 4, 8),)),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True),
        ((2, 4, 8),),
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, norm_first=True),
        ((4, 2, 8), (3, 2, 8)),
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0), 2),
        ((4, 2, 8),),
    ),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0), 2),
        ((4, 2, 8), (3, 2, 8)),
    ),
    "Transformer": (
        lambda: nn.Transformer(8, 2, 1, 1, 12, dropout=0.0),
        ((4, 2, 8), (3, 2, 8)),
    ),
    # losses
    **{
        name: (lambda name=name: getattr(nn, name)(), ((4, 5), (4, 5)))
        for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss")
    },
    "CrossEntropyLoss": (
        lambda: nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=1),
        ((6, 5), ("index", (6,), 5)),
    ),
    "LinearCrossEntropyLoss": (
        lambda: nn.LinearCrossEntropyLoss(4, 5),
        ((6, 4), ("index", (6,), 5)),
    ),
    "NLLLoss": (nn.NLLLoss, ((6, 5), ("index", (6,), 5))),
    "NLLLoss2d": (nn.NLLLoss2d, ((2, 5, 3, 4), ("index", (2, 3, 4), 5))),
    "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), ((6, 5), ("share", (6, 5)))),
    "BCELoss": (nn.BCELoss, (("share", (6, 5)), ("share", (6, 5)))),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, ((6, 5), ("share", (6, 5)))),
    "PoissonNLLLoss": (lambda: nn.PoissonNLLLoss(full=True), ((6, 5), ("share", (6, 5)))),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, ((6, 5), (6, 5), ("share", (6, 5)))),
    "SoftMarginLoss": (nn.SoftMarginLoss, ((6, 5), ("sign", (6, 5)))),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, ((6, 5), ("sign", (6, 5)))),
    "MarginRankingLoss": (nn.MarginRankingLoss, ((6,), (6,), ("sign", (6,)))),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, ((6, 5), (6, 5), ("sign", (6,)))),
    "TripletMarginLoss": (nn.TripletMarginLoss, ((6, 5), (6, 5), (6, 5))),
    "TripletMarginWithDistanceLoss": (
        nn.TripletMarginWithDistanceLoss,
        ((6, 5), (6, 5), (6, 5)),
    ),
    "MultiMarginLoss": (nn.MultiMarginLoss, ((6, 5), ("index", (6,), 5))),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, ((6, 5), ("index", (6, 5), 5))),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, ((6, 5), ("bit", (6, 5)))),
    "CTCLoss": (lambda: _Ctc(), ((7, 2, 5),)),
    # containers
    "Sequential": (lambda: nn.Sequential(nn.Linear(9, 5), nn.ReLU()), (LINE,)),
    "ModuleList": (lambda: _Listed(nn.ModuleList([nn.Linear(9, 9), nn.Tanh()])), (LINE,)),
    "ModuleDict": (
        lambda: _Listed(nn.ModuleDict({"a": nn.Linear(9, 9), "b": nn.Tanh()}).values()),
        (LINE,),
    ),
    "ParameterList": (lambda: _Weighted(nn.ParameterList([torch.ones(9), torch.rand(9)])), (LINE,)),
    "ParameterDict": (lambda: _Weighted(nn.ParameterDict({"a": torch.rand(9)})), (LINE,)),
}
if not hasattr(nn, "LinearCrossEntropyLoss"):  # torch 2.11 has not
    del EVERY["LinearCrossEntropyLoss"]
ABSTRACT = frozenset(
    {"Module", "Container", "RNNBase", "RNNCellBase", "DataParallel", "SyncBatchNorm"}
)
"""Classes of torch.nn that are no layers by themselves, or only of several devices."""


class _Unpooled(nn.Module):
    def __init__(self, pool: Any, back: Any) -> None:
        super().__init__()
        self.pool, self.back = pool(2, return_indices=True), back(2)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.back(*self.pool(x))
        return found


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.inner(x, x, x)
        return found


class _Ctc(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        targets, lengths = torch.tensor([[1, 2, 2], [3, 1, 4]]), torch.tensor([7, 6])
        found: Tensor = nn.CTCLoss()(x.log_softmax(2), targets, lengths, torch.tensor([3, 2]))
        return found


class _Listed(nn.Module):
    def __init__(self, parts: Any) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x


class _Weighted(nn.Module):
    def __init__(self, weights: Any) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, x: Tensor) -> Tensor:
        for weight in self.weights.values() if hasattr(self.weights, "values") else self.weights:
            x = x * weight
        return x


def made(name: str) -> tuple[nn.Module, list[Tensor]]:
    """A layer in double precision, with its inputs; the same at each call."""
    torch.manual_seed(0)
    build, shapes = EVERY[name]
    module = build()
    inputs = [_drawn(shape) for shape in shapes]
    module(*(x.float() if x.is_floating_point() else x for x in inputs))  # shapes of lazy ones
    return module.double(), inputs


def _drawn(shape: Any) -> Tensor:
    if not isinstance(shape[0], str):
        return torch.randn(shape, dtype=torch.float64)
    kind, size, *most = shape
    if kind == "index":
        return torch.randint(0, most[0], size)
    if kind == "bit":
        return torch.randint(0, 2, size).double()
    if kind == "sign":
        return torch.randint(0, 2, size).double() * 2 - 1
    return torch.rand(size, dtype=torch.float64) * 0.8 + 0.1


def layers_of_torch() -> list[str]:
    """Names of all layers of torch.nn."""
    return sorted(
        name
        for name, value in vars(nn).items()
        if isinstance(value, type) and issubclass(value, nn.Module) and name not in ABSTRACT
    )


_BY_DATA = "depends on the values of tensors"
REFUSED: dict[str, tuple[str, str]] = {
    "AdaptiveLogSoftmaxWithLoss": (_BY_DATA, "how many words are in a cluster decides shapes"),
    "CrossMapLRN2d": ("resize", "it makes its memory anew; `LocalResponseNorm` does the same"),
    "FractionalMaxPool2d": ("fractional_max_pool2d", "its windows are drawn"),
    "FractionalMaxPool3d": ("fractional_max_pool3d", "its windows are drawn"),
}
"""Layers that are refused: a part of what is said, and why."""
