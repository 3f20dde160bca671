"""Models of sequences that people publish as one file: attention, recurrences, scans."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import mlp
from zoo.steps.table import WORDS, Training, classes, fit, published, words


def likelihood(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The loss of the next words."""
    logits = m(x)
    return functional.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=-1)


def pairs() -> tuple[Tensor, Tensor]:
    """Words and the next ones."""
    text = words(9)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


class CausalAttention(nn.Module):
    """Of nanoGPT, without the fast path."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.n_head, self.n_embd = heads, width
        self.register_buffer(
            "bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        )

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        q = q.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        v = v.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        y = functional.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    """A layer around some mixing of words."""

    def __init__(self, width: int, mix: nn.Module) -> None:
        super().__init__()
        self.ln_1, self.mix, self.ln_2 = nn.LayerNorm(width), mix, nn.LayerNorm(width)
        self.mlp = mlp(width, 2 * width, width, act=nn.GELU)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mix(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Language(nn.Module):
    """A model of words around layers."""

    def __init__(self, *mixes: nn.Module, width: int = 16, tied: bool = True) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, width), nn.Embedding(8, width)
        self.h = nn.ModuleList([Block(width, mix) for mix in mixes])
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)
        if tied:
            self.wte.weight = self.lm_head.weight

    def forward(self, x: Tensor) -> Tensor:
        pos = torch.arange(0, x.size(1), dtype=torch.long, device=x.device)
        h = self.wte(x) + self.wpe(pos)
        for block in self.h:
            h = block(h)
        return self.lm_head(self.ln_f(h))


def language(name: str, make: Any, **settings: Any) -> None:
    """Enter a model of words with two layers."""

    def build() -> Training:
        return fit(Language(make(), make(), **settings), likelihood, pairs, clip=1.0)

    build.__name__ = name
    published(build)


language("nano_gpt", lambda: CausalAttention(16, 4, 8))


class Rotary(nn.Module):
    """Attention of llama2.c, with complex rotations and repeated keys."""

    def __init__(self, width: int = 16, heads: int = 4, keys: int = 2) -> None:
        super().__init__()
        self.heads, self.keys, self.dim = heads, keys, width // heads
        self.wq = nn.Linear(width, width, bias=False)
        self.wk = nn.Linear(width, keys * self.dim, bias=False)
        self.wv = nn.Linear(width, keys * self.dim, bias=False)
        self.wo = nn.Linear(width, width, bias=False)
        freqs = 1.0 / (10000.0 ** (torch.arange(0, self.dim, 2).float() / self.dim))
        angles = torch.outer(torch.arange(8).float(), freqs)
        self.register_buffer("cos", torch.cos(angles), persistent=False)
        self.register_buffer("sin", torch.sin(angles), persistent=False)

    def turn(self, x: Tensor) -> Tensor:
        re, im = x.float().reshape((*x.shape[:-1], -1, 2)).unbind(-1)
        cos, sin = self.cos[None, : x.shape[1], None], self.sin[None, : x.shape[1], None]
        out = torch.stack([re * cos - im * sin, re * sin + im * cos], dim=-1).flatten(3)
        return out.type_as(x)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q = self.turn(self.wq(x).view(b, t, self.heads, self.dim))
        k = self.turn(self.wk(x).view(b, t, self.keys, self.dim))
        v = self.wv(x).view(b, t, self.keys, self.dim)
        n = self.heads // self.keys
        k, v = (
            a[:, :, :, None, :]
            .expand(b, t, self.keys, n, self.dim)
            .reshape(b, t, self.heads, self.dim)
            .transpose(1, 2)
            for a in (k, v)
        )
        y = functional.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).contiguous().view(b, t, -1))


@published
def llama2_c() -> Training:
    """Rotations are computed in single precision."""
    return fit(
        Language(Rotary(), Rotary(), tied=False), likelihood, pairs, clip=1.0, tolerance=1e-4
    )


class Retention(nn.Module):
    """Of RetNet, in parallel form."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm = nn.GroupNorm(heads, width)
        self.register_buffer("decay", torch.log(1 - 2.0 ** (-5 - torch.arange(heads))))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        n = torch.arange(t, dtype=x.dtype)
        gap = n[:, None] - n[None, :]
        mask = torch.exp(self.decay[:, None, None] * gap.abs()) * (gap >= 0)
        y = (q @ k.transpose(-1, -2) * mask) @ v
        y = y.transpose(1, 2).reshape(b * t, c)
        return self.out(self.norm(y).view(b, t, c))


