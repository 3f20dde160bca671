"""Steps of published code: sequences with memories, spectra and attention of other kinds."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles, mlp
from zoo.steps.table import BATCH, CALLS, Training, adamw, classes, fit, published, words

WORDS, WIDTH = 20, 8


@published
def bahdanau() -> Training:
    """A translation by GRUs, which looks at the source by a sum of tanh; the teacher is forced."""

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
            self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
            self.start = nn.Linear(2 * WIDTH, WIDTH)
            self.query, self.key = nn.Linear(WIDTH, 6), nn.Linear(2 * WIDTH, 6)
            self.energy, self.cell = nn.Linear(6, 1), nn.GRUCell(3 * WIDTH, WIDTH)
            self.out = nn.Linear(3 * WIDTH, WORDS)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            memory, last = self.encoder(self.source(source))
            h = torch.tanh(self.start(torch.cat([last[-2], last[-1]], -1)))
            keys, found = self.key(memory), []
            for t in range(target.shape[1] - 1):
                score = self.energy(torch.tanh(self.query(h)[:, None] + keys)).squeeze(-1)
                seen = torch.bmm(score.softmax(-1)[:, None], memory).squeeze(1)
                h = self.cell(torch.cat([self.target(target[:, t]), seen], -1), h)
                found.append(self.out(torch.cat([h, seen], -1)))
            return torch.stack(found, 1)

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(
            m(x, y).flatten(0, 1), y[:, 1:].flatten(), label_smoothing=0.1, ignore_index=0
        )

    return fit(Decoder(), loss_of, lambda: (classes(WORDS, 2, 5), classes(WORDS, 2, 4)), clip=1.0)


@published
def truncated() -> Training:
    """A language model whose state goes from batch to batch, detached (tied, averaged SGD)."""
    table, body = nn.Embedding(WORDS, WIDTH), nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)
    head = nn.Linear(WIDTH, WORDS)
    head.weight = table.weight
    module = nn.ModuleDict({"table": table, "body": body, "head": head}).double()
    optimizer = torch.optim.ASGD(module.parameters(), lr=0.5, t0=0, lambd=0.0)

    def step(text: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        optimizer.zero_grad()
        found, (h, c) = body(table(text[:, :-1]), (h.detach(), c.detach()))
        loss = functional.cross_entropy(head(found).transpose(1, 2), text[:, 1:])
        loss = loss + 2 * found.pow(2).mean() + (found[:, 1:] - found[:, :-1]).pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.25)
        optimizer.step()
        return loss.detach(), h.detach(), c.detach()

    def batch() -> tuple[Tensor, ...]:
        return classes(WORDS, BATCH, 6), doubles(2, BATCH, WIDTH), doubles(2, BATCH, WIDTH)

    return Training(step, [batch() for _ in range(CALLS)], [module])


@published
def speech_by_ctc() -> Training:
    """Spectra through convolutions and an LSTM, aligned by the loss of CTC."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Sequential(
                nn.Conv1d(5, 6, 3, padding=1), nn.BatchNorm1d(6), nn.Hardtanh(0, 20)
            )
            self.memory, self.out = nn.LSTM(6, 5, bidirectional=True), nn.Linear(10, 7)

        def forward(self, x: Tensor) -> Tensor:
            h, _ = self.memory(self.convolution(x).permute(2, 0, 1))
            return self.out(h).log_softmax(-1)

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return functional.ctc_loss(m(x), y, [8, 8], [3, 3], blank=0, zero_infinity=True)

    return fit(Network(), loss_of, lambda: (torch.randn(2, 5, 8), classes(6, 2, 3) + 1))


@published
def state_spaces() -> Training:
    """S4D: kernels of complex exponentials, applied by Fourier transforms."""

    class Layer(nn.Module):
        def __init__(self, width: int = 4, states: int = 3) -> None:
            super().__init__()
            self.log_step = nn.Parameter(torch.rand(width) - 3)
            self.log_real = nn.Parameter(torch.log(0.5 * torch.ones(width, states)))
            self.imaginary = nn.Parameter(math.pi * torch.arange(states).repeat(width, 1).float())
            self.c, self.d = (
                nn.Parameter(torch.randn(width, states, 2)),
                nn.Parameter(torch.randn(width)),
            )
            self.out = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(dim=-2))

        def forward(self, u: Tensor) -> Tensor:
            length, step = u.size(-1), torch.exp(self.log_step)
            a = -torch.exp(self.log_real) + 1j * self.imaginary
            scaled = a * step.unsqueeze(-1)
            powers = scaled.unsqueeze(-1) * torch.arange(length)
            c = torch.view_as_complex(self.c) * (torch.exp(scaled) - 1.0) / a
            kernel = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(powers)).real
            k, v = torch.fft.rfft(kernel, n=2 * length), torch.fft.rfft(u, n=2 * length)
            y = torch.fft.irfft(v * k, n=2 * length)[..., :length]
            return self.out(functional.gelu(y + u * self.d.unsqueeze(-1))) + u

    module = nn.Sequential(
        nn.Conv1d(1, 4, 1), Layer(), Layer(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 3)
    )
    return fit(
        module,
        lambda m, x, y: functional.cross_entropy(m(x), y),
        lambda: (torch.randn(3, 1, 6), classes(3, 3)),
    )


