"""Architectures that papers publish and no library of ours has: as their authors write them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.architectures import images
from zoo.registry import PAPER, Architecture, architecture

# -- diffusion ------------------------------------------------------------------------------------


class Block(nn.Module):
    """A residual block of a U-Net that knows the step of the diffusion."""

    def __init__(self, inputs: int, outputs: int, steps: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(2, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.step = nn.Linear(steps, outputs)
        self.second = nn.Sequential(
            nn.GroupNorm(2, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h = self.first(x) + self.step(functional.silu(t))[:, :, None, None]
        return self.second(h) + self.skip(x)


class Pixels(nn.Module):
    """Attention of all pixels."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(2, channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).unbind(1)
        weights = torch.einsum("bhci,bhcj->bhij", q, k).div(math.sqrt(c // self.heads)).softmax(-1)
        mixed = torch.einsum("bhij,bhcj->bhci", weights, v)
        return x + self.out(mixed.reshape(b, c, h, w))


class UNet(nn.Module):
    """Of a denoising diffusion model."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 8), nn.SiLU(), nn.Linear(8, 8))
        self.begin = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([Block(width, width, 8), Block(width, 2 * width, 8)])
        self.shrink = nn.ModuleList([nn.Conv2d(n * width, n * width, 3, 2, 1) for n in (1, 2)])
        self.middle, self.mixed = Block(2 * width, 2 * width, 8), Pixels(2 * width, 2)
        self.up = nn.ModuleList([Block(4 * width, width, 8), Block(2 * width, width, 8)])
        self.end = nn.Sequential(
            nn.GroupNorm(2, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1)
        )

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        half = self.width // 2
        rates = torch.exp(-math.log(10000) * torch.arange(half) / half)
        angles = steps[:, None] * rates[None]
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1).to(x.dtype))
        x, kept = self.begin(x), []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            x = block(x, t)
            kept.append(x)
            x = shrink(x)
        x = self.mixed(self.middle(x, t))
        for block in self.up:
            x = functional.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, kept.pop()], 1), t)
        return self.end(x)


@architecture(PAPER)
def diffusion_unet() -> Architecture:
    return Architecture(UNet(), (images(8), torch.randint(0, 100, (2,))))


# -- operators ------------------------------------------------------------------------------------


class Spectral(nn.Module):
    """A product of the lowest frequencies with complex matrices."""

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        shape = (2, channels, channels, modes, modes)
        self.weights = nn.Parameter(torch.randn(*shape, dtype=torch.cfloat) / channels)

    def forward(self, x: Tensor) -> Tensor:
        found, m = torch.fft.rfft2(x), self.modes
        weights = self.weights.to(found.dtype)
        result = torch.zeros_like(found)
        result[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", found[:, :, :m, :m], weights[0])
        result[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", found[:, :, -m:, :m], weights[1])
        return torch.fft.irfft2(result, s=x.shape[-2:])


class Fourier(nn.Module):
    """A Fourier neural operator on a grid of two dimensions."""

    def __init__(self, width: int = 4, modes: int = 2) -> None:
        super().__init__()
        self.lift, self.project = nn.Linear(3, width), nn.Linear(width, 1)
        self.spectral = nn.ModuleList([Spectral(width, modes) for _ in range(2)])
        self.local = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(2)])

    def forward(self, a: Tensor) -> Tensor:
        b, h, w = a.shape
        grid = torch.stack(
            torch.meshgrid(torch.linspace(0, 1, h), torch.linspace(0, 1, w), indexing="ij"), -1
        ).to(a.dtype)
        x = self.lift(torch.cat([a[..., None], grid.expand(b, h, w, 2)], -1)).permute(0, 3, 1, 2)
        for spectral, local in zip(self.spectral, self.local, strict=True):
            x = functional.gelu(spectral(x) + local(x))
        return self.project(x.permute(0, 2, 3, 1))[..., 0]


@architecture(PAPER)
def fourier_operator() -> Architecture:
    return Architecture(Fourier(), (torch.randn(2, 8, 6),))


# -- recommendation -------------------------------------------------------------------------------


class Dlrm(nn.Module):
    """A model of recommendations: bags of words, numbers, and their products."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(n, 4, mode="sum") for n in (7, 11, 5)])
        self.bottom = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(4 + 6, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())

    def forward(self, x: Tensor, words: Tensor, begins: Tensor) -> Tensor:
        dense = self.bottom(x)
        bags = [
            table(words[k] % table.num_embeddings, begins) for k, table in enumerate(self.tables)
        ]
        every = torch.stack([dense, *bags], 1)
        products = torch.bmm(every, every.transpose(1, 2))
        rows, columns = torch.tril_indices(4, 4, offset=-1)
        return self.top(torch.cat([dense, products[:, rows, columns]], 1))


@architecture(PAPER)
def dlrm() -> Architecture:
    words, begins = torch.randint(0, 50, (3, 9)), torch.tensor([0, 2, 5, 6])
    return Architecture(Dlrm(), (torch.randn(4, 6), words, begins))


# -- graphs ---------------------------------------------------------------------------------------


class Convolved(nn.Module):
    """A graph convolution: sums over edges, with norms of both ends."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        degree = torch.zeros(x.shape[0], dtype=x.dtype).index_add(
            0, target, torch.ones(target.shape[0], dtype=x.dtype)
        )
        scale = (degree + 1).rsqrt()
        x = self.linear(x)
        sent = x[source] * (scale[source] * scale[target])[:, None]
        return torch.zeros_like(x).index_add(0, target, sent) + x * (scale * scale)[:, None]


class Attended(nn.Module):
    """Graph attention: a softmax over the edges of each node."""

    def __init__(self, inputs: int, outputs: int, heads: int) -> None:
        super().__init__()
        self.heads, self.linear = heads, nn.Linear(inputs, heads * outputs, bias=False)
        self.begin = nn.Parameter(torch.randn(heads, outputs))
        self.end = nn.Parameter(torch.randn(heads, outputs))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        h = self.linear(x).view(x.shape[0], self.heads, -1)
        score = (h * self.begin).sum(-1)[source] + (h * self.end).sum(-1)[target]
        score = functional.leaky_relu(score, 0.2)
        to = target[:, None].expand_as(score)
        lowest = torch.full((x.shape[0], self.heads), -torch.inf, dtype=x.dtype)
        most = lowest.scatter_reduce(0, to, score.detach(), "amax")
        power = (score - most[target]).exp()
        total = torch.zeros_like(most).scatter_add(0, to, power)
        weight = power / (total[target] + 1e-16)
        sent = torch.zeros_like(h).index_add(0, target, weight[..., None] * h[source])
        return sent.flatten(1)


class Graph(nn.Module):
    """Nodes to classes, by convolutions and by attention, and the mean of each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Convolved(5, 6), Attended(6, 3, 2)
        self.last = nn.Linear(6, 3)

    def forward(self, x: Tensor, edges: Tensor, graph: Tensor) -> Tensor:
        x = functional.elu(self.second(functional.relu(self.first(x, edges)), edges))
        sums = torch.zeros(2, 6, dtype=x.dtype).index_add(0, graph, x)
        counts = torch.zeros(2, dtype=x.dtype).index_add(0, graph, torch.ones_like(x[:, 0]))
        return self.last(sums / counts.clamp(min=1)[:, None])


@architecture(PAPER)
def graph_network() -> Architecture:
    edges = torch.randint(0, 8, (2, 14))
    return Architecture(Graph(), (torch.randn(8, 5), edges, torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])))