language("retnet", Retention)


class LinearAttention(nn.Module):
    """Sums of keys and values so far."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1) for f in (self.q, self.k, self.v))
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        kv = torch.einsum("bthd,bthe->bthde", k, v).cumsum(1)
        z = 1 / (torch.einsum("bthd,bthd->bth", q, k.cumsum(1)) + 1e-6)
        return torch.einsum("bthd,bthde,bth->bthe", q, kv, z).reshape(b, t, c)


language("linear_attention", LinearAttention)


class WKV(nn.Module):
    """Time mixing of RWKV 4, one word after the other."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.mix = nn.Parameter(torch.rand(3, 1, 1, width))
        self.decay, self.first = nn.Parameter(-torch.rand(width)), nn.Parameter(torch.rand(width))
        self.key, self.value, self.gate, self.out = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        last = self.shift(x)
        xk, xv, xr = (x * m + last * (1 - m) for m in self.mix)
        k, v, r = self.key(xk), self.value(xv), torch.sigmoid(self.gate(xr))
        aa, bb, pp = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), k[:, 0] * 0 - 1e38
        out = torch.empty_like(k)
        for t in range(x.shape[1]):
            kt, vt = k[:, t], v[:, t]
            p = torch.maximum(pp, self.first + kt)
            e1, e2 = torch.exp(pp - p), torch.exp(self.first + kt - p)
            out[:, t] = (e1 * aa + e2 * vt) / (e1 * bb + e2)
            p = torch.maximum(pp + self.decay, kt)
            e1, e2 = torch.exp(pp + self.decay - p), torch.exp(kt - p)
            aa, bb, pp = e1 * aa + e2 * vt, e1 * bb + e2, p
        return self.out(r * out)


language("rwkv4", WKV)


class Selective(nn.Module):
    """The scan of mamba-minimal."""

    def __init__(self, width: int = 16, states: int = 4, rank: int = 2) -> None:
        super().__init__()
        self.n, self.r = states, rank
        self.in_proj = nn.Linear(width, 2 * width, bias=False)
        self.conv1d = nn.Conv1d(width, width, 3, groups=width, padding=2)
        self.x_proj = nn.Linear(width, rank + 2 * states, bias=False)
        self.dt_proj = nn.Linear(rank, width)
        self.a_log = nn.Parameter(torch.log(torch.arange(1, states + 1).repeat(width, 1).float()))
        self.d, self.out = nn.Parameter(torch.ones(width)), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        _, t, c = x.shape
        u, gate = self.in_proj(x).split([c, c], dim=-1)
        u = functional.silu(self.conv1d(u.transpose(1, 2))[:, :, :t].transpose(1, 2))
        delta, b, cc = self.x_proj(u).split([self.r, self.n, self.n], dim=-1)
        delta = functional.softplus(self.dt_proj(delta))
        a = torch.exp(torch.einsum("bld,dn->bldn", delta, -torch.exp(self.a_log)))
        bu = torch.einsum("bld,bln,bld->bldn", delta, b, u)
        h = torch.zeros_like(bu[:, 0])
        found = []
        for i in range(t):
            h = a[:, i] * h + bu[:, i]
            found.append(torch.einsum("bdn,bn->bd", h, cc[:, i, :]))
        y = torch.stack(found, dim=1) + u * self.d
        return self.out(y * functional.silu(gate))


language("mamba_minimal", Selective)


