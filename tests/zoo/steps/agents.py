"""Steps of published code: agents, and graphs."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles, mlp
from zoo.steps.table import CALLS, Training, adamw, classes, fit, published

STATES, ACTIONS = 4, 3

# -- agents ---------------------------------------------------------------------------------------


class Dueling(nn.Module):
    """Values of states and advantages of actions."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.value = mlp(STATES, 10, 10), nn.Linear(10, 1)
        self.advantage = nn.Linear(10, ACTIONS)

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.body(x))
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


def _steps(count: int = 6) -> tuple[Tensor, ...]:
    """States, actions, rewards, following states, ends."""
    return (
        doubles(count, STATES),
        classes(ACTIONS, count, 1),
        doubles(count, 1),
        doubles(count, STATES),
        torch.randint(0, 2, (count, 1)).double(),
    )


@published
def double_dueling() -> Training:
    """The online network chooses, the target one judges; clamped gradients, and a slow target."""
    online = Dueling().double()
    target = copy.deepcopy(online)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.AdamW(online.parameters(), lr=1e-3, amsgrad=True, eps=1e-4)
    criterion = nn.SmoothL1Loss()

    def step(s: Tensor, a: Tensor, r: Tensor, following: Tensor, ended: Tensor) -> Tensor:
        found = online(s).gather(1, a)
        with torch.no_grad():
            best = online(following).argmax(1, keepdim=True)
            wanted = r + 0.99 * (1 - ended) * target(following).gather(1, best)
        loss = criterion(found, wanted)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(online.parameters(), 100)
        optimizer.step()
        theirs, ours = target.state_dict(), online.state_dict()
        for key in ours:
            theirs[key] = ours[key] * 0.005 + theirs[key] * (1 - 0.005)
        target.load_state_dict(theirs)
        return loss.detach()

    return Training(step, [_steps() for _ in range(CALLS)], [online, target])


@published
def categorical_dqn() -> Training:
    """Distributions of returns, which are projected to fixed atoms by `index_add_`."""
    atoms, low, high = 7, -3.0, 3.0
    online = mlp(STATES, 10, ACTIONS * atoms).double()
    target, optimizer = copy.deepcopy(online), adamw(online.parameters())
    support, gap = torch.linspace(low, high, atoms).double(), (high - low) / (atoms - 1)

    def step(s: Tensor, a: Tensor, r: Tensor, following: Tensor, ended: Tensor) -> Tensor:
        count = s.shape[0]
        with torch.no_grad():
            after = target(following).view(count, ACTIONS, atoms).softmax(-1)
            best = (after * support).sum(-1).argmax(1)
            after = after[torch.arange(count), best]
            at = (r + 0.99 * (1 - ended) * support).clamp(low, high)
            b = (at - low) / gap
            lower, upper = b.floor().long(), b.ceil().long()
            lower[(upper > 0) * (lower == upper)] -= 1
            upper[(lower < (atoms - 1)) * (lower == upper)] += 1
            m = torch.zeros(count, atoms, dtype=s.dtype)
            offset = (torch.arange(count) * atoms).unsqueeze(1).expand(count, atoms)
            m.view(-1).index_add_(0, (lower + offset).view(-1), (after * (upper - b)).view(-1))
            m.view(-1).index_add_(0, (upper + offset).view(-1), (after * (b - lower)).view(-1))
        logs = online(s).view(count, ACTIONS, atoms).log_softmax(-1)
        loss = -(m * logs[range(count), a[:, 0]]).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, [_steps() for _ in range(CALLS)], [online, target])


