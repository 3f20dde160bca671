"""Training loops as people publish them, ten steps beside torch: schedules, groups, averages."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from from_torch.kernels_in_numpy import Program
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as they write it
from torch.optim import lr_scheduler

from distspmd import frontend

STEPS = 10


@dataclass
class Loop:
    """What a script has when its loop begins.

    Attributes:
        models: all that is trained or averaged.
        step: of the tensors of a batch.
        batch: makes one.
        after: what the loop does behind a step, with the loss.
        before: likewise, ahead of it, with the number of the step.
    """

    models: list[nn.Module]
    step: Callable[..., Tensor]
    batch: Callable[[], tuple[Tensor, ...]]
    after: Callable[[float], Any] = field(default=lambda loss: None)
    before: Callable[[int], Any] = field(default=lambda number: None)


class Block(nn.Module):
    """A layer of a small GPT, with biases."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Attend to what was before, and mix."""
        b, t, c = x.shape
        q, k, v = self.attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        out: Tensor = x + self.down(F.gelu(self.up(self.ln_2(x))))
        return out


class Gpt(nn.Module):
    """A language model whose head is its table."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(17, 8), nn.Embedding(6, 8)
        self.block, self.ln_f = Block(8, 2), nn.LayerNorm(8)
        self.head = nn.Linear(8, 17, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, idx: Tensor, targets: Tensor) -> Tensor:
        """The loss."""
        pos = torch.arange(0, idx.size(1), device=idx.device)
        logits = self.head(self.ln_f(self.block(self.wte(idx) + self.wpe(pos))))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def words() -> tuple[Tensor, Tensor]:
    """A batch of text, some of which is padding."""
    text = torch.randint(0, 11, (4, 7))
    targets = text[:, 1:].clone()
    targets[0, -2:] = -1
    return text[:, :-1].contiguous(), targets.contiguous()


def gpt_with_warm_up() -> Loop:
    """Groups with and without decay, a rate that begins at 0, clipped gradients."""
    model = Gpt().double()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))

    def rate(it: int) -> float:
        if it < 3:
            return it / 3
        return 0.1 + 0.45 * (1.0 + math.cos(math.pi * (it - 3) / 7))

    scheduler = lr_scheduler.LambdaLR(optimizer, rate)

    def step(idx: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss: Tensor = model(idx, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return Loop([model], step, words, lambda loss: scheduler.step())


def rate_by_hand() -> Loop:
    """Micro-batches in the step, and a rate that the loop writes into the groups."""
    model = Gpt().double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, weight_decay=1e-2)

    def before(it: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * min(1.0, it / 4)

    def step(idx: Tensor, targets: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for x, y in zip(idx.chunk(2), targets.chunk(2), strict=True):
            loss = model(x, y) / 2
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        return total

    return Loop([model], step, words, before=before)


def averaged_by_hand() -> Loop:
    """An average of the model, as for diffusion, and buffers that are copied."""
    model = nn.Sequential(
        nn.Conv1d(3, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.SiLU(), nn.Conv1d(6, 3, 1)
    ).double()
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    @torch.no_grad()
    def update_ema(decay: float = 0.9) -> None:
        for mine, other in zip(ema.parameters(), model.parameters(), strict=True):
            mine.mul_(decay).add_(other.data, alpha=1 - decay)
        for mine, other in zip(ema.buffers(), model.buffers(), strict=True):
            mine.copy_(other)

    def step(x: Tensor, noise: Tensor, t: Tensor) -> Tensor:
        mixed = t[:, None, None].sqrt() * x + (1 - t[:, None, None]).sqrt() * noise
        loss = F.mse_loss(model(mixed), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema()
        return loss

    def batch() -> tuple[Tensor, ...]:
        x = torch.randn(2, 4, 3, 8, dtype=torch.float64)
        return x[0].contiguous(), x[1].contiguous(), torch.rand(4, dtype=torch.float64)

    return Loop([model, ema], step, batch)


def distilled() -> Loop:
    """A frozen teacher, three losses, and a penalty on one layer."""
    teacher = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4)).double().eval()
    teacher.requires_grad_(False)
    student = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)).double()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=STEPS + 1)
    soft = nn.KLDivLoss(reduction="batchmean")

    def step(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = teacher(x)
        scores = student(x)
        loss = 0.5 * F.cross_entropy(scores, y, label_smoothing=0.1)
        loss = loss + 0.5 * 4 * soft(F.log_softmax(scores / 2, -1), F.softmax(wanted / 2, -1))
        loss = loss + 1e-3 * student[0].weight.abs().sum() + 0.1 * F.smooth_l1_loss(scores, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Loop([student, teacher], step, classes(5, 4), lambda loss: scheduler.step())


def classes(width: int, count: int) -> Callable[[], tuple[Tensor, Tensor]]:
    return lambda: (torch.randn(6, width, dtype=torch.float64), torch.randint(0, count, (6,)))


class Chars(nn.Module):
    """Two layers of an LSTM over letters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 5)
        self.lstm = nn.LSTM(5, 6, num_layers=2, batch_first=True)
        self.out = nn.Linear(6, 11)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the next letters."""
        found, _ = self.lstm(self.embed(x))
        scores: Tensor = self.out(found)
        return scores


def letters() -> Loop:
    """RMSprop, clipped values, and a rate that decays."""
    model = Chars().double()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2, alpha=0.95)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        optimizer.step()
        return loss

    def batch() -> tuple[Tensor, Tensor]:
        text = torch.randint(0, 11, (4, 5))
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    return Loop([model], step, batch, lambda loss: scheduler.step())


def images() -> Loop:
    """Normalised batches, biases in a group without decay, and milestones."""
    model = nn.Sequential(
        *(nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)),
    ).double()
    groups: list[dict[str, Any]] = [
        {"params": [p for n, p in model.named_parameters() if "bias" not in n]},
        {"params": [p for n, p in model.named_parameters() if "bias" in n], "lr": 0.02},
    ]
    groups[1]["weight_decay"] = 0.0
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=5e-4)
    warm_up = lr_scheduler.LinearLR(optimizer, start_factor=1e-8, total_iters=3)
    steps = lr_scheduler.MultiStepLR(optimizer, milestones=[3, 5], gamma=0.1)
    scheduler = lr_scheduler.SequentialLR(optimizer, [warm_up, steps], milestones=[3])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def batch() -> tuple[Tensor, Tensor]:
        return torch.randn(6, 2, 4, 4, dtype=torch.float64), torch.randint(0, 3, (6,))

    return Loop([model], step, batch, lambda loss: scheduler.step())


def adversarial() -> Loop:
    """Two networks, each with an optimizer, that are updated in turn."""
    torch.manual_seed(1)
    g = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 4), nn.Tanh()).double()
    d = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).double()
    of_g = torch.optim.Adam(g.parameters(), lr=1e-2, betas=(0.5, 0.999))
    of_d = torch.optim.Adam(d.parameters(), lr=1e-2, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    def step(real: Tensor, z: Tensor) -> Tensor:
        valid = torch.ones(real.size(0), 1, dtype=real.dtype)
        fake = g(z)
        of_d.zero_grad()
        d_loss = criterion(d(real), valid) + criterion(d(fake.detach()), torch.zeros_like(valid))
        d_loss.backward()
        of_d.step()
        of_g.zero_grad()
        g_loss: Tensor = criterion(d(fake), valid)
        g_loss.backward()
        of_g.step()
        return g_loss + d_loss.detach()

    def batch() -> tuple[Tensor, Tensor]:
        x = torch.randn(6, 7, dtype=torch.float64)
        return x[:, :4].contiguous(), x[:, 4:].contiguous()

    return Loop([g, d], step, batch)


def fine_tuned() -> Loop:
    """A frozen body, a head with another rate, and a plateau that is left by the loss."""
    body = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.GELU()).double()
    body.requires_grad_(False)
    body[0].bias.requires_grad_(True)
    head = nn.Linear(6, 4).double()
    optimizer = torch.optim.AdamW(
        [{"params": body.parameters(), "lr": 1e-3}, {"params": head.parameters(), "lr": 5e-2}],
        weight_decay=0.05,
        amsgrad=True,
    )
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.3)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(head(body(x)), y, weight=torch.tensor([1.0, 2, 1, 3]).double())
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in head.parameters() if p.grad is not None], 0.5)
        optimizer.step()
        return loss

    return Loop([body, head], step, classes(5, 4), scheduler.step)


class Agent(nn.Module):
    """Two heads on one body."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.pi, self.v = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values."""
        hidden = torch.tanh(self.body(x))
        return self.pi(hidden), self.v(hidden).squeeze(-1)


