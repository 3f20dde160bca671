"""Steps of published code: contrast, reinforcement, science, recommendations, habits."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles, mlp
from zoo.steps.table import CALLS, Training, adamw, classes, fit, images, published


def small_cnn(outputs: int = 8) -> nn.Module:
    """An encoder of pictures."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, 2, 1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, outputs),
    )


# -- self-supervision -----------------------------------------------------------------------------


@published
def simclr() -> Training:
    """Two views of each picture; the diagonal is taken out by a mask, as in published code."""

    def loss_of(m: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        z = functional.normalize(m(torch.cat([a, b])), dim=1)
        similar = z @ z.T
        n = z.shape[0]
        similar = similar.masked_fill(torch.eye(n, dtype=torch.bool), -9e15) / 0.07
        positive = torch.eye(n, dtype=torch.bool).roll(shifts=n // 2, dims=0)
        return (-similar[positive] + torch.logsumexp(similar, dim=-1)).mean()

    return fit(small_cnn(), loss_of, lambda: (images(8, batch=3), images(8, batch=3)))


@published
def byol() -> Training:
    """A target that follows."""
    online = nn.Sequential(small_cnn(), mlp(8, 8, 8)).double()
    target = copy.deepcopy(online[0]).requires_grad_(False)
    optimizer = adamw(online.parameters())

    def step(a: Tensor, b: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = target(b)
        loss = 2 - 2 * functional.cosine_similarity(online(a), wanted.detach(), dim=-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(online[0].parameters(), target.parameters(), strict=True):
                q.data = q.data * 0.9 + p.data * 0.1
        return loss.detach()

    batches = [(doubles(4, 3, 8, 8), doubles(4, 3, 8, 8)) for _ in range(CALLS)]
    return Training(step, batches, [online, target])


class MoCo(nn.Module):
    """A queue of keys in a buffer, at a place that is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.q = small_cnn()
        self.k = copy.deepcopy(self.q).requires_grad_(False)
        self.register_buffer("queue", functional.normalize(torch.randn(8, 12), dim=0))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        q = functional.normalize(self.q(a), dim=1)
        with torch.no_grad():
            for p, s in zip(self.q.parameters(), self.k.parameters(), strict=True):
                s.copy_(s * 0.9 + p * 0.1)
            k = functional.normalize(self.k(b), dim=1)
        positive = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([positive, negative], dim=1) / 0.07
        with torch.no_grad():
            where = (self.place + torch.arange(k.shape[0])) % 12
            self.queue[:, where] = k.T
            self.place.copy_((self.place + k.shape[0]) % 12)
        return functional.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long))


@published
def moco() -> Training:
    """Keys of earlier batches."""
    return fit(MoCo(), lambda m, a, b: m(a, b), lambda: (images(8, batch=4), images(8, batch=4)))


@published
def barlow_twins() -> Training:
    """A correlation whose diagonal and rest weigh differently."""

    def loss_of(m: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        za, zb = m(a), m(b)
        c = ((za - za.mean(0)) / (za.std(0) + 1e-3)).T @ ((zb - zb.mean(0)) / (zb.std(0) + 1e-3))
        c = c / len(a)
        n = c.shape[0]
        off = c.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()
        return torch.diagonal(c).add(-1).pow(2).sum() + 5e-3 * off.pow(2).sum()

    return fit(small_cnn(), loss_of, lambda: (images(8, batch=4), images(8, batch=4)))


@published
def distillation() -> Training:
    """A teacher in evaluation mode, whose module is closed over."""
    student, teacher = small_cnn(5).double(), small_cnn(5).double().eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)

    def step(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            soft = teacher(x)
        found = student(x)
        loss = 0.5 * functional.cross_entropy(found, y, label_smoothing=0.1) + 2 * (
            functional.kl_div(
                functional.log_softmax(found / 2, 1),
                functional.log_softmax(soft / 2, 1),
                log_target=True,
                reduction="batchmean",
            )
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(student.parameters(), 0.1)
        optimizer.step()
        return loss.detach()

    batches = [(doubles(4, 3, 8, 8), classes(5, 4)) for _ in range(CALLS)]
    return Training(step, batches, [student, teacher], scheduler.step)


@published
def triplets() -> Training:
    """The hardest of a batch."""

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        far = torch.cdist(m(x), m(x), p=2)
        same = y[:, None] == y[None, :]
        hardest = (far * same).max(1)[0]
        nearest = (far + 1e3 * same).min(1)[0]
        return functional.relu(hardest - nearest + 0.3).mean()

    return fit(
        mlp(6, 12, 4), loss_of, lambda: (torch.randn(6, 6), torch.tensor([0, 0, 1, 1, 2, 2]))
    )


@published
def maml() -> Training:
    """Gradients through an inner step, by a functional call."""

    def loss_of(m: nn.Module, x: Tensor, y: Tensor, x2: Tensor, y2: Tensor) -> Tensor:
        names, values = zip(*m.named_parameters(), strict=True)
        inner = functional.mse_loss(
            torch.func.functional_call(m, dict(m.named_parameters()), (x,)), y
        )
        slopes = torch.autograd.grad(inner, values, create_graph=True)
        fast = {n: p - 0.1 * g for n, p, g in zip(names, values, slopes, strict=True)}
        return functional.mse_loss(torch.func.functional_call(m, fast, (x2,)), y2)

    def batch() -> tuple[Tensor, ...]:
        return torch.randn(5, 2), torch.randn(5, 1), torch.randn(5, 2), torch.randn(5, 1)

    return fit(mlp(2, 8, 1, act=nn.Tanh), loss_of, batch)


# -- reinforcement --------------------------------------------------------------------------------


@published
def dqn() -> Training:
    """A target network, and the value of the action that was taken."""
    policy, target = mlp(4, 12, 3).double(), mlp(4, 12, 3).double()
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True, eps=1e-4)

    def step(state: Tensor, action: Tensor, reward: Tensor, after: Tensor, end: Tensor) -> Tensor:
        values = policy(state).gather(1, action)
        with torch.no_grad():
            best = target(after).max(1).values * (1 - end)
        loss = nn.SmoothL1Loss()(values, (best * 0.99 + reward).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        old, new = target.state_dict(), policy.state_dict()
        for key in new:
            old[key] = new[key] * 0.005 + old[key] * 0.995
        target.load_state_dict(old)
        return loss.detach()

    batches = [
        (doubles(6, 4), classes(3, 6, 1), doubles(6), doubles(6, 4), classes(2, 6).double())
        for _ in range(CALLS)
    ]
    return Training(step, batches, [policy, target])


class ActorCritic(nn.Module):
    """Actions and values."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.actor, self.critic = (
            mlp(4, 8, 8, act=nn.Tanh),
            nn.Linear(8, 3),
            nn.Linear(8, 1),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x)
        return self.actor(h), self.critic(h).squeeze(-1)


@published
def ppo() -> Training:
    """Clipped ratios, entropies, and advantages of a batch."""

    def loss_of(m: Any, x: Tensor, a: Tensor, old: Tensor, advantage: Tensor, r: Tensor) -> Tensor:
        logits, value = m(x)
        policy = torch.distributions.Categorical(logits=logits)
        ratio = (policy.log_prob(a) - old).exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        gain = torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage)
        return -gain.mean() + 0.5 * (r - value).pow(2).mean() - 0.01 * policy.entropy().mean()

    return fit(
        ActorCritic(),
        loss_of,
        lambda: (torch.randn(6, 4), classes(3, 6), -torch.rand(6), torch.randn(6), torch.randn(6)),
        clip=0.5,
    )


@published
def soft_actor_critic() -> Training:
    """Three optimizers, a temperature, and noise that is handed over."""
    actor, critic = mlp(4, 8, 4).double(), mlp(6, 8, 1).double()
    target = copy.deepcopy(critic)
    held = nn.ParameterDict({"log_alpha": nn.Parameter(torch.zeros(1, dtype=torch.float64))})
    oa, oc, ot = adamw(actor.parameters()), adamw(critic.parameters()), adamw(held.parameters())

    def act(s: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log = actor(s).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log.clamp(-5, 2).exp())
        raw = mean + normal.stddev * noise
        a = torch.tanh(raw)
        return a, (normal.log_prob(raw) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1, keepdim=True)

    def step(
        s: Tensor, a: Tensor, r: Tensor, s2: Tensor, e1: Tensor, e2: Tensor
    ) -> dict[str, Tensor]:
        alpha = held["log_alpha"].exp().detach()
        with torch.no_grad():
            a2, log2 = act(s2, e2)
            wanted = r + 0.99 * (target(torch.cat([s2, a2], -1)) - alpha * log2)
        loss_c = functional.mse_loss(critic(torch.cat([s, a], -1)), wanted)
        oc.zero_grad()
        loss_c.backward()
        oc.step()
        now, log = act(s, e1)
        loss_a = (alpha * log - critic(torch.cat([s, now], -1))).mean()
        oa.zero_grad()
        loss_a.backward()
        oa.step()
        loss_t = -(held["log_alpha"] * (log.detach() - 2.0)).mean()
        ot.zero_grad()
        loss_t.backward()
        ot.step()
        for p, q in zip(target.parameters(), critic.parameters(), strict=True):
            p.data.mul_(0.995).add_(0.005 * q.data)
        return {"critic": loss_c.detach(), "actor": loss_a.detach(), "alpha": loss_t.detach()}

    batches = [
        (doubles(6, 4), doubles(6, 2), doubles(6, 1), doubles(6, 4), doubles(6, 2), doubles(6, 2))
        for _ in range(CALLS)
    ]
    return Training(step, batches, [actor, critic, target, held])


# -- habits ---------------------------------------------------------------------------------------


@published
def closure_step() -> Training:
    """An optimizer that is given the closure, as its documentation shows."""
    made = mlp(4, 8, 2).double()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.5)

    def step(x: Tensor, y: Tensor) -> Tensor:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = functional.cross_entropy(made(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return Training(step, [(doubles(4, 4), classes(2, 4)) for _ in range(CALLS)], [made])


@published
def groups_and_weights() -> Training:
    """Groups of parameters with rates and decays of their own, classes with weights."""
    made = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)).double()
    decayed = [p for p in made.parameters() if p.ndim > 1]
    rest = [p for p in made.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": 0.1, "lr": 1e-2},
            {"params": rest, "weight_decay": 0.0},
        ],
        lr=1e-3,
        eps=1e-4,
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[1e-2, 1e-3], total_steps=8)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64))

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        logits = made(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), (logits.argmax(-1) == y).float().mean()

    return Training(
        step, [(doubles(5, 4), classes(3, 5)) for _ in range(CALLS)], [made], scheduler.step
    )


@published
def mixed_up() -> Training:
    """Pictures of a batch are mixed, and a scheduler steps within the function."""
    made = small_cnn(5).double()
    optimizer = torch.optim.RMSprop(made.parameters(), lr=1e-3, eps=1e-3)

    def step(x: Tensor, y: Tensor, order: Tensor, share: Tensor) -> Tensor:
        mixed = share * x + (1 - share) * x[order]
        found = made(mixed)
        loss = share * functional.cross_entropy(found, y) + (1 - share) * (
            functional.cross_entropy(found, y[order])
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    batches = [
        (
            doubles(4, 3, 8, 8),
            classes(5, 4),
            torch.tensor([2, 0, 3, 1]),
            torch.tensor(0.3, dtype=torch.float64),
        )
        for _ in range(CALLS)
    ]
    return Training(step, batches, [made])