@published
def quantile_dqn() -> Training:
    """Quantiles of returns by the Huber loss of each pair."""
    quantiles = 5
    online = mlp(STATES, 10, ACTIONS * quantiles).double()
    target, optimizer = copy.deepcopy(online), adamw(online.parameters())

    def step(s: Tensor, a: Tensor, r: Tensor, following: Tensor, ended: Tensor) -> Tensor:
        places = (torch.arange(quantiles, dtype=s.dtype) + 0.5) / quantiles
        with torch.no_grad():
            after = target(following).view(-1, ACTIONS, quantiles)
            best = after.mean(2).max(1)[1]
            wanted = r + 0.99 * (1 - ended) * after[torch.arange(len(s)), best]
        found = online(s).view(-1, ACTIONS, quantiles)
        found = found.gather(1, a.unsqueeze(-1).expand(-1, 1, quantiles)).squeeze(1)
        error = wanted.unsqueeze(1) - found.unsqueeze(2)
        huber = functional.huber_loss(
            found.unsqueeze(2).expand_as(error),
            wanted.unsqueeze(1).expand_as(error),
            reduction="none",
        )
        loss = (
            ((places[:, None] - (error.detach() < 0).to(s.dtype)).abs() * huber)
            .mean(2)
            .sum(1)
            .mean()
        )
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, [_steps() for _ in range(CALLS)], [online])


@published
def implicit_q() -> Training:
    """Expectiles of values, critics, and a policy that is weighed by advantages."""
    nets = nn.ModuleDict(
        {
            "q": mlp(STATES + 1, 8, 1),
            "v": mlp(STATES, 8, 1),
            "pi": mlp(STATES, 8, 1),
        }
    ).double()
    old = copy.deepcopy(nets["q"]).requires_grad_(False)
    optimizers = [
        torch.optim.Adam(nets[k].parameters(), lr=3e-4, eps=1e-4) for k in ("v", "q", "pi")
    ]
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizers[2], 10)

    def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def step(s: Tensor, a: Tensor, r: Tensor, following: Tensor, ended: Tensor) -> Tensor:
        a = a.to(s.dtype) / ACTIONS
        with torch.no_grad():
            wanted, ahead = old(torch.cat([s, a], 1)), nets["v"](following)
        advantage = wanted - nets["v"](s)
        weight = torch.abs(0.7 - (advantage < 0).to(s.dtype))
        update(optimizers[0], torch.mean(weight * advantage**2))
        judged = r + (1.0 - ended) * 0.99 * ahead.detach()
        loss = functional.mse_loss(nets["q"](torch.cat([s, a], 1)), judged)
        update(optimizers[1], loss)
        for theirs, ours in zip(old.parameters(), nets["q"].parameters(), strict=True):
            theirs.data.mul_(1 - 0.005).add_(ours.data, alpha=0.005)
        weights = torch.exp(3.0 * advantage.detach()).clamp(max=100.0)
        update(optimizers[2], torch.mean(weights * (nets["pi"](s) - a) ** 2))
        return loss.detach()

    return Training(step, [_steps() for _ in range(CALLS)], [nets, old], after=schedule.step)


@published
def generalized_advantages() -> Training:
    """PPO whose advantages a loop finds from the end, and several passes over the same steps."""
    module = nn.ModuleDict(
        {"actor": mlp(STATES, 8, ACTIONS, act=nn.Tanh), "critic": mlp(STATES, 8, 1)}
    )
    module.double()
    optimizer = torch.optim.Adam(module.parameters(), lr=2.5e-4, eps=1e-5)

    def step(s: Tensor, a: Tensor, r: Tensor, before: Tensor, ended: Tensor) -> Tensor:
        with torch.no_grad():
            values = module["critic"](s).flatten()
            advantages = torch.zeros_like(r[:, 0])
            last: Tensor | float = 0.0
            for t in reversed(range(len(r))):
                going = 1.0 - ended[t, 0]
                ahead = values[t + 1] if t + 1 < len(r) else torch.zeros_like(values[t])
                delta = r[t, 0] + 0.99 * ahead * going - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * going * last
            returns = advantages + values
        for _ in range(2):
            p = torch.distributions.Categorical(logits=module["actor"](s), validate_args=False)
            ratio = (p.log_prob(a[:, 0]) - before[:, 0]).exp()
            scaled = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            policy = torch.max(-scaled * ratio, -scaled * ratio.clamp(0.8, 1.2)).mean()
            found = module["critic"](s).view(-1)
            held = values + torch.clamp(found - values, -0.2, 0.2)
            value = 0.5 * torch.max((found - returns) ** 2, (held - returns) ** 2).mean()
            loss = policy - 0.01 * p.entropy().mean() + 0.5 * value
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            optimizer.step()
        return loss.detach()

    return Training(step, [_steps() for _ in range(CALLS)], [module])


