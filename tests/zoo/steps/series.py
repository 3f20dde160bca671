"""Steps of published code about series, tables and sets."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from zoo.steps.others import mlp
from zoo.steps.table import WORDS, Training, classes, fit, published, words

# -- series ---------------------------------------------------------------------------------------


class Chomp1d(nn.Module):
    """Of locuslab/TCN."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.chomp_size = size

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, : -self.chomp_size].contiguous()


class TemporalBlock(nn.Module):
    """Dilated convolutions that look back."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        size, padding = 3, 2 * dilation
        self.conv1 = weight_norm(
            nn.Conv1d(inputs, outputs, size, padding=padding, dilation=dilation)
        )
        self.conv2 = weight_norm(
            nn.Conv1d(outputs, outputs, size, padding=padding, dilation=dilation)
        )
        self.net = nn.Sequential(
            *(self.conv1, Chomp1d(padding), nn.ReLU(), self.conv2, Chomp1d(padding), nn.ReLU())
        )
        self.downsample = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        res = x if self.downsample is None else self.downsample(x)
        return functional.relu(self.net(x) + res)


@published
def temporal_convolutions() -> Training:
    """The last place tells."""
    made = nn.Sequential(TemporalBlock(2, 4, 1), TemporalBlock(4, 4, 2), nn.Conv1d(4, 1, 1))
    return fit(
        made,
        lambda m, x, y: functional.mse_loss(m(x)[:, :, -1], y),
        lambda: (torch.randn(3, 2, 10), torch.randn(3, 1)),
        clip=0.5,
    )


class NBeats(nn.Module):
    """Blocks that take away what they explain."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([mlp(8, 12, 12, 3 + 3) for _ in range(3)])
        t = torch.arange(-8, 4) / 12
        self.register_buffer("basis", torch.stack([t**i for i in range(3)]))

    def forward(self, backcast: Tensor) -> Tensor:
        forecast = torch.zeros(size=(backcast.size()[0], 4), dtype=backcast.dtype)
        for block in self.blocks:
            theta = block(backcast)
            b, f = theta[:, :3], theta[:, -3:]
            backcast = backcast - b.mm(self.basis[:, :8])
            forecast = forecast + f.mm(self.basis[:, 8:])
        return forecast


