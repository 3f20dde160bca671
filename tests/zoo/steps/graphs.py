"""Networks over graphs and clouds of points, as authors write them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import mlp
from zoo.steps.table import BATCH, CALLS, Training, adamw, classes, fit, published

# -- graphs ---------------------------------------------------------------------------------------


NODES, EDGES = 9, 20


def graph() -> tuple[Tensor, Tensor]:
    """Features of nodes, and pairs of them."""
    return torch.randn(NODES, 6), torch.randint(0, NODES, (2, EDGES))


class GCN(nn.Module):
    """Kipf and Welling, with degrees that are counted in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(6, 8, bias=False), nn.Linear(8, 3, bias=False)
        self.bias = nn.Parameter(torch.zeros(3))

    def conv(self, x: Tensor, index: Tensor) -> Tensor:
        loops = torch.arange(x.size(0), device=x.device)
        row, col = torch.cat([index, loops.repeat(2, 1)], dim=1)
        degree = torch.zeros(x.size(0), dtype=x.dtype).scatter_add_(0, col, x.new_ones(col.size(0)))
        root = degree.pow(-0.5)
        root[root == float("inf")] = 0
        norm = root[row] * root[col]
        return torch.zeros_like(x).index_add_(0, col, norm[:, None] * x[row])

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        x = self.conv(self.lin1(x), index).relu()
        return self.conv(self.lin2(x), index) + self.bias


def _mask() -> Tensor:
    mask = torch.zeros(NODES, dtype=torch.bool)
    mask[:5] = True
    return mask


class Data:
    """One graph, as libraries hold it."""

    def __init__(self) -> None:
        self.x, self.edge_index = graph()
        self.x = self.x.double()
        self.y, self.train_mask = classes(3, NODES), _mask()


@published
def gcn_whole_graph() -> Training:
    """The graph is closed over, and a mask picks the nodes that are trained."""
    made, data = GCN().double(), Data()
    optimizer = adamw(made.parameters())

    def train() -> Tensor:
        made.train()
        optimizer.zero_grad()
        out = made(data.x, data.edge_index)
        loss = functional.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(train, [()] * CALLS, [made])


