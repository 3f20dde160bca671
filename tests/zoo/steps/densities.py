"""Steps of published code about densities, equations and control."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles, mlp
from zoo.steps.table import CALLS, Training, adamw, fit, published


@published
def glow() -> Training:
    """Invertible convolutions: the logarithm of a determinant."""

    class InvConv(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.linalg.qr(torch.randn(4, 4))[0])

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            _, _, height, width = x.shape
            out = functional.conv2d(x, self.weight.unsqueeze(2).unsqueeze(3))
            logdet = height * width * torch.slogdet(self.weight)[1]
            return out, logdet

    def loss_of(m: nn.Module, x: Tensor) -> Tensor:
        out, logdet = m(x)
        return 0.5 * out.square().sum([1, 2, 3]).mean() - logdet

    return fit(InvConv(), loss_of, lambda: (torch.randn(2, 4, 3, 3),))


@published
def gaussian_process() -> Training:
    """A marginal likelihood by a Cholesky factor."""
    made = nn.ParameterDict(
        {k: nn.Parameter(torch.zeros(())) for k in ("scale", "length", "noise")}
    )

    def loss_of(m: nn.ParameterDict, x: Tensor, y: Tensor) -> Tensor:
        distance = (x.unsqueeze(1) - x.unsqueeze(0)).pow(2).sum(-1)
        k = m["scale"].exp() * torch.exp(-0.5 * distance / m["length"].exp().pow(2))
        k = k + m["noise"].exp() * torch.eye(len(x), dtype=x.dtype)
        factor = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(y.unsqueeze(1), factor)
        return (0.5 * y.unsqueeze(1) * alpha).sum() + torch.log(torch.diagonal(factor)).sum()

    return fit(made, loss_of, lambda: (torch.randn(5, 2), torch.randn(5)))


class Adjoint(torch.autograd.Function):
    """Euler's steps, whose derivative solves another equation backwards; of torchdiffeq."""

    @staticmethod
    def forward(ctx: Any, func: Any, y: Tensor, *params: Tensor) -> Tensor:
        ctx.func = func
        with torch.no_grad():
            for _ in range(4):
                y = y + 0.25 * func(y)
        ctx.save_for_backward(y, *params)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        y, *params = ctx.saved_tensors
        sums = [torch.zeros_like(p) for p in params]
        for _ in range(4):
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                f = ctx.func(y)
                dy, *dp = torch.autograd.grad(f, (y, *params), grad, allow_unused=True)
            y, grad = y - 0.25 * f, grad + 0.25 * dy
            sums = [
                s + 0.25 * (torch.zeros_like(s) if d is None else d)
                for s, d in zip(sums, dp, strict=True)
            ]
        return (None, grad, *sums)


@published
def adjoint_ode() -> Training:
    """Memory that does not grow with steps."""
    return fit(
        mlp(3, 6, 3, act=nn.Tanh),
        lambda m, y, z: (Adjoint.apply(m, y, *m.parameters()) - z).abs().mean(),
        lambda: (torch.randn(4, 3), torch.randn(4, 3)),
    )


@published
def twin_delayed() -> Training:
    """Of TD3: two critics, a target that is smoothed, and an actor."""
    actor, critics = mlp(4, 8, 2).double(), nn.ModuleList([mlp(6, 8, 1) for _ in range(2)]).double()
    targets = copy.deepcopy(nn.ModuleList([actor, *critics]))
    actor_optimizer, critic_optimizer = adamw(actor.parameters()), adamw(critics.parameters())

    def step(s: Tensor, a: Tensor, r: Tensor, s2: Tensor, done: Tensor, e: Tensor) -> Tensor:
        with torch.no_grad():
            noise = (e * 0.2).clamp(-0.5, 0.5)
            next_action = (torch.tanh(targets[0](s2)) + noise).clamp(-1, 1)
            both = torch.cat([s2, next_action], 1)
            target = r + (1 - done) * 0.99 * torch.min(targets[1](both), targets[2](both))
        q1, q2 = (critic(torch.cat([s, a], 1)) for critic in critics)
        critic_loss = functional.mse_loss(q1, target) + functional.mse_loss(q2, target)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
        actor_loss = -critics[0](torch.cat([s, torch.tanh(actor(s))], 1)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        for param, target_param in zip(
            [*actor.parameters(), *critics.parameters()], targets.parameters(), strict=True
        ):
            target_param.data.copy_(0.005 * param.data + 0.995 * target_param.data)
        return critic_loss.detach()

    def batch() -> tuple[Tensor, ...]:
        done = torch.randint(2, (5, 1)).double()
        return doubles(5, 4), doubles(5, 2), doubles(5, 1), doubles(5, 4), done, doubles(5, 2)

    return Training(step, [batch() for _ in range(CALLS)], [actor, critics, targets])
