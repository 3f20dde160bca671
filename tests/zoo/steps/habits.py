"""Habits of training that PyTorch has tutorials for: averages, parametrizations, teachers."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles
from zoo.steps.table import CALLS, Training, classes, fit, published


@published
def per_sample_gradients() -> Training:
    """Gradients of each sample by vmap, clipped one by one: differential privacy."""
    from torch.func import functional_call, grad, vmap

    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def compute_loss(params: Any, sample: Tensor, target: Tensor) -> Tensor:
        found = functional_call(model, params, (sample.unsqueeze(0),))
        return functional.cross_entropy(found, target.unsqueeze(0))

    def step(x: Tensor, y: Tensor) -> Tensor:
        params = {k: v.detach() for k, v in model.named_parameters()}
        each = vmap(grad(compute_loss), in_dims=(None, 0, 0))(params, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
        factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        for name, p in model.named_parameters():
            p.grad = torch.einsum("i,i...->...", factor, each[name]) / len(x)
        optimizer.step()
        return norms.mean()

    return Training(step, [(doubles(4, 6), classes(3, 4)) for _ in range(CALLS)], [model])


@published
def parametrized() -> Training:
    """Symmetric weights, as in the tutorial of parametrizations."""
    from torch.nn.utils import parametrize

    class Symmetric(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.triu() + x.triu(1).transpose(-1, -2)

    layer = nn.Linear(6, 6)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    model = nn.Sequential(layer, nn.Tanh(), nn.Linear(6, 2))
    return fit(
        model,
        lambda m, x, y: functional.mse_loss(m(x), y),
        lambda: (torch.randn(4, 6), torch.randn(4, 2)),
    )


@published
def averaged() -> Training:
    """A moving average of weights by torch's own class, and accumulated gradients."""
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)).double()
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2, eps=1e-4)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), dtype=torch.float64)
        for xs, ys in zip(x.chunk(2), y.chunk(2), strict=True):
            loss = functional.cross_entropy(model(xs), ys) / 2
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        ema.update_parameters(model)
        return total

    return Training(step, [(doubles(4, 6), classes(3, 4)) for _ in range(CALLS)], [model, ema])


@published
def hidden_distillation() -> Training:
    """Hidden features of a teacher by a cosine, and a regressor; of the tutorial."""
    teacher = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)).double()
    student, regressor = copy.deepcopy(teacher), nn.Conv2d(6, 6, 3, padding=1).double()
    with torch.no_grad():
        for p in student.parameters():
            p.mul_(0.5)
    teacher.eval()
    pairs = itertools.chain(student.parameters(), regressor.parameters())
    optimizer = torch.optim.Adam(pairs, lr=1e-3, eps=1e-4)
    cosine = nn.CosineEmbeddingLoss()

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        with torch.no_grad():
            hidden = teacher(x)
        found = regressor(student(x))
        target = torch.ones(x.size(0)).to(x.device)
        loss = cosine(found.flatten(1), hidden.flatten(1), target=target)
        loss = loss + nn.MSELoss()(found, hidden)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, [(doubles(4, 3, 8, 8),) for _ in range(CALLS)], [student, regressor])