@published
def gcn_weighted() -> Training:
    """Classes of nodes, each with a weight."""

    def loss_of(module: nn.Module, x: Tensor, index: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        each = functional.cross_entropy(module(x, index), y, reduction="none")
        return (each * mask).sum() / mask.sum()

    return fit(GCN(), loss_of, lambda: (*graph(), classes(3, NODES), _mask()))


class GAT(nn.Module):
    """Attention over edges, whose softmax subtracts the maximum of each node."""

    def __init__(self, heads: int = 2, width: int = 4) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.lin = nn.Linear(6, heads * width, bias=False)
        self.a = nn.Parameter(torch.randn(1, heads, width))
        self.b = nn.Parameter(torch.randn(1, heads, width))

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        h = self.lin(x).view(-1, self.heads, self.width)
        source, target = index
        e = (h * self.a).sum(-1)[source] + (h * self.b).sum(-1)[target]
        e = functional.leaky_relu(e, 0.2)
        top = torch.full((x.size(0), self.heads), float("-inf"), dtype=x.dtype)
        where = target[:, None].expand_as(e)
        top = top.scatter_reduce(0, where, e.detach(), reduce="amax", include_self=True)
        e = (e - top[target]).exp()
        total = torch.zeros_like(top).scatter_add(0, where, e)
        weights = e / (total[target] + 1e-16)
        out = torch.zeros_like(h).index_add(0, target, h[source] * weights[:, :, None])
        return out.reshape(x.size(0), -1)


@published
def gat() -> Training:
    """One layer of attention."""
    return fit(GAT(), lambda m, x, i: m(x, i).square().mean(), graph)


class GIN(nn.Module):
    """Sums over neighbours and perceptrons (isomorphism networks), and the sum of each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(2))
        self.layers = nn.ModuleList([mlp(6, 8, 8), mlp(8, 8, 8)])
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor, index: Tensor, batch: Tensor) -> Tensor:
        pooled: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            target = index[1][:, None].expand(-1, x.size(1))
            sums = torch.zeros_like(x).scatter_add(0, target, x[index[0]])
            x = layer((1 + self.eps[number]) * x + sums).relu()
            pooled.append(torch.zeros(2, x.size(1), dtype=x.dtype).index_add(0, batch, x))
        return self.head(torch.cat(pooled, 1))


@published
def gin() -> Training:
    """Two graphs in a batch, to classes."""
    return fit(
        GIN(),
        lambda m, x, i, b, y: functional.cross_entropy(m(x, i, b), y),
        lambda: (*graph(), torch.arange(NODES) // 5, classes(3, 2)),
    )


class Passing(nn.Module):
    """Messages by edges, and a recurrent cell for each node; then sets of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.edge, self.cell = mlp(6 + 6 + 2, 8, 6), nn.GRUCell(6, 6)
        self.head = mlp(6, 8, 1)

    def forward(self, x: Tensor, index: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        h = x
        for _ in range(2):
            message = self.edge(torch.cat([h[index[0]], h[index[1]], edges], -1))
            h = self.cell(torch.zeros_like(h).index_add_(0, index[1], message), h)
        count = torch.bincount(batch, minlength=2).clamp(min=1)
        pooled = torch.zeros(2, 6, dtype=x.dtype).index_add_(0, batch, h) / count[:, None]
        return self.head(pooled).squeeze(-1)


@published
def message_passing() -> Training:
    """Graphs of a batch, with edges that have features."""
    return fit(
        Passing(),
        lambda m, x, i, e, b, y: functional.mse_loss(m(x, i, e, b), y),
        lambda: (*graph(), torch.randn(EDGES, 2), torch.arange(NODES) // 5, torch.randn(2)),
    )


class SchNet(nn.Module):
    """Energies of atoms, whose derivatives are forces."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 6)
        self.filter, self.lin = mlp(4, 6, 6, act=nn.Softplus), nn.Linear(6, 6)
        self.out = mlp(6, 4, 1, act=nn.Softplus)
        self.register_buffer("centers", torch.linspace(0, 3, 4))

    def forward(self, z: Tensor, pos: Tensor, index: Tensor) -> Tensor:
        i, j = index
        far = (pos[i] - pos[j]).square().sum(-1).add(1e-6).sqrt()
        w = self.filter(torch.exp(-2.0 * (far[:, None] - self.centers) ** 2))
        w = w * (0.5 * (torch.cos(far * math.pi / 3) + 1) * (far < 3))[:, None]
        h = self.table(z)
        h = h + torch.zeros_like(h).index_add(0, i, self.lin(h)[j] * w)
        return self.out(h).sum()


@published
def schnet_forces() -> Training:
    """Second derivatives through gathers and sums."""

    def loss_of(m: nn.Module, z: Tensor, pos: Tensor, index: Tensor, force: Tensor) -> Tensor:
        pos = pos.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(m(z, pos, index), pos, create_graph=True)
        return functional.mse_loss(-slope, force)

    return fit(
        SchNet(),
        loss_of,
        lambda: (classes(5, NODES), torch.randn(NODES, 3), graph()[1], torch.randn(NODES, 3)),
    )


class PointNet(nn.Module):
    """Features of points, of which the largest count."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(3, 8, 1), nn.Conv1d(8, 12, 1)
        self.norm, self.fc = nn.BatchNorm1d(8), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv2(functional.relu(self.norm(self.conv1(x))))
        return functional.log_softmax(self.fc(torch.max(x, 2)[0]), dim=1)


@published
def pointnet() -> Training:
    """Clouds of points."""
    return fit(
        PointNet(),
        lambda m, x, y: functional.nll_loss(m(x), y),
        lambda: (torch.randn(BATCH, 3, 7), classes(4)),
    )


class EdgeConv(nn.Module):
    """Neighbours that the features themselves decide (DGCNN)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(2 * inputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(0.2),
        )

    def forward(self, x: Tensor, k: int = 3) -> Tensor:
        b, c, n = x.shape
        inner = -2 * torch.matmul(x.transpose(2, 1), x)
        square = (x**2).sum(1, keepdim=True)
        near = (-square - inner - square.transpose(2, 1)).topk(k=k, dim=-1)[1]
        index = (near + torch.arange(b).view(-1, 1, 1) * n).view(-1)
        flat = x.transpose(2, 1).contiguous().view(b * n, -1)
        feature = flat[index, :].view(b, n, k, c)
        own = flat.view(b, n, 1, c).repeat(1, 1, k, 1)
        feature = torch.cat((feature - own, own), dim=3).permute(0, 3, 1, 2).contiguous()
        return self.conv(feature).max(dim=-1, keepdim=False)[0]


@published
def dgcnn() -> Training:
    """Two layers of it."""
    made = nn.Sequential(EdgeConv(3, 6), EdgeConv(6, 8))
    return fit(made, lambda m, x: m(x).square().mean(), lambda: (torch.randn(BATCH, 3, 7),))