# -- others ---------------------------------------------------------------------------------------


class Pyramid(nn.Module):
    """A detection backbone with a pyramid of features, and a head of boxes and classes."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
        from torchvision.models.detection.retinanet import RetinaNetHead

        self.body = resnet_fpn_backbone(
            backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d, trainable_layers=5
        )
        self.head = RetinaNetHead(256, 2, 3)

    def forward(self, x: Tensor) -> Tensor:
        found = self.head([*self.body(x).values()][1:3])
        return torch.cat([part.flatten(1) for part in found.values()], 1)


@architecture(PAPER)
def detection_pyramid() -> Architecture:
    return Architecture(Pyramid(), (images(64),))


class Physics(nn.Module):
    """A network that solves an equation: the residual has derivatives by its input."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.net(x).sum(), x, create_graph=True)
            laplacian = x.sin().sum(1)
            for k in range(2):
                (bend,) = torch.autograd.grad(slope[:, k].sum(), x, create_graph=True)
                laplacian = laplacian + bend[:, k]
        return laplacian


@architecture(PAPER)
def physics_informed() -> Architecture:
    return Architecture(Physics(), (torch.randn(5, 2),))


class Mixer(nn.Module):
    """An MLP-Mixer: tokens and channels are mixed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(8) for _ in range(3)])
        self.tokens = nn.Sequential(nn.Linear(16, 12), nn.GELU(), nn.Linear(12, 16))
        self.channels = nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norms[1](x))
        return self.head(self.norms[2](x).mean(1))


@architecture(PAPER)
def mlp_mixer() -> Architecture:
    return Architecture(Mixer(), (images(16),))


class Autoencoder(nn.Module):
    """A variational autoencoder whose noise is an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 4, 4, 2, 1), nn.ReLU(), nn.Conv2d(4, 8, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.mean, self.spread = nn.Linear(128, 4), nn.Linear(128, 4)
        self.decoder = nn.Sequential(
            nn.Linear(4, 128),
            nn.Unflatten(1, (8, 4, 4)),
            nn.ConvTranspose2d(8, 4, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(4, 3, 4, 2, 1),
        )

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        made = self.decoder(mean + noise * (spread / 2).exp())
        divergence = (mean.square() + spread.exp() - 1 - spread).sum(1)
        return torch.cat([(made - x).square().flatten(1), divergence[:, None]], 1)


@architecture(PAPER)
def variational_autoencoder() -> Architecture:
    return Architecture(Autoencoder(), (images(16), torch.randn(2, 4)))
