"""Steps of published code outside of text and images: as authors write them."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.table import (
    BATCH,
    CALLS,
    Training,
    adamw,
    classes,
    fit,
    images,
    published,
)


def mlp(*widths: int, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """A perceptron."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), act()]
    return nn.Sequential(*layers[:-1])


def doubles(*shape: int) -> Tensor:
    """Random numbers."""
    return torch.randn(*shape, dtype=torch.float64)


# -- generative -----------------------------------------------------------------------------------


class Generator(nn.Sequential):
    """Of a DCGAN."""

    def __init__(self) -> None:
        super().__init__(
            nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(True),
            nn.ConvTranspose2d(4, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )


class Discriminator(nn.Module):
    """Of a DCGAN."""

    def __init__(self, norm: bool = True) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, 4, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(4, 8, 4, 2, 1, bias=False),
            nn.BatchNorm2d(8) if norm else nn.Identity(),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 1, 4, 1, 0, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.main(x).view(-1)


@published
def dcgan() -> Training:
    """Two optimizers, as in the example of PyTorch."""
    g, d = Generator().double(), Discriminator().double()
    criterion = nn.BCEWithLogitsLoss()
    og = torch.optim.Adam(g.parameters(), lr=2e-4, betas=(0.5, 0.999), eps=1e-4)
    od = torch.optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999), eps=1e-4)

    def step(real: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        d.zero_grad()
        label = torch.full((real.size(0),), 1.0, dtype=real.dtype, device=real.device)
        real_loss = criterion(d(real), label)
        real_loss.backward()
        fake = g(noise)
        label.fill_(0.0)
        fake_loss = criterion(d(fake.detach()), label)
        fake_loss.backward()
        od.step()
        g.zero_grad()
        label.fill_(1.0)
        loss = criterion(d(fake), label)
        loss.backward()
        og.step()
        return real_loss.detach(), fake_loss.detach(), loss.detach()

    batches = [(doubles(4, 3, 16, 16), doubles(4, 6, 1, 1)) for _ in range(CALLS)]
    return Training(step, batches, [g, d])


@published
def wgan_gp() -> Training:
    """A penalty of gradients, which needs second derivatives."""
    g, d = Generator().double(), Discriminator(norm=False).double()
    og, od = adamw(g.parameters()), adamw(d.parameters())

    def step(real: Tensor, noise: Tensor, share: Tensor) -> Tensor:
        od.zero_grad()
        fake = g(noise).detach()
        between = (share * real + (1 - share) * fake).requires_grad_(True)
        score = d(between)
        (slope,) = torch.autograd.grad(
            outputs=score,
            inputs=between,
            grad_outputs=torch.ones_like(score),
            create_graph=True,
            retain_graph=True,
        )
        penalty = ((slope.view(slope.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
        loss = d(fake).mean() - d(real).mean() + 10 * penalty
        loss.backward()
        od.step()
        og.zero_grad()
        (-d(g(noise)).mean()).backward()
        og.step()
        return loss.detach()

    batches = [
        (doubles(4, 3, 16, 16), doubles(4, 6, 1, 1), torch.rand(4, 1, 1, 1).double())
        for _ in range(CALLS)
    ]
    return Training(step, batches, [g, d])


class Quantizer(nn.Module):
    """The nearest code, with gradients that pass straight through."""

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(codes, width)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        flat = z.permute(0, 2, 3, 1).contiguous().view(-1, z.shape[1])
        far = (
            flat.pow(2).sum(1, keepdim=True)
            - 2 * flat @ self.table.weight.t()
            + self.table.weight.pow(2).sum(1)
        )
        q = self.table(far.argmin(1)).view(z.shape[0], *z.shape[2:], -1).permute(0, 3, 1, 2)
        loss = functional.mse_loss(q, z.detach()) + 0.25 * functional.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss


@published
def vq_vae() -> Training:
    """A codebook between an encoder and a decoder."""
    made = nn.ModuleDict(
        {
            "encoder": nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 3, 1, 1)),
            "codes": Quantizer(6, 4),
            "decoder": nn.Sequential(
                nn.ConvTranspose2d(4, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 3, 3, 1, 1)
            ),
        }
    )

    def loss_of(module: Any, x: Tensor) -> Tensor:
        q, commitment = module["codes"](module["encoder"](x))
        return functional.mse_loss(module["decoder"](q), x) + commitment

    return fit(made, loss_of, lambda: (images(8),))


class DiTBlock(nn.Module):
    """Attention whose norms are shifted and scaled by the condition."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.mlp = mlp(width, 2 * width, width, act=nn.GELU)
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        s1, b1, g1, s2, b2, g2 = self.ada(c).chunk(6, dim=1)
        h = self.norm1(x) * (1 + s1.unsqueeze(1)) + b1.unsqueeze(1)
        x = x + g1.unsqueeze(1) * self.attn(h, h, h, need_weights=False)[0]
        h = self.norm2(x) * (1 + s2.unsqueeze(1)) + b2.unsqueeze(1)
        return x + g2.unsqueeze(1) * self.mlp(h)


class DiT(nn.Module):
    """A diffusion transformer."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 2, 2)
        self.pos = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.time = mlp(8, width, width, act=nn.SiLU)
        self.label = nn.Embedding(11, width)
        self.blocks = nn.ModuleList([DiTBlock(width, heads) for _ in range(2)])
        self.final = nn.Linear(width, 12)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        freqs = torch.exp(-math.log(10000) * torch.arange(0, 4, dtype=torch.float32) / 4)
        args = t[:, None].float() * freqs[None].to(device=t.device)
        emb = torch.cat([torch.cos(args), torch.sin(args)], dim=-1).to(x.dtype)
        c = self.time(emb) + self.label(y)
        h = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            h = block(h, c)
        h = self.final(h).reshape(x.shape[0], 4, 4, 2, 2, 3)
        return torch.einsum("nhwpqc->nchpwq", h).reshape(x.shape[0], 3, 8, 8)


@published
def dit_with_average() -> Training:
    """A step of denoising diffusion, with an exponential average of the parameters."""
    made = DiT().double()
    average = copy.deepcopy(made).requires_grad_(False)
    optimizer = adamw(made.parameters())
    alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 10, dtype=torch.float64), 0)

    def step(x: Tensor, t: Tensor, y: Tensor, noise: Tensor) -> Tensor:
        a = alphas[t].view(-1, 1, 1, 1)
        loss = functional.mse_loss(made(a.sqrt() * x + (1 - a).sqrt() * noise, t, y), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), made.parameters(), strict=True):
                p.mul_(0.9).add_(q, alpha=0.1)
        return loss.detach()

    batches = [
        (doubles(2, 3, 8, 8), classes(10), classes(11), doubles(2, 3, 8, 8)) for _ in range(CALLS)
    ]
    return Training(step, batches, [made, average])


