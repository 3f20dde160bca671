"""Steps of published code: adversaries, autoencoders, diffusion and flows."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from zoo.steps.others import mlp
from zoo.steps.table import BATCH, CALLS, Training, adamw, fit, images, published

# -- adversaries ----------------------------------------------------------------------------------


@published
def spectral_gan() -> Training:
    """Hinge losses, a critic whose layers have norms of one, and an iteration in each call."""
    maker = nn.Sequential(mlp(5, 8, 2 * 4 * 4), nn.Unflatten(1, (2, 4, 4)))
    maker.append(nn.ConvTranspose2d(2, 3, 4, 2, 1)).append(nn.Tanh()).double()
    normed = parametrizations.spectral_norm
    critic = nn.Sequential(
        normed(nn.Conv2d(3, 4, 4, 2, 1)), nn.LeakyReLU(0.2), nn.Flatten(), normed(nn.Linear(64, 1))
    ).double()
    of_maker = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.0, 0.9), eps=1e-4)
    of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.0, 0.9), eps=1e-4)

    def step(real: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        of_critic.zero_grad()
        fake = maker(z)
        against = functional.relu(1.0 - critic(real)).mean()
        against = against + functional.relu(1.0 + critic(fake.detach())).mean()
        against.backward()
        of_critic.step()
        of_maker.zero_grad()
        loss = -critic(maker(z)).mean()
        loss.backward()
        of_maker.step()
        return against.detach(), loss.detach()

    batches = [(images(8).double(), torch.randn(BATCH, 5).double()) for _ in range(CALLS)]
    return Training(step, batches, [maker, critic])


class Modulated(nn.Module):
    """A convolution whose kernel a style scales, and whose results have norm one (StyleGAN 2)."""

    def __init__(self, inputs: int, outputs: int, style: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, outputs, inputs, 3, 3))
        self.style = nn.Linear(style, inputs)
        self.scale = 1 / math.sqrt(inputs * 9)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        b, c, h, wide = x.shape
        weight = self.scale * self.weight * self.style(w).view(b, 1, c, 1, 1)
        weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8).view(b, -1, 1, 1, 1)
        kernels = weight.view(-1, c, 3, 3)
        found = functional.conv2d(x.reshape(1, b * c, h, wide), kernels, padding=1, groups=b)
        return found.view(b, -1, h, wide)


@published
def style_gan() -> Training:
    """A critic with a penalty of its slope at real pictures (R1), and its optimizer."""

    class Maker(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mapping, self.constant = mlp(4, 6, 6), nn.Parameter(torch.randn(1, 3, 4, 4))
            self.first, self.second = Modulated(3, 4, 6), Modulated(4, 3, 6)
            self.noise = nn.Parameter(torch.zeros(1))

        def forward(self, z: Tensor, noise: Tensor) -> Tensor:
            w = self.mapping(z)
            x = self.first(self.constant.repeat(z.shape[0], 1, 1, 1), w) + self.noise * noise
            x = functional.interpolate(functional.leaky_relu(x, 0.2), scale_factor=2)
            return self.second(x, w)

    maker = Maker().double()
    critic = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.Softplus(), nn.Flatten(), nn.Linear(64, 1))
    critic.double()
    of_critic, of_maker = adamw(critic.parameters()), adamw(maker.parameters())

    def step(real: Tensor, z: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        real = real.detach().requires_grad_()
        of_critic.zero_grad()
        for_real = critic(real)
        (slope,) = torch.autograd.grad(for_real.sum(), real, create_graph=True)
        penalty = slope.pow(2).reshape(slope.shape[0], -1).sum(1).mean()
        against = functional.softplus(-for_real).mean() + 5 * penalty
        against = against + functional.softplus(critic(maker(z, noise).detach())).mean()
        against.backward()
        of_critic.step()
        of_maker.zero_grad()
        loss = functional.softplus(-critic(maker(z, noise))).mean()
        loss.backward()
        of_maker.step()
        return against.detach(), loss.detach()

    def batch() -> tuple[Tensor, ...]:
        given = images(8), torch.randn(BATCH, 4), torch.randn(BATCH, 1, 4, 4)
        return tuple(x.double() for x in given)

    return Training(step, [batch() for _ in range(CALLS)], [maker, critic])


@published
def pix2pix() -> Training:
    """An encoder with a decoder and skips, a critic of patches, and an L1 loss."""

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2 = nn.Conv2d(3, 4, 4, 2, 1), nn.Conv2d(4, 6, 4, 2, 1)
            self.norm = nn.InstanceNorm2d(6, affine=True)
            self.up2, self.up1 = (
                nn.ConvTranspose2d(6, 4, 4, 2, 1),
                nn.ConvTranspose2d(8, 3, 4, 2, 1),
            )

        def forward(self, x: Tensor) -> Tensor:
            a = functional.leaky_relu(self.down1(x), 0.2, inplace=True)
            b = functional.relu(self.norm(self.down2(a)))
            return torch.tanh(self.up1(torch.cat([self.up2(b), a], 1)))

    maker = UNet().double()
    critic = nn.Sequential(nn.Conv2d(6, 4, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(4, 1, 3)).double()
    of_maker = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999), eps=1e-4)
    of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999), eps=1e-4)
    judged = nn.BCEWithLogitsLoss()

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        fake = maker(x)
        for p in critic.parameters():
            p.requires_grad = True
        of_critic.zero_grad()
        found = critic(torch.cat((x, fake.detach()), 1))
        real = critic(torch.cat((x, y), 1))
        against = 0.5 * (
            judged(found, torch.zeros_like(found)) + judged(real, torch.ones_like(real))
        )
        against.backward()
        of_critic.step()
        for p in critic.parameters():
            p.requires_grad = False
        of_maker.zero_grad()
        found = critic(torch.cat((x, fake), 1))
        loss = judged(found, torch.ones_like(found)) + 100 * functional.l1_loss(fake, y)
        loss.backward()
        of_maker.step()
        return against.detach(), loss.detach()

    batches = [(images(8).double(), images(8).double()) for _ in range(CALLS)]
    return Training(step, batches, [maker, critic])


# -- autoencoders ---------------------------------------------------------------------------------


class Convolutional(nn.Module):
    """An autoencoder of pictures with means and variances."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 4, 4, 2, 1), nn.ReLU(), nn.Flatten())
        self.mean, self.log_variance = nn.Linear(64, 5), nn.Linear(64, 5)
        self.decode = nn.Sequential(
            nn.Linear(5, 64),
            nn.ReLU(),
            nn.Unflatten(1, (4, 4, 4)),
            nn.ConvTranspose2d(4, 3, 4, 2, 1),
        )

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.encode(x)
        mean, log_variance = self.mean(h), self.log_variance(h).clamp(-8, 8)
        return self.decode(mean + noise * torch.exp(0.5 * log_variance)), mean, log_variance