@published
def preferences() -> Training:
    """Direct preferences (DPO): a policy beside one that stays."""
    policy = nn.Sequential(nn.Embedding(11, 8), nn.GELU(), nn.Linear(8, 11))
    before = copy.deepcopy(policy).double().requires_grad_(False)

    def logs(m: nn.Module, text: Tensor, mask: Tensor) -> Tensor:
        found = m(text[:, :-1]).log_softmax(-1)
        return (found.gather(-1, text[:, 1:, None]).squeeze(-1) * mask[:, 1:]).sum(-1)

    def loss_of(m: nn.Module, good: Tensor, bad: Tensor, a: Tensor, b: Tensor) -> Tensor:
        with torch.no_grad():
            reference = logs(before, good, a) - logs(before, bad, b)
        margin = logs(m, good, a) - logs(m, bad, b) - reference
        return -functional.logsigmoid(0.1 * margin).mean()

    def batch() -> tuple[Tensor, ...]:
        return classes(11, 4, 6), classes(11, 4, 6), torch.ones(4, 6), torch.ones(4, 6)

    return fit(policy, loss_of, batch)


# -- graphs ---------------------------------------------------------------------------------------


def _edges(nodes: int = 6, count: int = 10) -> Tensor:
    return torch.stack([classes(nodes, count), classes(nodes, count)])


