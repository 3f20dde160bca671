"""Steps of code that many have copied from well-known repositories."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles, mlp
from zoo.steps.sequences import likelihood, pairs
from zoo.steps.table import CALLS, WORDS, Training, adamw, classes, fit, published

# -- words ----------------------------------------------------------------------------------------


class FlattenConsecutive(nn.Module):
    """Of makemore."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        x = x.view(b, t // self.n, c * self.n)
        return x.squeeze(1) if x.shape[1] == 1 else x


class OwnNorm(nn.Module):
    """A batch norm as makemore writes it: attributes that are replaced in each call."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.running_mean = torch.zeros(dim, dtype=torch.float64)
        self.running_var = torch.ones(dim, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        dim = 0 if x.ndim == 2 else (0, 1)
        mean = x.mean(dim, keepdim=True)
        var = x.var(dim, keepdim=True)
        with torch.no_grad():
            self.running_mean = 0.9 * self.running_mean + 0.1 * mean.reshape(-1)
            self.running_var = 0.9 * self.running_var + 0.1 * var.reshape(-1)
        return self.gamma * (x - mean) / torch.sqrt(var + 1e-5) + self.beta


@published
def makemore_wavenet() -> Training:
    """Pairs of letters join in three levels."""
    layers: list[nn.Module] = [nn.Embedding(WORDS, 6)]
    width = 6
    for _ in range(3):
        layers += [
            FlattenConsecutive(2),
            nn.Linear(2 * width, 8, bias=False),
            OwnNorm(8),
            nn.Tanh(),
        ]
        width = 8
    made = nn.Sequential(*layers, nn.Linear(8, WORDS))
    return fit(
        made,
        lambda m, x, y: functional.cross_entropy(m(x), y),
        lambda: (torch.randint(WORDS, (4, 8)), torch.randint(WORDS, (4,))),
        lambda p: torch.optim.SGD(p, lr=0.1),
    )


class BigramHead(nn.Module):
    """One head of the lecture on GPT, whose mask is cut to the text."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.key, self.query = (
            nn.Linear(width, size, bias=False),
            nn.Linear(width, size, bias=False),
        )
        self.value, self.dropout = nn.Linear(width, size, bias=False), nn.Dropout(0.0)
        self.register_buffer("tril", torch.tril(torch.ones(8, 8)))

    def forward(self, x: Tensor) -> Tensor:
        _, t, _ = x.shape
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        return self.dropout(functional.softmax(wei, dim=-1)) @ self.value(x)


class LectureGPT(nn.Module):
    """Heads in a list, which are concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(WORDS, 16), nn.Embedding(8, 16)
        self.heads = nn.ModuleList([BigramHead(16, 4) for _ in range(4)])
        self.proj, self.ln, self.head = nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, WORDS)

    def forward(self, idx: Tensor) -> Tensor:
        _, t = idx.shape
        x = self.token(idx) + self.position(torch.arange(t, device=idx.device))
        x = x + self.proj(torch.cat([h(self.ln(x)) for h in self.heads], dim=-1))
        return self.head(x)


@published
def lecture_gpt() -> Training:
    """Of the lecture that many have typed along with."""
    return fit(LectureGPT(), likelihood, pairs)


def newton_schulz(g: Tensor, steps: int = 5) -> Tensor:
    """The nearest orthogonal matrix, about."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    if g.size(0) > g.size(1):
        x = x.T
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if g.size(0) > g.size(1) else x


