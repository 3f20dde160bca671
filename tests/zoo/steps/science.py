"""Steps of published code: fields and equations, and recommendations."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import mlp
from zoo.steps.table import Training, classes, fit, published

# -- science --------------------------------------------------------------------------------------


@published
def burgers() -> Training:
    """A physics-informed network: derivatives in time and twice in space, and a boundary."""

    def loss_of(m: nn.Module, t: Tensor, x: Tensor, x0: Tensor, u0: Tensor) -> Tensor:
        t, x = t.detach().requires_grad_(), x.detach().requires_grad_()
        u = m(torch.cat([t, x], dim=1))
        ones = torch.ones_like(u)
        u_t = torch.autograd.grad(u, t, grad_outputs=ones, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=ones, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=ones, create_graph=True)[0]
        inside = (u_t + u * u_x - 0.01 / torch.pi * u_xx).pow(2).mean()
        return inside + functional.mse_loss(m(torch.cat([torch.zeros_like(x0), x0], 1)), u0)

    def batch() -> tuple[Tensor, ...]:
        return torch.rand(8, 1), torch.rand(8, 1), torch.rand(4, 1), torch.rand(4, 1)

    return fit(mlp(2, 10, 10, 1, act=nn.Tanh), loss_of, batch)


class Field(nn.Module):
    """A radiance field with encodings of places, and rays through it."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.color = mlp(3 + 12, 12, 12), mlp(12, 8, 3)
        self.density = nn.Linear(12, 1)
        self.register_buffer("rates", 2.0 ** torch.arange(2))

    def forward(self, origin: Tensor, way: Tensor, depth: Tensor) -> Tensor:
        places = origin[:, None] + way[:, None] * depth[..., None]
        angle = places[..., None, :] * self.rates[:, None]
        seen = torch.cat([places, angle.sin().flatten(-2), angle.cos().flatten(-2)], -1)
        h = self.body(seen)
        sigma = functional.relu(self.density(h)[..., 0])
        gaps = depth[..., 1:] - depth[..., :-1]
        gaps = torch.cat([gaps, torch.full_like(gaps[..., :1], 1e10)], -1)
        alpha = 1 - torch.exp(-sigma * gaps)
        ones = torch.ones((alpha.shape[0], 1), dtype=alpha.dtype)
        seen_through = torch.cumprod(torch.cat([ones, 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return torch.sum((alpha * seen_through)[..., None] * torch.sigmoid(self.color(h)), -2)


@published
def nerf() -> Training:
    """Colours along rays."""

    def batch() -> tuple[Tensor, ...]:
        depth = torch.linspace(0.5, 2, 5).expand(4, 5).contiguous()
        return torch.randn(4, 3), torch.randn(4, 3), depth, torch.rand(4, 3)

    return fit(Field(), lambda m, o, w, d, c: functional.mse_loss(m(o, w, d), c), batch)


@published
def neural_ode() -> Training:
    """Four steps of Runge-Kutta."""

    def loss_of(m: nn.Module, y: Tensor, wanted: Tensor) -> Tensor:
        h, found = 0.1, [y]
        for _ in range(4):
            k1 = m(y)
            k2 = m(y + h / 2 * k1)
            k3 = m(y + h / 2 * k2)
            k4 = m(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            found.append(y)
        return (torch.stack(found) - wanted).abs().mean()

    return fit(
        mlp(2, 8, 2, act=nn.Tanh), loss_of, lambda: (torch.randn(5, 2), torch.randn(5, 5, 2))
    )


@published
def hamiltonian() -> Training:
    """A field that is the derivative of a network, by torch.func."""

    def loss_of(m: nn.Module, z: Tensor, wanted: Tensor) -> Tensor:
        slope = torch.func.vmap(torch.func.grad(lambda x: m(x).sum()))(z)
        q, p = slope.chunk(2, -1)
        return functional.mse_loss(torch.cat([p, -q], -1), wanted)

    return fit(mlp(4, 8, 1, act=nn.Tanh), loss_of, lambda: (torch.randn(5, 4), torch.randn(5, 4)))


class Splines(nn.Module):
    """A layer of B-splines (KAN)."""

    def __init__(self, inputs: int, outputs: int, size: int = 4, order: int = 2) -> None:
        super().__init__()
        self.order = order
        knots = torch.arange(-order, size + order + 1) * (2 / size) - 1
        self.register_buffer("grid", knots.expand(inputs, -1).contiguous())
        self.base = nn.Parameter(torch.randn(outputs, inputs) * 0.1)
        self.spline = nn.Parameter(torch.randn(outputs, inputs, size + order) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        g, y = self.grid, x.unsqueeze(-1)
        b = ((y >= g[:, :-1]) & (y < g[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            left = (y - g[:, : -(k + 1)]) / (g[:, k:-1] - g[:, : -(k + 1)])
            right = (g[:, k + 1 :] - y) / (g[:, k + 1 :] - g[:, 1:-k])
            b = left * b[:, :, :-1] + right * b[:, :, 1:]
        return functional.linear(functional.silu(x), self.base) + functional.linear(
            b.flatten(1), self.spline.flatten(1)
        )


@published
def kan() -> Training:
    """Two layers of it."""
    return fit(
        nn.Sequential(Splines(3, 5), Splines(5, 2)),
        lambda m, x, y: functional.mse_loss(m(x), y),
        lambda: (torch.rand(6, 3) - 0.5, torch.randn(6, 2)),
    )


# -- recommendations ------------------------------------------------------------------------------


class DeepFM(nn.Module):
    """Factors of all fields, and a perceptron beside them."""

    def __init__(self, sizes: tuple[int, ...] = (7, 5, 9), width: int = 4) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, *sizes[:-1]]).cumsum(0))
        self.table, self.linear = nn.Embedding(sum(sizes), width), nn.Embedding(sum(sizes), 1)
        self.bias = nn.Parameter(torch.zeros(1))
        self.deep = nn.Sequential(
            nn.Linear(3 * width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.offsets
        e = self.table(x)
        pairs = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return (self.linear(x).sum(1) + self.bias + pairs + self.deep(e.flatten(1))).squeeze(1)


@published
def deep_fm() -> Training:
    """Clicks."""
    return fit(
        DeepFM(),
        lambda m, x, y: functional.binary_cross_entropy(torch.sigmoid(m(x)), y),
        lambda: (torch.stack([classes(n, 6) for n in (7, 5, 9)], 1), classes(2, 6).float()),
    )


class Towers(nn.Module):
    """Users and items, compared within the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.EmbeddingBag(20, 8, mode="mean"), nn.Embedding(15, 8)
        self.left, self.right = mlp(8, 12, 8), mlp(8, 12, 8)

    def forward(self, histories: Tensor, items: Tensor) -> Tensor:
        u = functional.normalize(self.left(self.users(histories)), dim=-1)
        v = functional.normalize(self.right(self.items(items)), dim=-1)
        return u @ v.t() / 0.1


@published
def two_towers() -> Training:
    """The diagonal is right."""
    return fit(
        Towers(),
        lambda m, h, i: functional.cross_entropy(m(h, i), torch.arange(len(i))),
        lambda: (torch.randint(0, 20, (4, 3)), torch.randint(0, 15, (4,))),
    )