@published
def beta_vae() -> Training:
    """Divergences by hand, with a weight that grows by the number of the step."""
    module = Convolutional()
    module.register_buffer("steps", torch.zeros(()))

    def loss_of(m: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
        found, mean, log_variance = m(x, noise)
        m.steps += 1
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(1).mean()
        capacity = torch.clamp(25.0 / 10 * m.steps, max=25.0)
        return (
            functional.mse_loss(found, x, reduction="sum") / len(x)
            + 4 * (divergence - capacity).abs()
        )

    return fit(module, loss_of, lambda: (images(8), torch.randn(BATCH, 5)))


@published
def importance_weighted() -> Training:
    """Several draws of each picture, with torch's distributions."""
    from torch.distributions import Bernoulli, Normal

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = mlp(6, 8, 6), mlp(3, 8, 6)

    def loss_of(m: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
        mean, scale = m.encode(x).chunk(2, -1)
        scale = functional.softplus(scale) + 1e-3
        z = mean + scale * noise
        q = Normal(mean, scale, validate_args=False)
        p = Normal(torch.zeros_like(mean), torch.ones_like(scale), validate_args=False)
        found = Bernoulli(logits=m.decode(z), validate_args=False)
        weights = found.log_prob(x).sum(-1) + p.log_prob(z).sum(-1) - q.log_prob(z).sum(-1)
        return -(torch.logsumexp(weights, 0) - math.log(noise.shape[0])).mean()

    def batch() -> tuple[Tensor, ...]:
        return torch.randint(0, 2, (4, 6)).double(), torch.randn(5, 4, 3)

    return fit(Model(), loss_of, batch)


@published
def gumbel_vae() -> Training:
    """Categories that are drawn by noise, the hard ones forward and the soft ones backward."""
    module = nn.ModuleDict({"encode": mlp(6, 8, 3 * 4), "decode": mlp(3 * 4, 8, 6)})

    def loss_of(m: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
        logits = m["encode"](x).view(-1, 3, 4)
        soft = ((logits - torch.log(-torch.log(noise))) / 0.7).softmax(-1)
        hard = torch.zeros_like(logits).scatter_(-1, soft.max(-1, keepdim=True)[1], 1.0)
        drawn = hard - soft.detach() + soft
        q = logits.softmax(-1)
        divergence = (q * (torch.log(q + 1e-20) - math.log(1 / 4))).sum((1, 2)).mean()
        return (
            functional.binary_cross_entropy_with_logits(m["decode"](drawn.flatten(1)), x)
            + divergence
        )

    def batch() -> tuple[Tensor, ...]:
        return torch.rand(5, 6), torch.rand(5, 3, 4) * 0.9 + 0.05

    return fit(module, loss_of, batch)


@published
def masked_density() -> Training:
    """MADE: masks of the weights by degrees."""

    class Masked(nn.Linear):
        def __init__(self, inputs: Tensor, outputs: Tensor) -> None:
            super().__init__(len(inputs), len(outputs))
            self.register_buffer("mask", (outputs[:, None] >= inputs[None, :]).double())

        def forward(self, x: Tensor) -> Tensor:
            return functional.linear(x, self.mask * self.weight, self.bias)

    degrees = torch.arange(6), torch.arange(10) % 5, torch.arange(6) - 1
    module = nn.Sequential(Masked(*degrees[:2]), nn.ReLU(), Masked(*degrees[1:]))
    return fit(
        module,
        lambda m, x: functional.binary_cross_entropy_with_logits(m(x), x, reduction="sum"),
        lambda: (torch.randint(0, 2, (5, 6)).double(),),
    )


# -- diffusion and flows --------------------------------------------------------------------------


class Embedded(nn.Module):
    """A perceptron that knows the time by sines."""

    def __init__(self, inputs: int, width: int = 8) -> None:
        super().__init__()
        self.width, self.first, self.body = width, nn.Linear(inputs, 12), mlp(12, 12, inputs)
        self.time = nn.Sequential(nn.Linear(width, 12), nn.SiLU(), nn.Linear(12, 12))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        half = self.width // 2
        rates = torch.exp(-math.log(10000) * torch.arange(half, dtype=x.dtype) / half)
        angle = t[:, None] * rates[None]
        return self.body(self.first(x) + self.time(torch.cat([angle.cos(), angle.sin()], -1)))


@published
def rectified_flow() -> Training:
    """Velocities between noise and data, averaged by a shadow of the parameters."""
    module, optimizer_of = Embedded(3).double(), adamw
    shadow, optimizer = (
        copy.deepcopy(module).requires_grad_(False),
        optimizer_of(module.parameters()),
    )

    def step(x: Tensor, noise: Tensor, t: Tensor) -> Tensor:
        at = (1 - t[:, None]) * noise + t[:, None] * x
        loss = functional.mse_loss(module(at, t * 1000), x - noise)
        loss.backward()
        nn.utils.clip_grad_value_(module.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for old, new in zip(shadow.parameters(), module.parameters(), strict=True):
                old.lerp_(new, 0.01)
        return loss.detach()

    def batch() -> tuple[Tensor, ...]:
        return tuple(x.double() for x in (torch.randn(5, 3), torch.randn(5, 3), torch.rand(5)))

    return Training(step, [batch() for _ in range(CALLS)], [module, shadow])


@published
def improved_diffusion() -> Training:
    """A cosine schedule, velocities as targets, and weights by the ratio of signal to noise."""
    steps = 20
    grid = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
    kept = torch.cos((grid + 0.008) / 1.008 * math.pi / 2) ** 2
    betas = torch.clip(1 - kept[1:] / kept[:-1], 0, 0.999)
    products = torch.cumprod(1 - betas, 0)
    module = Embedded(4)
    module.register_buffer("signal", products.sqrt())
    module.register_buffer("noise", (1 - products).sqrt())

    def loss_of(m: nn.Module, x: Tensor, noise: Tensor, t: Tensor) -> Tensor:
        a, b = m.signal[t][:, None], m.noise[t][:, None]
        found = m(a * x + b * noise, t.to(x.dtype))
        ratio = (m.signal[t] / m.noise[t]) ** 2
        weight = torch.minimum(ratio, torch.full_like(ratio, 5.0)) / (ratio + 1)
        return (weight * (found - (a * noise - b * x)).pow(2).mean(-1)).mean()

    def batch() -> tuple[Tensor, ...]:
        return torch.randn(5, 4), torch.randn(5, 4), torch.randint(0, steps, (5,))

    return fit(module, loss_of, batch, clip=1.0)


@published
def consistency() -> Training:
    """A student at one time follows a target at the time before (consistency training)."""
    student = Embedded(3).double()
    target = copy.deepcopy(student).requires_grad_(False).eval()
    optimizer = torch.optim.RAdam(student.parameters(), lr=1e-3, eps=1e-4)

    def at(m: nn.Module, x: Tensor, t: Tensor) -> Tensor:
        skip = 0.25 / ((t - 0.002) ** 2 + 0.25)
        out = 0.5 * (t - 0.002) / (t**2 + 0.25).sqrt()
        return skip[:, None] * x + out[:, None] * m(x, 250 * torch.log(t + 1e-44))

    def step(x: Tensor, noise: Tensor, index: Tensor) -> Tensor:
        times = (0.002 ** (1 / 7) + index / 9 * (80 ** (1 / 7) - 0.002 ** (1 / 7))) ** 7
        after = (0.002 ** (1 / 7) + (index + 1) / 9 * (80 ** (1 / 7) - 0.002 ** (1 / 7))) ** 7
        with torch.no_grad():
            wanted = at(target, x + times[:, None] * noise, times)
        found = at(student, x + after[:, None] * noise, after)
        loss = (torch.sqrt((found - wanted).pow(2).sum(-1) + 0.03**2) - 0.03).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), student.parameters(), strict=True):
                old.copy_(old * 0.9 + new * 0.1)
        return loss.detach()

    def batch() -> tuple[Tensor, ...]:
        return torch.randn(5, 3).double(), torch.randn(5, 3).double(), torch.randint(0, 9, (5,))

    return Training(step, [batch() for _ in range(CALLS)], [student, target])


@published
def planar_flow() -> Training:
    """Layers that bend along a plane, and the logarithms of their determinants."""

    class Planar(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.u, self.w = nn.Parameter(torch.randn(1, 2) * 0.1), nn.Parameter(torch.randn(1, 2))
            self.b = nn.Parameter(torch.zeros(1))

        def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
            inner = torch.mm(self.w, self.u.t())
            u = self.u + (functional.softplus(inner) - 1 - inner) * self.w / self.w.norm() ** 2
            inside = torch.mm(z, self.w.t()) + self.b
            slope = (1 - torch.tanh(inside) ** 2) * self.w
            return z + u * torch.tanh(inside), torch.log((1 + torch.mm(slope, u.t())).abs() + 1e-7)

    module = nn.ModuleList(Planar() for _ in range(3))

    def loss_of(m: nn.Module, z: Tensor) -> Tensor:
        total: Tensor | float = 0.0
        for layer in m:
            z, logs = layer(z)
            total = total + logs
        r = z.norm(dim=1, keepdim=True)
        energy = 0.5 * ((r - 2) / 0.4) ** 2 - torch.log(
            torch.exp(-0.5 * ((z[:, :1] - 2) / 0.6) ** 2)
            + torch.exp(-0.5 * ((z[:, :1] + 2) / 0.6) ** 2)
        )
        return (energy - total).mean()

    return fit(module, loss_of, lambda: (torch.randn(6, 2),))


@published
def spline_flow() -> Training:
    """Rational-quadratic splines whose bins are found by `searchsorted`."""
    bins, bound = 4, 3.0
    module = mlp(2, 10, 2 * (3 * bins + 1))

    def loss_of(m: nn.Module, x: Tensor) -> Tensor:
        given, moved = x.chunk(2, -1)
        raw = m(given).view(-1, 2, 3 * bins + 1)
        w, h, d = raw.split([bins, bins, bins + 1], -1)
        edges = functional.pad(torch.cumsum(w.softmax(-1), -1), (1, 0)) * 2 * bound - bound
        heights = functional.pad(torch.cumsum(h.softmax(-1), -1), (1, 0)) * 2 * bound - bound
        slopes = functional.softplus(d) + 1e-3
        y = moved.clamp(-bound + 1e-6, bound - 1e-6)
        at = torch.searchsorted(edges.detach(), y[..., None]).clamp(1, bins) - 1

        def of(values: Tensor, place: Tensor) -> Tensor:
            return values.gather(-1, place)[..., 0]

        left, right, low, high = (
            of(edges, at),
            of(edges, at + 1),
            of(heights, at),
            of(heights, at + 1),
        )
        s, d0, d1 = (high - low) / (right - left), of(slopes, at), of(slopes, at + 1)
        t = (y - left) / (right - left)
        below = s + (d1 + d0 - 2 * s) * t * (1 - t)
        z = low + (high - low) * (s * t**2 + d0 * t * (1 - t)) / below
        logs = (
            2 * s.log()
            + (d1 * t**2 + 2 * s * t * (1 - t) + d0 * (1 - t) ** 2).log()
            - 2 * below.log()
        )
        return (0.5 * z.pow(2) + 0.5 * given.pow(2) - logs).sum(-1).mean()

    return fit(module, loss_of, lambda: (torch.randn(6, 4),))


@published
def continuous_flow() -> Training:
    """A field's divergence by a product with noise, over four steps of Euler."""
    field = mlp(3, 8, 2, act=nn.Tanh)

    def loss_of(m: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
        z, logs = x.detach().requires_grad_(), torch.zeros(x.shape[0], dtype=x.dtype)
        for k in range(4):
            t = torch.full_like(z[:, :1], k / 4)
            slope = m(torch.cat([z, t], 1))
            (product,) = torch.autograd.grad(slope, z, noise, create_graph=True)
            z, logs = z + slope / 4, logs - (product * noise).sum(1) / 4
        return (0.5 * z.pow(2).sum(1) - logs).mean()

    return fit(field, loss_of, lambda: (torch.randn(6, 2), torch.randn(6, 2).sign()))