class Coupling(nn.Module):
    """An affine layer of a flow."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)
        self.s, self.t = mlp(4, 8, 4, act=nn.Tanh), mlp(4, 8, 4, act=nn.Tanh)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept = x * self.mask
        s = self.s(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (x * s.exp() + self.t(kept)), s.sum(-1)


@published
def real_nvp() -> Training:
    """A flow that is trained by likelihood under a distribution of torch."""
    mask = torch.tensor([1.0, 0.0, 1.0, 0.0])
    made = nn.ModuleList([Coupling(mask), Coupling(1 - mask), Coupling(mask)])

    def loss_of(module: Any, x: Tensor) -> Tensor:
        prior = torch.distributions.Normal(
            torch.zeros(4, dtype=x.dtype), torch.ones(4, dtype=x.dtype)
        )
        total = x.new_zeros(x.shape[0])
        for layer in module:
            x, log = layer(x)
            total = total + log
        return -(prior.log_prob(x).sum(-1) + total).mean()

    return fit(made, loss_of, lambda: (torch.randn(6, 4),))


class Masked(nn.Conv2d):
    """A convolution that sees what came before."""

    def __init__(self, kind: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mask = torch.ones_like(self.weight)
        _, _, h, w = mask.shape
        mask[:, :, h // 2, w // 2 + (kind == "B") :] = 0
        mask[:, :, h // 2 + 1 :] = 0
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        self.weight.data *= self.mask
        return super().forward(x)


@published
def pixel_cnn() -> Training:
    """Weights that are masked in place, through `.data`."""
    made = nn.Sequential(
        Masked("A", 1, 6, 5, padding=2),
        nn.ReLU(),
        Masked("B", 6, 6, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(6, 4, 1),
    )
    return fit(
        made,
        lambda m, x, y: functional.cross_entropy(m(x), y),
        lambda: (images(6, 1), classes(4, BATCH, 6, 6)),
    )