class OwnMuon(torch.optim.Optimizer):
    """The optimizer of fast runs of GPT, as its author writes it."""

    def __init__(self, params: Any, lr: float = 0.02, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": True})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(g)
                buf = state["momentum_buffer"]
                buf.lerp_(g, 1 - group["momentum"])
                g = g.lerp_(buf, group["momentum"]) if group["nesterov"] else buf
                scale = max(1, p.size(-2) / p.size(-1)) ** 0.5
                p.add_(newton_schulz(g), alpha=-group["lr"] * scale)


@published
def muon_speedrun() -> Training:
    """An optimizer of matrices beside one of the rest, and squares of a rectifier."""
    model = nn.ModuleDict({"h": nn.Linear(8, 12, bias=False), "o": nn.Linear(12, 5)}).double()
    muon = OwnMuon([model["h"].weight])
    others = adamw(model["o"].parameters())

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = functional.cross_entropy(model["o"](functional.relu(model["h"](x)).square()), y)
        loss.backward()
        for opt in (muon, others):
            opt.step()
        model.zero_grad(set_to_none=True)
        return loss.detach()

    return Training(step, [(doubles(4, 8), classes(5, 4)) for _ in range(CALLS)], [model])


class Lion(torch.optim.Optimizer):
    """Signs of momentum, as in lion-pytorch."""

    def __init__(self, params: Any, lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr, "betas": (0.9, 0.99), "weight_decay": 0.01})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg, (beta1, beta2) = state["exp_avg"], group["betas"]
                p.data.mul_(1.0 - group["lr"] * group["weight_decay"])
                update = exp_avg.clone().mul_(beta1).add(p.grad, alpha=1.0 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(p.grad, alpha=1.0 - beta2)


@published
def lion() -> Training:
    """An optimizer that somebody else wrote."""
    return fit(
        mlp(6, 8, 3),
        lambda m, x, y: functional.cross_entropy(m(x), y),
        lambda: (torch.randn(4, 6), classes(3, 4)),
        Lion,
    )


class SAM(torch.optim.Optimizer):
    """Sharpness-aware minimization, as in davda54/sam."""

    def __init__(self, params: Any, base: Any, rho: float = 0.05, **kwargs: Any) -> None:
        super().__init__(params, {"rho": rho, **kwargs})
        self.base_optimizer = base(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self) -> None:
        norms = [p.grad.norm(p=2) for g in self.param_groups for p in g["params"]]
        grad_norm = torch.norm(torch.stack(norms), p=2)
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale.to(p))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        self.zero_grad()


@published
def sharpness_aware() -> Training:
    """Two passes of each batch; parameters move away and come back."""
    model = mlp(6, 8, 3).double()
    optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.first_step()
        functional.cross_entropy(model(x), y).backward()
        optimizer.second_step()
        return loss.detach()

    return Training(step, [(doubles(4, 6), classes(3, 4)) for _ in range(CALLS)], [model])


# -- contrast and margins -------------------------------------------------------------------------


@published
def supervised_contrast() -> Training:
    """Of SupContrast: masks of equal labels, without each sample itself."""

    def loss_of(m: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
        features = functional.normalize(m(x.flatten(0, 1)), dim=1).view(4, 2, -1)
        labels = labels.contiguous().view(-1, 1)
        mask = torch.eq(labels, labels.T).to(features)
        count = features.shape[1]
        contrast = torch.cat(torch.unbind(features, dim=1), dim=0)
        logits = torch.div(torch.matmul(contrast, contrast.T), 0.07)
        logits_max, _ = torch.max(logits, dim=1, keepdim=True)
        logits = logits - logits_max.detach()
        mask = mask.repeat(count, count)
        itself = torch.arange(4 * count).view(-1, 1)
        logits_mask = torch.scatter(torch.ones_like(mask), 1, itself, 0)
        mask = mask * logits_mask
        exp_logits = torch.exp(logits) * logits_mask
        log_prob = logits - torch.log(exp_logits.sum(1, keepdim=True))
        pairs_of = mask.sum(1)
        pairs_of = torch.where(pairs_of < 1e-6, 1, pairs_of)
        return -((mask * log_prob).sum(1) / pairs_of).view(count, 4).mean()

    return fit(mlp(6, 8, 5), loss_of, lambda: (torch.randn(4, 2, 6), classes(3, 4)))


class ArcMarginProduct(nn.Module):
    """Of arcface-pytorch."""

    def __init__(self, inputs: int, outputs: int, s: float = 30.0, m: float = 0.5) -> None:
        super().__init__()
        self.s, self.weight = s, nn.Parameter(torch.empty(outputs, inputs))
        nn.init.xavier_uniform_(self.weight)
        self.cos_m, self.sin_m = math.cos(m), math.sin(m)
        self.th, self.mm = math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        cosine = functional.linear(functional.normalize(x), functional.normalize(self.weight))
        sine = torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine > self.th, phi, cosine - self.mm)
        one_hot = torch.zeros(cosine.size(), device=x.device)
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return ((one_hot * phi) + ((1.0 - one_hot) * cosine)) * self.s


