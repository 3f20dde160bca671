"""Steps of code about images that many have copied from well-known repositories."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.own_models import UNet as DenoisingUNet
from zoo.steps.others import doubles
from zoo.steps.table import CALLS, Training, adamw, classes, fit, images, published


def extract(a: Tensor, t: Tensor, shape: Any) -> Tensor:
    """Of denoising-diffusion-pytorch."""
    b, *_ = t.shape
    return a.gather(-1, t).reshape(b, *((1,) * (len(shape) - 1)))


class WeightStandardizedConv2d(nn.Conv2d):
    """Of the same."""

    def forward(self, x: Tensor) -> Tensor:
        eps = 1e-5 if x.dtype == torch.float32 else 1e-3
        mean = self.weight.mean(dim=(1, 2, 3), keepdim=True)
        var = self.weight.var(dim=(1, 2, 3), unbiased=False, keepdim=True)
        weight = (self.weight - mean) * (var + eps).rsqrt()
        return functional.conv2d(x, weight, self.bias, self.stride, self.padding)


class Denoiser(nn.Module):
    """Times as sines, and linear attention over pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.norm = WeightStandardizedConv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8)
        self.time = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16))
        self.to_qkv, self.outside = nn.Conv2d(8, 24, 1, bias=False), nn.Conv2d(8, 3, 1)
        betas = torch.linspace(1e-4, 0.02, 10)
        kept = torch.cumprod(1.0 - betas, dim=0)
        self.register_buffer("sqrt_alphas_cumprod", torch.sqrt(kept))
        self.register_buffer("sqrt_one_minus", torch.sqrt(1.0 - kept))

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        rates = torch.exp(torch.arange(4, device=time.device) * -(math.log(10000) / 3))
        angles = time[:, None] * rates[None, :]
        t = self.time(torch.cat((angles.sin(), angles.cos()), dim=-1).to(x))
        scale, shift = t[:, :, None, None].chunk(2, dim=1)
        h = functional.silu(self.norm(self.inside(x)) * (scale + 1) + shift)
        b, _, height, width = h.shape
        q, k, v = (part.reshape(b, 2, 4, height * width) for part in self.to_qkv(h).chunk(3, dim=1))
        q, k = q.softmax(dim=-2) * 0.5, k.softmax(dim=-1)
        context = torch.einsum("bhdn,bhen->bhde", k, v)
        found = torch.einsum("bhde,bhdn->bhen", context, q)
        return self.outside(h + found.reshape(b, 8, height, width))