class Hyena(nn.Module):
    """A long convolution by Fourier transforms, with gates."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.proj, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.filter = nn.Parameter(torch.randn(width, 8) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        a, b, v = self.proj(x).chunk(3, -1)
        u = (a * v).transpose(1, 2)
        n = 2 * u.shape[-1]
        f = torch.fft.rfft(u, n=n) * torch.fft.rfft(self.filter[:, : u.shape[-1]], n=n)
        y = torch.fft.irfft(f, n=n)[..., : u.shape[-1]].transpose(1, 2)
        return self.out(b * y)


language("hyena", Hyena)


class Switch(nn.Module):
    """Experts of a switch transformer with a capacity, by one-hot products."""

    def __init__(self, width: int = 16, count: int = 4, capacity: int = 6) -> None:
        super().__init__()
        self.gate, self.count, self.capacity = nn.Linear(width, count, bias=False), count, capacity
        self.w1 = nn.Parameter(torch.randn(count, width, 24) * 0.1)
        self.w2 = nn.Parameter(torch.randn(count, 24, width) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        gates = self.gate(flat).softmax(-1)
        value, index = gates.max(-1)
        mask = functional.one_hot(index, self.count).to(x.dtype)
        place = (mask.cumsum(0) * mask - mask).sum(-1).long()
        kept = (place < self.capacity).to(x.dtype)
        spots = functional.one_hot(place.clamp(max=self.capacity - 1), self.capacity).to(x.dtype)
        dispatch = torch.einsum("se,sc,s->sec", mask, spots, kept)
        given = torch.einsum("sec,sm->ecm", dispatch, flat)
        made = torch.einsum(
            "ecf,efm->ecm", torch.einsum("ecm,emf->ecf", given, self.w1).relu(), self.w2
        )
        return torch.einsum("sec,ecm,s->sm", dispatch, made, value).view_as(x)


language("switch_experts", Switch)


class Looped(nn.Module):
    """Experts as published notebooks have them: each computes all words, the two best count."""

    def __init__(self, width: int = 16, count: int = 3) -> None:
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList([mlp(width, 20, width) for _ in range(count)])

    def forward(self, x: Tensor) -> Tensor:
        top, index = self.router(x).topk(2, dim=-1)
        gates = torch.full_like(self.router(x), float("-inf")).scatter(-1, index, top).softmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            out = out + expert(x) * gates[..., number, None]
        return out


language("looped_experts", Looped)


class Recurrent(nn.Module):
    """The language model of the examples of PyTorch, which is given its state."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.encoder = nn.Embedding(WORDS, 12)
        self.rnn = getattr(nn, kind)(12, 12, 2)
        self.decoder = nn.Linear(12, WORDS)
        self.decoder.weight = self.encoder.weight

    def forward(self, x: Tensor, hidden: Any) -> tuple[Tensor, Any]:
        out, hidden = self.rnn(self.encoder(x), hidden)
        return functional.log_softmax(self.decoder(out).view(-1, WORDS), dim=1), hidden


@published
def lstm_words() -> Training:
    """The state of the last batch is cut off and handed over."""

    def loss_of(m: nn.Module, x: Tensor, y: Tensor, h: Tensor, c: Tensor) -> Tensor:
        out, (h, c) = m(x, (h.detach(), c.detach()))
        return functional.nll_loss(out, y.view(-1)) + 0.0 * h.sum()

    def batch() -> tuple[Tensor, ...]:
        return words(2, 5), words(2, 5), torch.randn(2, 2, 12), torch.randn(2, 2, 12)

    return fit(
        Recurrent("LSTM"), loss_of, batch, clip=0.25, optimizer=lambda p: torch.optim.SGD(p, lr=0.5)
    )