@published
def arc_margin() -> Training:
    """Angles with a margin, and a focal loss."""
    made = nn.ModuleDict({"body": mlp(6, 8, 5), "head": ArcMarginProduct(5, 4)})

    def loss_of(m: nn.ModuleDict, x: Tensor, y: Tensor) -> Tensor:
        logp = functional.cross_entropy(m["head"](m["body"](x), y), y, reduction="none")
        return ((1 - torch.exp(-logp)) ** 2 * logp).mean()

    return fit(made, loss_of, lambda: (torch.randn(4, 6), classes(4, 4)))


@published
def dino() -> Training:
    """A teacher that is centred and sharpened; the centre is a buffer."""
    student, dim = mlp(6, 8, 5).double(), 5
    teacher = copy.deepcopy(student).requires_grad_(False)
    holder = nn.Module()
    holder.register_buffer("center", torch.zeros(1, dim, dtype=torch.float64))
    optimizer = adamw(student.parameters())

    def step(x: Tensor, y: Tensor) -> Tensor:
        views = [x, y]
        student_out = [student(v) / 0.1 for v in views]
        raw = [teacher(v) for v in views]
        teacher_out = [functional.softmax((r - holder.center) / 0.04, dim=-1).detach() for r in raw]
        total, terms = 0, 0
        for iq, q in enumerate(teacher_out):
            for v in range(len(student_out)):
                if v == iq:
                    continue
                log = functional.log_softmax(student_out[v], dim=-1)
                total = total + torch.sum(-q * log, dim=-1).mean()
                terms += 1
        loss = total / terms
        with torch.no_grad():
            center = torch.sum(torch.cat(raw), dim=0, keepdim=True) / (2 * len(x))
            holder.center = holder.center * 0.9 + center * 0.1
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for q, k in zip(student.parameters(), teacher.parameters(), strict=True):
                k.data.mul_(0.99).add_((1 - 0.99) * q.detach().data)
        return loss.detach()

    batches = [(doubles(4, 6), doubles(4, 6)) for _ in range(CALLS)]
    return Training(step, batches, [student, teacher, holder])


@published
def swav() -> Training:
    """Codes by three rounds of Sinkhorn and Knopp."""
    made = nn.ModuleDict({"body": mlp(6, 8, 5), "prototypes": nn.Linear(5, 4, bias=False)})

    @torch.no_grad()
    def sinkhorn(out: Tensor) -> Tensor:
        q = torch.exp(out / 0.05).t()
        k, b = q.shape
        q /= torch.sum(q)
        for _ in range(3):
            q /= torch.sum(q, dim=1, keepdim=True)
            q /= k
            q /= torch.sum(q, dim=0, keepdim=True)
            q /= b
        q *= b
        return q.t()

    def loss_of(m: nn.ModuleDict, x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            w = m["prototypes"].weight.data.clone()
            m["prototypes"].weight.copy_(functional.normalize(w, dim=1, p=2))
        z = functional.normalize(m["body"](torch.cat([x, y])), dim=1, p=2)
        output = m["prototypes"](z)
        codes = [sinkhorn(output[i * 4 : (i + 1) * 4].detach()) for i in range(2)]
        losses = [
            -torch.mean(torch.sum(q * functional.log_softmax(output[s] / 0.1, dim=1), dim=1))
            for q, s in ((codes[0], slice(4, 8)), (codes[1], slice(0, 4)))
        ]
        return (losses[0] + losses[1]) / 2

    return fit(made, loss_of, lambda: (torch.randn(4, 6), torch.randn(4, 6)))