@published
def denoising_diffusion() -> Training:
    """Noise of random times is foretold; a weight of the loss by time."""

    def p_losses(m: Any, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        noisy = extract(m.sqrt_alphas_cumprod, t, x.shape) * x
        noisy = noisy + extract(m.sqrt_one_minus, t, x.shape) * noise
        loss = functional.mse_loss(m(noisy, t), noise, reduction="none")
        return (loss.flatten(1).mean(1) * extract(m.sqrt_one_minus, t, (2,)).flatten()).mean()

    return fit(
        Denoiser(),
        p_losses,
        lambda: (images(8), torch.randint(10, (2,)), images(8)),
        tolerance=1e-6,
    )


class DoubleConv(nn.Sequential):
    """Of milesial's U-Net."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(
            nn.Conv2d(a, b, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(b),
            nn.ReLU(inplace=True),
            nn.Conv2d(b, b, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(b),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    """One level of it."""

    def __init__(self) -> None:
        super().__init__()
        self.inc, self.down = DoubleConv(3, 4), nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.up, self.conv = nn.ConvTranspose2d(8, 4, kernel_size=2, stride=2), DoubleConv(8, 4)
        self.outc = nn.Conv2d(4, 3, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        x1 = self.inc(x)
        up = self.up(self.down(x1))
        dy, dx = x1.size()[2] - up.size()[2], x1.size()[3] - up.size()[3]
        up = functional.pad(up, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.outc(self.conv(torch.cat([x1, up], dim=1)))


def dice_loss(x: Tensor, target: Tensor, epsilon: float = 1e-6) -> Tensor:
    """Of all classes."""
    inter = 2 * (x * target).sum(dim=(-1, -2))
    sets_sum = x.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return 1 - ((inter + epsilon) / (sets_sum + epsilon)).mean()


@published
def unet_dice() -> Training:
    """Odd sizes, and two losses."""

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        masks = m(x)
        hot = functional.one_hot(y, 3).permute(0, 3, 1, 2).to(masks)
        soft = functional.softmax(masks, dim=1)
        return nn.CrossEntropyLoss()(masks, y) + dice_loss(soft.flatten(0, 1), hot.flatten(0, 1))

    return fit(
        UNet(),
        loss_of,
        lambda: (images(9), classes(3, 2, 9, 9)),
        lambda p: torch.optim.RMSprop(p, lr=1e-4, weight_decay=1e-8, momentum=0.9, eps=1e-4),
        clip=1.0,
        tolerance=1e-5,
    )


class ResnetGenerator(nn.Module):
    """Of CycleGAN: reflected borders and norms of instances."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4))
        self.block = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(4, 4, 3), nn.InstanceNorm2d(4), nn.ReLU(True)
        )
        self.last = nn.Sequential(nn.Conv2d(4, 3, 1), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(x + self.block(x))


def _set_requires_grad(nets: list[nn.Module], wanted: bool) -> None:
    for net in nets:
        for param in net.parameters():
            param.requires_grad = wanted


@published
def cycle_gan() -> Training:
    """Two generators and two critics, that are frozen in turn."""
    ga, gb = ResnetGenerator().double(), ResnetGenerator().double()
    da, db = (
        nn.Sequential(
            nn.Conv2d(3, 4, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(4, 1, 3)
        ).double()
        for _ in range(2)
    )
    og = adamw(itertools.chain(ga.parameters(), gb.parameters()))
    od = adamw(itertools.chain(da.parameters(), db.parameters()))
    l1, mse = nn.L1Loss(), nn.MSELoss()

    def gan(prediction: Tensor, real: bool) -> Tensor:
        target = torch.tensor(1.0 if real else 0.0, dtype=prediction.dtype)
        return mse(prediction, target.expand_as(prediction))

    def step(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        fake_b, fake_a = ga(a), gb(b)
        _set_requires_grad([da, db], False)
        og.zero_grad()
        cycle = l1(gb(fake_b), a) * 10.0 + l1(ga(fake_a), b) * 10.0
        loss = gan(da(fake_b), True) + gan(db(fake_a), True) + cycle + l1(ga(b), b)
        loss.backward()
        og.step()
        _set_requires_grad([da, db], True)
        od.zero_grad()
        total = torch.zeros((), dtype=torch.float64)
        for d, real, fake in ((da, b, fake_b), (db, a, fake_a)):
            both = (gan(d(real), True) + gan(d(fake.detach()), False)) * 0.5
            both.backward()
            total = total + both.detach()
        od.step()
        return loss.detach(), total

    batches = [(doubles(1, 3, 8, 8), doubles(1, 3, 8, 8)) for _ in range(CALLS)]
    return Training(step, batches, [ga, gb, da, db], tolerance=1e-5)


class Capsules(nn.Module):
    """Routing by agreement in three rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 5, stride=2)
        self.weight = nn.Parameter(0.1 * torch.randn(3, 32, 6, 4))

    @staticmethod
    def squash(x: Tensor, dim: int = -1) -> Tensor:
        norm = (x**2).sum(dim=dim, keepdim=True)
        return norm / (1 + norm) * x / (torch.sqrt(norm) + 1e-8)

    def forward(self, x: Tensor) -> Tensor:
        u = self.squash(self.conv(x).view(x.size(0), -1, 4))
        u_hat = torch.squeeze(torch.matmul(self.weight, u[:, None, :, :, None]), dim=-1)
        temp = u_hat.detach()
        b = torch.zeros(x.size(0), 3, u.size(1), 1, dtype=x.dtype).to(x.device)
        for _ in range(2):
            c = functional.softmax(b, dim=1)
            v = self.squash((c * temp).sum(dim=2))
            b = b + torch.matmul(temp, v.unsqueeze(-1))
        c = functional.softmax(b, dim=1)
        return torch.sqrt((self.squash((c * u_hat).sum(dim=2)) ** 2).sum(dim=-1))


@published
def capsules() -> Training:
    """A margin for each class."""

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        labels = torch.eye(3, dtype=x.dtype).index_select(dim=0, index=y)
        found = m(x)
        left = functional.relu(0.9 - found) ** 2
        right = functional.relu(found - 0.1) ** 2
        return (labels * left + 0.5 * (1.0 - labels) * right).sum(dim=-1).mean()

    return fit(Capsules(), loss_of, lambda: (images(11, 1, 2), classes(3)))


@published
def diffusion_unet() -> Training:
    """A U-Net of a diffusion learns the noise; 6 pictures, so that 2 and 3 ranks have as many."""
    return fit(
        DenoisingUNet(),
        lambda m, x, t, noise: functional.mse_loss(m(x, t), noise),
        lambda: (images(8, batch=6), torch.randint(0, 100, (6,)), images(8, batch=6)),
    )