class Seq2Seq(nn.Module):
    """Of the tutorial: a decoder that attends to what an encoder made."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, width), nn.Embedding(WORDS, width)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * width, width)
        self.wa, self.ua, self.va = (
            nn.Linear(width, width),
            nn.Linear(2 * width, width),
            nn.Linear(width, 1),
        )
        self.cell, self.out = nn.GRUCell(3 * width, width), nn.Linear(width, WORDS)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        keys, last = self.encoder(self.source(x))
        h = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        found = []
        for t in range(y.shape[1]):
            scores = self.va(torch.tanh(self.wa(h).unsqueeze(1) + self.ua(keys))).squeeze(2)
            context = torch.bmm(functional.softmax(scores, dim=-1).unsqueeze(1), keys).squeeze(1)
            h = self.cell(torch.cat([self.target(y[:, t]), context], -1), h)
            found.append(self.out(h))
        return torch.stack(found, 1)


@published
def seq2seq() -> Training:
    """With the right words handed over."""
    return fit(
        Seq2Seq(),
        lambda m, x, y: functional.cross_entropy(m(x, y[:, :-1]).transpose(1, 2), y[:, 1:]),
        lambda: (words(5), words(4)),
    )


@published
def packed_sequences() -> Training:
    """An LSTM over texts of different lengths, with the last state of each."""

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(WORDS, 8, padding_idx=0)
            self.lstm, self.head = nn.LSTM(8, 6, batch_first=True), nn.Linear(6, 3)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            out, _ = self.lstm(self.table(x))
            last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, out.size(2))
            return self.head(out.gather(1, last).squeeze(1))

    return fit(
        Tagger(),
        lambda m, x, n, y: functional.cross_entropy(m(x, n), y),
        lambda: (words(5), torch.tensor([5, 3]), classes(3)),
    )


@published
def text_cnn() -> Training:
    """Convolutions of several widths over words."""

    class TextCNN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(WORDS, 8)
            self.convs = nn.ModuleList([nn.Conv2d(1, 4, (k, 8)) for k in (2, 3, 4)])
            self.fc = nn.Linear(12, 3)

        def forward(self, x: Tensor) -> Tensor:
            x = self.embed(x).unsqueeze(1)
            found = [functional.relu(conv(x)).squeeze(3) for conv in self.convs]
            found = [functional.max_pool1d(i, i.size(2)).squeeze(2) for i in found]
            return self.fc(torch.cat(found, 1))

    return fit(
        TextCNN(), lambda m, x, y: functional.cross_entropy(m(x), y), lambda: (words(7), classes(3))
    )


@published
def annotated_transformer() -> Training:
    """`nn.Transformer` with masks of both sides."""

    class Translator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(WORDS, 16), nn.Embedding(WORDS, 16)
            self.body = nn.Transformer(
                16, 4, 1, 1, 24, dropout=0.0, batch_first=True, norm_first=True
            )
            self.head = nn.Linear(16, WORDS)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(y.size(1), dtype=torch.float64)
            out = self.body(
                self.source(x),
                self.target(y),
                tgt_mask=mask,
                src_key_padding_mask=x < 8,
                memory_key_padding_mask=x < 8,
            )
            return self.head(out)

    return fit(Translator(), likelihood_of_pair, lambda: (words(6) + 5, words(5), words(5)))


def likelihood_of_pair(m: nn.Module, x: Tensor, y: Tensor, wanted: Tensor) -> Tensor:
    """The loss of a translation, with smoothed labels."""
    found = m(x.clamp(max=WORDS - 1), y)
    return functional.cross_entropy(found.flatten(0, 1), wanted.flatten(), label_smoothing=0.1)


@published
def transformer_xl() -> Training:
    """Relative places by a shift of the scores."""

    class Relative(nn.Module):
        def __init__(self, width: int = 16, heads: int = 4) -> None:
            super().__init__()
            self.heads, self.qkv = heads, nn.Linear(width, 3 * width, bias=False)
            self.r = nn.Linear(width, width, bias=False)
            self.u, self.v = (nn.Parameter(torch.randn(heads, width // heads)) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            b, t, c = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).unbind(2)
            pos = torch.arange(t - 1, -1, -1.0, dtype=x.dtype)
            rate = 1 / (10000 ** (torch.arange(0.0, c, 2.0, dtype=x.dtype) / c))
            angle = torch.outer(pos, rate)
            r = self.r(torch.cat([angle.sin(), angle.cos()], -1)).view(t, self.heads, -1)
            ac = torch.einsum("bind,bjnd->bnij", q + self.u, k)
            bd = torch.einsum("bind,jnd->bnij", q + self.v, r)
            pad = torch.zeros(b, self.heads, t, 1, dtype=x.dtype)
            bd = torch.cat([pad, bd], 3).view(b, self.heads, t + 1, t)[:, :, 1:].reshape_as(bd)
            mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
            score = ((ac + bd) / (c // self.heads) ** 0.5).masked_fill(mask, float("-inf"))
            return torch.einsum("bnij,bjnd->bind", score.softmax(-1), v).reshape(b, t, c)

    return fit(Language(Relative(), Relative()), likelihood, pairs)
