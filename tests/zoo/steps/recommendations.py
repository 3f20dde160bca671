"""Steps of published code: facts as vectors, and recommendations."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles, mlp
from zoo.steps.table import CALLS, Training, classes, fit, published


@published
def translations() -> Training:
    """Facts as translations, with a margin (TransE); vectors have norm one before each step."""
    module = nn.ModuleDict({"of": nn.Embedding(9, 5), "by": nn.Embedding(4, 5)}).double()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    criterion = nn.MarginRankingLoss(margin=1.0)

    def distance(facts: Tensor) -> Tensor:
        head, by, tail = (
            module["of"](facts[:, 0]),
            module["by"](facts[:, 1]),
            module["of"](facts[:, 2]),
        )
        return (head + by - tail).norm(p=1, dim=1)

    def step(good: Tensor, bad: Tensor) -> Tensor:
        with torch.no_grad():
            table = module["of"].weight
            table.div_(table.norm(p=2, dim=1, keepdim=True))
        optimizer.zero_grad()
        near, far = distance(good), distance(bad)
        loss = criterion(near, far, torch.tensor([-1], dtype=torch.long))
        loss.mean().backward()
        optimizer.step()
        return loss.detach()

    def batch() -> tuple[Tensor, ...]:
        return classes(4, 6, 3), classes(4, 6, 3)

    return Training(step, [batch() for _ in range(CALLS)], [module])


@published
def skip_gram() -> Training:
    """Words by their neighbours and by wrong words."""

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.u, self.v = nn.Embedding(20, 6), nn.Embedding(20, 6)
            nn.init.uniform_(self.u.weight, -0.08, 0.08)
            nn.init.constant_(self.v.weight, 0)

        def forward(self, word: Tensor, near: Tensor, wrong: Tensor) -> Tensor:
            u, v, n = self.u(word), self.v(near), self.v(wrong)
            score = torch.clamp(torch.sum(u * v, 1), -10, 10)
            others = torch.clamp(torch.bmm(n, u.unsqueeze(2)).squeeze(), -10, 10)
            return (-functional.logsigmoid(score) - functional.logsigmoid(-others).sum(1)).mean()

    def batch() -> tuple[Tensor, ...]:
        return classes(20, 5), classes(20, 5), classes(20, 5, 3)

    return fit(Words(), lambda m, *x: m(*x), batch)


@published
def deep_cross() -> Training:
    """Crosses of all features, a perceptron beside them, and tables of several sizes."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(n, 3) for n in (7, 5, 4))
            self.crosses = nn.ModuleList(nn.Linear(11, 11) for _ in range(2))
            self.deep, self.out = mlp(11, 8, 4), nn.Linear(15, 1)

        def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
            made = [table(kinds[:, i]) for i, table in enumerate(self.tables)]
            x0 = x = torch.cat([*made, numbers], 1)
            for cross in self.crosses:
                x = x0 * cross(x) + x
            return self.out(torch.cat([x, self.deep(x0)], 1)).squeeze(1)

    def batch() -> tuple[Tensor, ...]:
        return doubles(6, 2), classes(4, 6, 3), torch.randint(0, 2, (6,)).double()

    return fit(
        Network(),
        lambda m, n, k, y: functional.binary_cross_entropy(torch.sigmoid(m(n, k)), y),
        batch,
        optimizer=lambda p: torch.optim.Adagrad(p, lr=0.01),
    )


@published
def interest() -> Training:
    """What was bought is weighed by how near it is to what is offered (DIN)."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.items, self.near, self.body = (
                nn.Embedding(12, 4, padding_idx=0),
                mlp(16, 6, 1),
                mlp(8, 6, 1),
            )
            self.dice = nn.BatchNorm1d(4, affine=False)
            self.alpha = nn.Parameter(torch.zeros(4))

        def forward(self, past: Tensor, item: Tensor) -> Tensor:
            keys, query = self.items(past), self.items(item)
            asked = query.unsqueeze(1).expand(-1, past.size(1), -1)
            score = self.near(torch.cat([asked, keys, asked - keys, asked * keys], -1)).transpose(
                1, 2
            )
            mask = (past > 0).unsqueeze(1)
            score = torch.where(mask, score, torch.ones_like(score) * (-(2**32) + 1)).softmax(-1)
            seen = torch.matmul(score, keys).squeeze(1)
            p = torch.sigmoid(self.dice(seen))
            return self.body(
                torch.cat([query, self.alpha * (1 - p) * seen + p * seen], -1)
            ).squeeze(-1)

    def batch() -> tuple[Tensor, ...]:
        past = classes(11, 5, 4) + 1
        past[:, 3] = 0
        return past, classes(11, 5) + 1, torch.randint(0, 2, (5,)).double()

    return fit(
        Network(), lambda m, p, i, y: functional.binary_cross_entropy_with_logits(m(p, i), y), batch
    )