@published
def retention() -> Training:
    """RetNet: decays instead of a softmax, and norms of heads."""

    class Retention(nn.Module):
        def __init__(self, heads: int = 2) -> None:
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.g, self.o = (
                nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(5)
            )
            self.norm = nn.GroupNorm(heads, WIDTH)
            decay = 1 - torch.exp(torch.linspace(math.log(1 / 32), math.log(1 / 512), heads))
            self.register_buffer("decay", decay)

        def forward(self, x: Tensor) -> Tensor:
            b, n, d = x.shape
            q, k, v = (
                f(x).view(b, n, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
            )
            place = torch.arange(n)
            gap = place[:, None] - place[None, :]
            mask = torch.where(gap >= 0, self.decay[:, None, None] ** gap.clamp(min=0), 0.0)
            found = ((q @ k.transpose(-1, -2)) * (d // self.heads) ** -0.5 * mask) @ v
            found = self.norm(found.transpose(1, 2).reshape(b * n, d)).view(b, n, d)
            return self.o(functional.silu(self.g(x)) * found)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.layers = (
                nn.Embedding(WORDS, WIDTH),
                nn.ModuleList(Retention() for _ in range(2)),
            )
            self.norms, self.head = (
                nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2)),
                nn.Linear(WIDTH, WORDS),
            )

        def forward(self, text: Tensor) -> Tensor:
            x = self.table(text)
            for norm, layer in zip(self.norms, self.layers, strict=True):
                x = x + layer(norm(x))
            return self.head(x)

    return fit(
        Model(),
        lambda m, x, y: functional.cross_entropy(m(x).view(-1, WORDS), y.view(-1)),
        lambda: (classes(WORDS, 2, 5), classes(WORDS, 2, 5)),
    )


@published
def running_sums() -> Training:
    """Keys and values in running sums, for causal attention (Katharopoulos)."""
    module = nn.ModuleDict({"in": nn.Linear(5, 3 * WIDTH), "out": nn.Linear(WIDTH, 5)})

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        q, k, v = m["in"](x).view(*x.shape[:2], 3, 2, 4).unbind(2)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        kv = torch.einsum("nlhd,nlhm->nlhdm", k, v).cumsum(1)
        z = 1 / (torch.einsum("nlhi,nlhi->nlh", q, k.cumsum(1)) + 1e-6)
        found = torch.einsum("nlhd,nlhdm,nlh->nlhm", q, kv, z)
        return functional.mse_loss(m["out"](found.flatten(2)), y)

    return fit(module, loss_of, lambda: (torch.randn(2, 6, 5), torch.randn(2, 6, 5)))


@published
def slots() -> Training:
    """Slots compete for what is seen, in three rounds of a GRU (slot attention)."""

    class Slots(nn.Module):
        def __init__(self, count: int = 3) -> None:
            super().__init__()
            self.count, self.mean = count, nn.Parameter(torch.randn(1, 1, WIDTH))
            self.log_scale = nn.Parameter(torch.zeros(1, 1, WIDTH))
            self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
            self.gru, self.mlp = nn.GRUCell(WIDTH, WIDTH), mlp(WIDTH, 10, WIDTH)
            self.of_inputs, self.of_slots, self.before = (nn.LayerNorm(WIDTH) for _ in range(3))

        def forward(self, x: Tensor, noise: Tensor) -> Tensor:
            b, _, d = x.shape
            slots = self.mean.expand(b, self.count, -1) + self.log_scale.exp() * noise
            x = self.of_inputs(x)
            k, v = self.k(x), self.v(x)
            for _ in range(3):
                old = slots
                dots = torch.einsum("bid,bjd->bij", self.q(self.of_slots(slots)), k) * d**-0.5
                shares = dots.softmax(dim=1) + 1e-8
                seen = torch.einsum("bjd,bij->bid", v, shares / shares.sum(dim=-1, keepdim=True))
                slots = self.gru(seen.reshape(-1, d), old.reshape(-1, d)).reshape(b, -1, d)
                slots = slots + self.mlp(self.before(slots))
            return slots

    def loss_of(m: nn.Module, x: Tensor, noise: Tensor, y: Tensor) -> Tensor:
        cost = torch.cdist(m(x, noise), y).pow(2)
        return cost.min(dim=1)[0].mean() + cost.min(dim=2)[0].mean()

    def batch() -> tuple[Tensor, ...]:
        return torch.randn(2, 5, WIDTH), torch.randn(2, 3, WIDTH), torch.randn(2, 3, WIDTH)

    return fit(Slots(), loss_of, batch)


@published
def turing_machine() -> Training:
    """A memory that is read and written by content and by shifts (NTM)."""

    class Machine(nn.Module):
        def __init__(self, places: int = 5, size: int = 4) -> None:
            super().__init__()
            self.control = nn.LSTMCell(3 + size, 7)
            self.head = nn.Linear(7, size + 1 + 1 + 3 + 1 + 2 * size)
            self.out, self.size = nn.Linear(7 + size, 3), size
            self.memory = nn.Parameter(torch.randn(places, size) * 0.1)

        def forward(self, x: Tensor) -> Tensor:
            b, n, size = x.shape[0], self.memory.shape[0], self.size
            memory = self.memory.expand(b, -1, -1)
            h, c = x.new_zeros(b, 7), x.new_zeros(b, 7)
            seen, weights = (
                x.new_zeros(b, size),
                functional.one_hot(torch.zeros(b, dtype=torch.long), n).to(x.dtype),
            )
            found = []
            for t in range(x.shape[1]):
                h, c = self.control(torch.cat([x[:, t], seen], -1), (h, c))
                k, beta, g, s, gamma, e, a = self.head(h).split([size, 1, 1, 3, 1, size, size], -1)
                near = functional.cosine_similarity(memory + 1e-16, k.unsqueeze(1) + 1e-16, dim=-1)
                content = (functional.softplus(beta) * near).softmax(-1)
                gate = torch.sigmoid(g)
                mixed, s = gate * content + (1 - gate) * weights, s.softmax(-1)
                around = torch.cat([mixed[:, -1:], mixed, mixed[:, :1]], -1)
                moved = sum(around[:, i : i + n] * s[:, i : i + 1] for i in range(3))
                sharp = moved ** (1 + functional.softplus(gamma))
                weights = sharp / (sharp.sum(-1, keepdim=True) + 1e-16)
                erased = 1 - weights.unsqueeze(-1) * torch.sigmoid(e).unsqueeze(1)
                memory = memory * erased + weights.unsqueeze(-1) * a.unsqueeze(1)
                seen = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
                found.append(self.out(torch.cat([h, seen], -1)))
            return torch.stack(found, 1)

    return fit(
        Machine(),
        lambda m, x, y: functional.binary_cross_entropy_with_logits(m(x), y),
        lambda: (torch.rand(2, 4, 3).round(), torch.rand(2, 4, 3).round()),
        optimizer=lambda p: torch.optim.RMSprop(p, lr=1e-4, momentum=0.9, alpha=0.95, eps=1e-4),
        clip=10.0,
    )


@published
def pointers() -> Training:
    """Places of the source as answers; those that were taken are masked (pointer networks)."""

    class Pointer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.cell = nn.LSTM(2, WIDTH, batch_first=True), nn.LSTMCell(2, WIDTH)
            self.q, self.k, self.v = (
                nn.Linear(WIDTH, 6),
                nn.Linear(WIDTH, 6),
                nn.Linear(6, 1, bias=False),
            )
            self.start = nn.Parameter(torch.zeros(2))

        def forward(self, places: Tensor, order: Tensor) -> Tensor:
            memory, (h, c) = self.encoder(places)
            h, c, x = h[0], c[0], self.start.expand(places.shape[0], -1)
            taken = torch.zeros(places.shape[:2], dtype=torch.bool)
            rows, found = torch.arange(places.shape[0]), []
            for t in range(order.shape[1]):
                h, c = self.cell(x, (h, c))
                score = self.v(torch.tanh(self.q(h).unsqueeze(1) + self.k(memory))).squeeze(-1)
                score = score.masked_fill(taken, float("-inf"))
                found.append(score.log_softmax(-1))
                taken = taken.clone()
                taken[rows, order[:, t]] = True
                x = places[rows, order[:, t]]
            return torch.stack(found, 1)

    def batch() -> tuple[Tensor, ...]:
        return torch.randn(3, 5, 2), torch.stack([torch.randperm(5) for _ in range(3)])

    return fit(
        Pointer(), lambda m, x, y: functional.nll_loss(m(x, y).flatten(0, 1), y.flatten()), batch
    )


@published
def encoder_and_decoder() -> Training:
    """`nn.Transformer` with masks of both kinds, warm-up by a function, and tied tables."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(50, WIDTH, padding_idx=0)
            self.body = nn.Transformer(WIDTH, 2, 1, 1, 12, 0.0, batch_first=True, norm_first=True)
            self.register_buffer("places", torch.randn(1, 10, WIDTH))

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            causal = nn.Transformer.generate_square_subsequent_mask(y.shape[1])
            a = self.table(x) * math.sqrt(WIDTH) + self.places[:, : x.shape[1]]
            b = self.table(y) * math.sqrt(WIDTH) + self.places[:, : y.shape[1]]
            empty = x == 0
            found = self.body(
                a,
                b,
                tgt_mask=causal.to(a.dtype),
                src_key_padding_mask=empty,
                memory_key_padding_mask=empty,
            )
            return functional.linear(found, self.table.weight)

    module = Model().double()
    optimizer = torch.optim.Adam(module.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-4)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: WIDTH**-0.5 * min((n + 1) ** -0.5, (n + 1) * 4**-1.5)
    )

    def step(x: Tensor, y: Tensor) -> Tensor:
        found = module(x, y[:, :-1])
        loss = functional.cross_entropy(found.reshape(-1, 50), y[:, 1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def batch() -> tuple[Tensor, ...]:
        x = words(5)
        x[1, 3:] = 0
        return x, words(4)

    return Training(step, [batch() for _ in range(CALLS)], [module], after=rate.step)


@published
def relative_places() -> Training:
    """A table of distances, shifted by a view of padded scores (Music Transformer)."""

    class Attention(nn.Module):
        def __init__(self, length: int = 6, heads: int = 2) -> None:
            super().__init__()
            self.heads, self.length = heads, length
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.near = nn.Parameter(torch.randn(length, WIDTH // heads))
            self.register_buffer("mask", torch.tril(torch.ones(length, length))[None, None])

        def forward(self, x: Tensor) -> Tensor:
            b, n, _ = x.shape
            q, k, v = (
                t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)
            )
            near = q @ self.near[self.length - n :].transpose(0, 1)
            padded = functional.pad(near, (1, 0))
            shifted = padded.view(b, self.heads, n + 1, n)[:, :, 1:]
            score = (q @ k.transpose(-2, -1) + shifted) / math.sqrt(q.size(-1))
            score = score.masked_fill(self.mask[:, :, :n, :n] == 0, float("-inf")).softmax(-1)
            return self.out((score @ v).transpose(1, 2).reshape(b, n, -1))

    return fit(
        Attention(),
        lambda m, x, y: functional.mse_loss(m(x), y),
        lambda: (torch.randn(2, 6, WIDTH), torch.randn(2, 6, WIDTH)),
        optimizer=lambda p: torch.optim.NAdam(p, lr=1e-3, eps=1e-4),
    )


@published
def dilated_waves() -> Training:
    """Gates of dilated convolutions whose weights have norms of their own (WaveNet)."""
    normed = nn.utils.parametrizations.weight_norm

    class Wave(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = normed(nn.Conv1d(1, 6, 1))
            self.gates = nn.ModuleList(normed(nn.Conv1d(6, 12, 2, dilation=d)) for d in (1, 2, 4))
            self.skips = nn.ModuleList(normed(nn.Conv1d(6, 6, 1)) for _ in range(3))
            self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(6, 8, 1))

        def forward(self, x: Tensor) -> Tensor:
            x, total = self.first(x), 0
            for gate, skip, d in zip(self.gates, self.skips, (1, 2, 4), strict=True):
                a, b = gate(functional.pad(x, (d, 0))).chunk(2, 1)
                h = torch.tanh(a) * torch.sigmoid(b)
                total, x = total + skip(h), (x + h) * math.sqrt(0.5)
            return self.last(total)

    def loss_of(m: nn.Module, x: Tensor) -> Tensor:
        squeezed = torch.sign(x) * torch.log1p(7 * x.abs()) / math.log(8)
        wanted = ((squeezed + 1) / 2 * 7 + 0.5).long()
        return functional.cross_entropy(m(x[..., :-1]), wanted[:, 0, 1:])

    return fit(Wave(), loss_of, lambda: (torch.rand(2, 1, 12) * 2 - 1,), optimizer=adamw)