def clipped_policy() -> Loop:
    """The update of PPO: ratios that are clipped, an entropy, and a rate that goes to 0."""
    model = Agent().double()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-5)

    def before(update: int) -> None:
        optimizer.param_groups[0]["lr"] = (1.0 - update / (STEPS - 1)) * 1e-2

    def step(obs: Tensor, actions: Tensor, old: Tensor, adv: Tensor, returns: Tensor) -> Tensor:
        logits, value = model(obs)
        dist = torch.distributions.Categorical(logits=logits)
        ratio = (dist.log_prob(actions) - old).exp()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        policy = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
        loss = policy - 0.01 * dist.entropy().mean() + 0.5 * (value - returns).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss

    def batch() -> tuple[Tensor, ...]:
        drawn = torch.randn(3, 6, dtype=torch.float64)
        obs = torch.randn(6, 4, dtype=torch.float64)
        return obs, torch.randint(0, 3, (6,)), drawn[0] - 1, drawn[1].clone(), drawn[2].clone()

    return Loop([model], step, batch, before=before)


def momentum_contrast() -> Loop:
    """A second encoder that follows the first, and a loss over all pairs of the batch."""
    first = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4)).double()
    second = copy.deepcopy(first).requires_grad_(False)
    optimizer = torch.optim.NAdam(first.parameters(), lr=1e-2)
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=3)

    def step(a: Tensor, b: Tensor) -> Tensor:
        q = F.normalize(first(a), dim=1)
        with torch.no_grad():
            for mine, other in zip(first.parameters(), second.parameters(), strict=True):
                other.data = other.data * 0.9 + mine.data * 0.1
            k = F.normalize(second(b), dim=1)
        loss = F.cross_entropy(q @ k.T / 0.2, torch.arange(a.shape[0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def batch() -> tuple[Tensor, Tensor]:
        x = torch.randn(6, 5, dtype=torch.float64)
        return x, x + 0.1 * torch.randn(6, 5, dtype=torch.float64)

    return Loop([first, second], step, batch, lambda loss: scheduler.step())


LOOPS = {
    loop.__name__: loop
    for loop in (
        *(gpt_with_warm_up, rate_by_hand, averaged_by_hand, distilled, letters, images),
        *(adversarial, fine_tuned, clipped_policy, momentum_contrast),
    )
}


def both(name: str) -> tuple[Loop, Loop]:
    """The loop twice, from the same values."""
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        found.append(LOOPS[name]())
    return found[0], found[1]


def batches(loop: Loop) -> Iterator[tuple[Tensor, ...]]:
    torch.manual_seed(7)
    for _ in range(STEPS):
        yield loop.batch()


def same(mine: Loop, other: Loop) -> None:
    for ours, theirs in zip(mine.models, other.models, strict=True):
        for (key, x), y in zip(
            ours.state_dict().items(), theirs.state_dict().values(), strict=True
        ):
            torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-8, msg=lambda m, key=key: key + m)


QUICK = ("gpt_with_warm_up", "fine_tuned", "momentum_contrast")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in LOOPS]
)
def test_ten_steps_of_a_loop_on_paper(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = both(name)
    given = list(batches(mine))
    call = Program(monkeypatch).calls(mine.step, *given[0])
    for number, batch in enumerate(given):
        mine.before(number), other.before(number)
        loss, wanted = float(call(*batch)[0]), float(other.step(*batch).detach())
        assert loss == pytest.approx(wanted, rel=1e-6), number
        mine.after(loss), other.after(wanted)
    same(mine, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_ten_steps_of_a_loop_on_ranks(name: str) -> None:
    call_on_ranks("training.test_published_loops", f"train({name!r}, comm)", 2)


def train(name: str, comm: Any) -> None:
    """Ten steps on all ranks, and beside them those of torch on rank 0."""
    mine, other = both(name)
    with frontend.partitioned(mine.step, frontend.data_parallel(comm.size), comm) as step:
        for number, batch in enumerate(batches(mine)):
            mine.before(number), other.before(number)
            loss = step(*batch)
            wanted = float(other.step(*batch).detach())
            if comm.rank == 0:
                assert float(loss) == pytest.approx(wanted, rel=1e-6), number
            mine.after(wanted), other.after(wanted)
        step.collect()
    if comm.rank == 0:
        same(mine, other)