@published
def graph_sage() -> Training:
    """Means of neighbours by `scatter_reduce`, and products of ends as scores of edges."""

    class Sage(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.own, self.others = (
                nn.Linear(inputs, outputs),
                nn.Linear(inputs, outputs, bias=False),
            )

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            source, target = edges
            to = target[:, None].expand(-1, x.shape[1])
            mean = torch.zeros_like(x).scatter_reduce(0, to, x[source], "mean", include_self=False)
            return functional.normalize(self.own(x) + self.others(mean), p=2.0, dim=-1)

    module = nn.ModuleList([Sage(4, 6), Sage(6, 5)])

    def loss(m: nn.Module, x: Tensor, edges: Tensor, wrong: Tensor) -> Tensor:
        h = m[1](functional.relu(m[0](x, edges)), edges)
        good, bad = (h[edges[0]] * h[edges[1]]).sum(-1), (h[wrong[0]] * h[wrong[1]]).sum(-1)
        labels = torch.cat([torch.ones_like(good), torch.zeros_like(bad)])
        return functional.binary_cross_entropy_with_logits(torch.cat([good, bad]), labels)

    return fit(module, loss, lambda: (doubles(6, 4), _edges(), _edges()))


@published
def graph_isomorphism() -> Training:
    """Sums of neighbours, norms of batches, and sums of the nodes of each graph."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.eps = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(2)])
            self.layers = nn.ModuleList(
                nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 5))
                for _ in range(2)
            )
            self.heads = nn.ModuleList(nn.Linear(5, 3) for _ in range(3))

        def forward(self, x: Tensor, edges: Tensor, graph: Tensor) -> Tensor:
            found: Tensor | int = 0
            kept = [x]
            for eps, layer in zip(self.eps, self.layers, strict=True):
                summed = torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])
                x = functional.relu(layer((1 + eps) * x + summed))
                kept.append(x)
            for head, h in zip(self.heads, kept, strict=True):
                pooled = torch.zeros(3, h.shape[1], dtype=h.dtype).index_add(0, graph, h)
                found = found + functional.dropout(head(pooled), 0.0, training=self.training)
            return found

    def batch() -> tuple[Tensor, ...]:
        return doubles(9, 5), _edges(9, 14), torch.arange(9) // 3, classes(3, 3)

    return fit(Network(), lambda m, x, e, g, y: functional.cross_entropy(m(x, e, g), y), batch)


@published
def equivariant() -> Training:
    """Messages by distances, which move the places of nodes (EGNN)."""

    class Layer(nn.Module):
        def __init__(self, width: int = 6) -> None:
            super().__init__()
            self.edge, self.node = (
                mlp(2 * width + 1, 8, width, act=nn.SiLU),
                mlp(2 * width, 8, width),
            )
            self.place = nn.Sequential(nn.Linear(width, 6), nn.SiLU(), nn.Linear(6, 1, bias=False))

        def forward(self, h: Tensor, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
            row, col = edges
            gap = x[row] - x[col]
            radial = torch.sum(gap**2, 1).unsqueeze(1)
            gap = gap / (torch.sqrt(radial).detach() + 1)
            message = self.edge(torch.cat([h[row], h[col], radial], dim=1))
            index = row.unsqueeze(-1).expand(-1, 3)
            moved = x.new_full((x.size(0), 3), 0).scatter_add_(0, index, gap * self.place(message))
            count = x.new_full((x.size(0), 3), 0).scatter_add_(0, index, torch.ones_like(gap))
            gathered = h.new_zeros(h.size(0), message.size(1))
            gathered.scatter_add_(0, row.unsqueeze(-1).expand(-1, message.size(1)), message)
            return h + self.node(torch.cat([h, gathered], 1)), x + moved / count.clamp(min=1)

    def loss_of(m: nn.Module, h: Tensor, x: Tensor, edges: Tensor, wanted: Tensor) -> Tensor:
        for layer in m:
            h, x = layer(h, x, edges)
        return functional.mse_loss(x, wanted) + h.pow(2).mean()

    def batch() -> tuple[Tensor, ...]:
        return doubles(5, 6), doubles(5, 3), _edges(5, 8), doubles(5, 3)

    return fit(nn.ModuleList([Layer(), Layer()]), loss_of, batch)


@published
def relations() -> Training:
    """A matrix for each kind of edge, which a few bases span (R-GCN)."""

    class Layer(nn.Module):
        def __init__(self, inputs: int, outputs: int, kinds: int = 3, bases: int = 2) -> None:
            super().__init__()
            self.bases = nn.Parameter(torch.randn(bases, inputs, outputs) * 0.3)
            self.mix, self.root = (
                nn.Parameter(torch.randn(kinds, bases)),
                nn.Linear(inputs, outputs),
            )

        def forward(self, x: Tensor, edges: Tensor, kind: Tensor) -> Tensor:
            weight = torch.einsum("rb,bio->rio", self.mix, self.bases)
            found = self.root(x)
            for r in range(weight.shape[0]):
                chosen = (kind == r).to(x.dtype).unsqueeze(1)
                degree = torch.zeros(x.shape[0], 1, dtype=x.dtype).index_add_(0, edges[1], chosen)
                message = (x[edges[0]] @ weight[r]) * chosen
                summed = torch.zeros_like(found).index_add_(0, edges[1], message)
                found = found + summed / degree.clamp(min=1)
            return found

    def loss_of(m: nn.Module, x: Tensor, edges: Tensor, kind: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(m[1](functional.relu(m[0](x, edges, kind)), edges, kind), y)

    def batch() -> tuple[Tensor, ...]:
        return doubles(6, 5), _edges(), classes(3, 10), classes(4, 6)

    return fit(nn.ModuleList([Layer(5, 6), Layer(6, 4)]), loss_of, batch)