@published
def n_beats() -> Training:
    """With the loss of forecasts in percent."""

    def smape(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        found = m(x)
        return 200 * torch.mean((found - y).abs() / (found.abs() + y.abs()))

    return fit(NBeats(), smape, lambda: (torch.rand(3, 8) + 1, torch.rand(3, 4) + 1))


class DLinear(nn.Module):
    """A moving average, whose ends are repeated, beside what is left; reversible norms."""

    def __init__(self) -> None:
        super().__init__()
        self.avg = nn.AvgPool1d(kernel_size=5, stride=1, padding=0)
        self.seasonal, self.trend = nn.Linear(12, 4), nn.Linear(12, 4)
        self.affine = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        mean = torch.mean(x, dim=1, keepdim=True).detach()
        std = torch.sqrt(torch.var(x, dim=1, keepdim=True, unbiased=False) + 1e-5).detach()
        x = (x - mean) / std * self.affine
        front, end = x[:, 0:1, :].repeat(1, 2, 1), x[:, -1:, :].repeat(1, 2, 1)
        trend = self.avg(torch.cat([front, x, end], dim=1).permute(0, 2, 1)).permute(0, 2, 1)
        left = (x - trend).permute(0, 2, 1)
        found = self.seasonal(left) + self.trend(trend.permute(0, 2, 1))
        return found.permute(0, 2, 1) / self.affine * std + mean


@published
def d_linear() -> Training:
    """Quantiles of the next values."""

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        errors = y - m(x)
        return torch.stack([torch.max((q - 1) * errors, q * errors) for q in (0.1, 0.9)]).mean()

    return fit(DLinear(), loss_of, lambda: (torch.randn(2, 12, 3), torch.randn(2, 4, 3)))


class ConvLSTMCell(nn.Module):
    """Of ConvLSTM_pytorch."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden_dim = hidden
        self.conv = nn.Conv2d(inputs + hidden, 4 * hidden, 3, padding=1)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h_cur, c_cur = state
        combined = self.conv(torch.cat([x, h_cur], dim=1))
        cc_i, cc_f, cc_o, cc_g = torch.split(combined, self.hidden_dim, dim=1)
        i, f, o = torch.sigmoid(cc_i), torch.sigmoid(cc_f), torch.sigmoid(cc_o)
        c_next = f * c_cur + i * torch.tanh(cc_g)
        return o * torch.tanh(c_next), c_next


@published
def conv_lstm() -> Training:
    """Images in time."""
    made = nn.ModuleDict({"cell": ConvLSTMCell(1, 3), "out": nn.Conv2d(3, 1, 1)})

    def loss_of(m: nn.ModuleDict, x: Tensor) -> Tensor:
        h, c = (torch.zeros(2, 3, 5, 5, dtype=x.dtype) for _ in range(2))
        found = []
        for t in range(x.size(1) - 1):
            h, c = m["cell"](x=x[:, t, :, :, :], state=(h, c))
            found.append(m["out"](h))
        return functional.mse_loss(torch.stack(found, dim=1), x[:, 1:])

    return fit(made, loss_of, lambda: (torch.randn(2, 4, 1, 5, 5),))


class CRF(nn.Module):
    """Of pytorch-crf: scores of paths, and of all paths."""

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.start, self.end = nn.Parameter(torch.randn(tags)), nn.Parameter(torch.randn(tags))
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        length, batch = tags.shape
        mask = mask.type_as(emissions)
        score = self.start[tags[0]]
        score = score + emissions[0, torch.arange(batch), tags[0]]
        for i in range(1, length):
            score = score + self.transitions[tags[i - 1], tags[i]] * mask[i]
            score = score + emissions[i, torch.arange(batch), tags[i]] * mask[i]
        ends = mask.long().sum(dim=0) - 1
        score = score + self.end[tags[ends, torch.arange(batch)]]
        every = self.start + emissions[0]
        for i in range(1, length):
            step = every.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            every = torch.where(mask[i].bool().unsqueeze(1), torch.logsumexp(step, dim=1), every)
        return (score - torch.logsumexp(every + self.end, dim=1)).mean()


@published
def lstm_crf() -> Training:
    """Tags of words, read from both ends."""
    made = nn.ModuleDict(
        {
            "words": nn.Embedding(WORDS, 6),
            "lstm": nn.LSTM(6, 4, num_layers=1, bidirectional=True),
            "tags": nn.Linear(8, 4),
            "crf": CRF(4),
        }
    )

    def loss_of(m: nn.ModuleDict, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        lstm_out, _ = m["lstm"](m["words"](x))
        return -m["crf"](m["tags"](lstm_out), y, mask)

    mask = torch.tensor([[1, 1, 1]] * 4 + [[1, 0, 1]], dtype=torch.uint8)
    return fit(made, loss_of, lambda: (words(3, 5), classes(4, 5, 3), mask.clone()))


# -- tables, sets and recommendations -------------------------------------------------------------


class SparsemaxFunction(torch.autograd.Function):
    """Of TabNet: a projection onto the simplex, with its derivative by hand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.dim = -1
        max_val, _ = x.max(dim=-1, keepdim=True)
        x = x - max_val
        rho = torch.arange(1, x.size(-1) + 1, dtype=x.dtype, device=x.device)
        srt, _ = torch.sort(x, descending=True, dim=-1)
        total = srt.cumsum(-1) - 1
        support = rho * srt > total
        size = support.sum(dim=-1).unsqueeze(-1)
        tau = total.gather(-1, size - 1) / size.to(x.dtype)
        output = torch.clamp(x - tau, min=0)
        ctx.save_for_backward(size, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        size, output = ctx.saved_tensors
        grad = grad.clone()
        grad[output == 0] = 0
        v_hat = grad.sum(dim=ctx.dim) / size.to(output.dtype).squeeze(ctx.dim)
        return torch.where(output != 0, grad - v_hat.unsqueeze(ctx.dim), grad)


class GhostNorm(nn.Module):
    """Norms of chunks of a batch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(width, momentum=0.01)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.bn(part) for part in x.chunk(math.ceil(x.shape[0] / 4), 0)], dim=0)


@published
def tab_net() -> Training:
    """Two steps of attention to columns."""
    made = nn.ModuleDict(
        {
            "first": nn.BatchNorm1d(6),
            "att": nn.Linear(4, 6, bias=False),
            "norm": GhostNorm(6),
            "feat": nn.Linear(6, 16, bias=False),
            "ghost": GhostNorm(16),
            "out": nn.Linear(4, 3),
        }
    )

    def loss_of(m: nn.ModuleDict, x: Tensor, y: Tensor) -> Tensor:
        x = m["first"](x)
        prior = torch.ones(x.shape, dtype=x.dtype).to(x.device)
        att, total, m_loss = functional.glu(m["ghost"](m["feat"](x)))[:, 4:], 0, 0
        for _ in range(2):
            mask = SparsemaxFunction.apply(m["norm"](m["att"](att)) * prior)
            m_loss = m_loss + torch.mean(torch.sum(mask * torch.log(mask + 1e-4), dim=1))
            prior = torch.mul(1.3 - mask, prior)
            out = functional.glu(m["ghost"](m["feat"](torch.mul(mask, x))))
            total = total + nn.ReLU()(out[:, :4])
            att = out[:, 4:]
        return functional.cross_entropy(m["out"](total), y) - 1e-3 * m_loss / 2

    return fit(made, loss_of, lambda: (torch.randn(8, 6), classes(3, 8)), tolerance=1e-5)


class SASRec(nn.Module):
    """Items in order; nothing is item 0."""

    def __init__(self) -> None:
        super().__init__()
        self.item = nn.Embedding(WORDS, 8, padding_idx=0)
        self.pos, self.norm = nn.Embedding(6, 8), nn.LayerNorm(8, eps=1e-8)
        self.att = nn.MultiheadAttention(8, 2, 0.0)
        self.conv1, self.conv2 = nn.Conv1d(8, 8, kernel_size=1), nn.Conv1d(8, 8, kernel_size=1)

    def forward(self, seqs: Tensor) -> Tensor:
        x = self.item(seqs) * self.item.embedding_dim**0.5
        x = x + self.pos(torch.arange(seqs.shape[1]).expand_as(seqs))
        nothing = seqs == 0
        x = x * ~nothing.unsqueeze(-1)
        future = ~torch.tril(torch.ones((x.shape[1], x.shape[1]), dtype=torch.bool))
        x = torch.transpose(x, 0, 1)
        found, _ = self.att(self.norm(x), x, x, attn_mask=future)
        x = torch.transpose(self.norm(x) + found, 0, 1)
        x = x + self.conv2(functional.relu(self.conv1(x.transpose(-1, -2)))).transpose(-1, -2)
        return x * ~nothing.unsqueeze(-1)


@published
def sas_rec() -> Training:
    """Items that were taken beside others; only those that are none count."""
    criterion = nn.BCEWithLogitsLoss(reduction="none")

    def loss_of(m: Any, seq: Tensor, pos: Tensor, neg: Tensor) -> Tensor:
        feats = m(seq)
        good = (feats * m.item(pos)).sum(dim=-1)
        bad = (feats * m.item(neg)).sum(dim=-1)
        weight = (pos != 0).to(feats)
        each = criterion(good, torch.ones_like(good)) + criterion(bad, torch.zeros_like(bad))
        return (each * weight).sum() / weight.sum() + 1e-3 * torch.norm(m.item.weight)

    def batch() -> tuple[Tensor, ...]:
        seq, pos = torch.randint(1, WORDS, (3, 6)), torch.randint(1, WORDS, (3, 6))
        seq[0, :2] = 0
        pos[0, :2] = 0
        return seq, pos, torch.randint(1, WORDS, (3, 6))

    return fit(SASRec(), loss_of, batch)


@published
def sasrec_by_indices() -> Training:
    """The same loss as its repository writes it: places of items that are none decide shapes."""
    criterion = nn.BCEWithLogitsLoss()

    def loss_of(m: Any, seq: Tensor, pos: Tensor) -> Tensor:
        good = (m(seq) * m.item(pos)).sum(dim=-1)
        indices = torch.where(pos != 0)
        return criterion(good[indices], torch.ones_like(good)[indices])

    return fit(SASRec(), loss_of, lambda: (words(6, 3), words(6, 3)))


class MAB(nn.Module):
    """Of set_transformer: heads are put into the batch by split and cat."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.dim_V, self.num_heads = width, heads
        self.fc_q, self.fc_k, self.fc_v = (nn.Linear(width, width) for _ in range(3))
        self.fc_o = nn.Linear(width, width)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        q, k, v = self.fc_q(queries), self.fc_k(keys), self.fc_v(keys)
        size = self.dim_V // self.num_heads
        q_, k_, v_ = (torch.cat(x.split(size, 2), 0) for x in (q, k, v))
        a = torch.softmax(q_.bmm(k_.transpose(1, 2)) / math.sqrt(self.dim_V), 2)
        o = torch.cat((q_ + a.bmm(v_)).split(q.size(0), 0), 2)
        return o + functional.relu(self.fc_o(o))


class SetTransformer(nn.Module):
    """Points that stand for all, and seeds that ask them."""

    def __init__(self) -> None:
        super().__init__()
        self.points, self.seeds = (
            nn.Parameter(torch.randn(1, 3, 8)),
            nn.Parameter(torch.randn(1, 2, 8)),
        )
        self.mab0, self.mab1, self.mab2 = MAB(8, 2), MAB(8, 2), MAB(8, 4)
        self.out = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        h = self.mab0(self.points.repeat(x.size(0), 1, 1), x)
        x = self.mab1(x, h)
        return self.out(self.mab2(self.seeds.repeat(x.size(0), 1, 1), x))


@published
def set_transformer() -> Training:
    """Mixtures of Gaussians, of points in no order."""

    def loss_of(m: nn.Module, x: Tensor) -> Tensor:
        found = m(x)
        pi, mu, sd = found[..., 0], found[..., 1:3], functional.softplus(found[..., 3:])
        pi = torch.log_softmax(pi, 1)
        places = x[..., :2].unsqueeze(2)
        diff = (places - mu.unsqueeze(1)) / sd.unsqueeze(1)
        ll = -math.log(2 * math.pi) - torch.log(sd.unsqueeze(1)).sum(-1) - 0.5 * (diff**2).sum(-1)
        return -torch.logsumexp(ll + pi.unsqueeze(1), -1).sum(1).mean()

    return fit(SetTransformer(), loss_of, lambda: (torch.randn(2, 5, 8),))


@published
def random_features() -> Training:
    """Attention in linear time by positive random features, of performer-pytorch."""
    made = nn.ModuleDict({"qkv": nn.Linear(8, 24), "out": nn.Linear(8, 3)})
    made.register_buffer("projection", torch.linalg.qr(torch.randn(4, 4))[0].repeat(2, 1))

    def kernel(m: Any, data: Tensor, is_query: bool) -> Tensor:
        normalizer = data.shape[-1] ** -0.25
        projection = m.projection.expand(2, 2, 8, 4)
        dash = torch.einsum("...id,...jd->...ij", (normalizer * data), projection)
        diag = torch.sum(data**2, dim=-1) / 2.0 * normalizer**2
        most = torch.amax(dash, dim=(-1,) if is_query else (-1, -2), keepdim=True).detach()
        return 8**-0.5 * (torch.exp(dash - diag.unsqueeze(-1) - most) + 1e-4)

    def loss_of(m: nn.ModuleDict, x: Tensor, y: Tensor) -> Tensor:
        q, k, v = (t.view(2, 5, 2, 4).transpose(1, 2) for t in m["qkv"](x).chunk(3, dim=-1))
        q, k = kernel(m, q, True), kernel(m, k, False)
        d_inv = 1.0 / torch.einsum("...nd,...d->...n", q, k.sum(dim=-2))
        context = torch.einsum("...nd,...ne->...de", k, v)
        out = torch.einsum("...de,...nd,...n->...ne", context, q, d_inv)
        return functional.cross_entropy(m["out"](out.transpose(1, 2).reshape(2, 5, 8)).mean(1), y)

    return fit(made, loss_of, lambda: (torch.randn(2, 5, 8), classes(3)))
