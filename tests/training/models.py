"""Models and training steps that the front end is tested on, written as users write them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Batch = tuple[Tensor, ...]
Optimizer = torch.optim.Optimizer


class Attention(nn.Module):
    """Self-attention with merged projections, as most write it."""

    def __init__(self, width: int, heads: int, causal: bool = False, bias: bool = True) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        if self.causal:
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed)


class EinsumAttention(nn.Module):
    """Self-attention as einsums of weights with explicit heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        inner = width // heads
        self.wq, self.wk, self.wv, self.wo = (
            nn.Parameter(torch.randn(heads, inner, width) / width**0.5) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (torch.einsum("bsi,hpi->bhsp", x, w) for w in (self.wq, self.wk, self.wv))
        weights = (torch.einsum("bhsp,bhtp->bhst", q, k) / q.shape[-1] ** 0.5).softmax(-1)
        return torch.einsum("bhst,bhtp,hpi->bsi", weights, v, self.wo)


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, attention: nn.Module, width: int) -> None:
        super().__init__()
        self.attention = attention
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Rotary(nn.Module):
    """Self-attention whose queries and keys are turned by their places; keys serve several heads.

    As `transformers` writes it, with a mask that is made of places.
    """

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.inner, self.times = width // heads, heads // shared
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, shared * self.inner, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width, bias=False)
        rates = 100.0 ** -(torch.arange(0, self.inner, 2) / self.inner)
        self.register_buffer("rates", rates)

    def turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (f(x).view(batch, length, -1, self.inner).transpose(1, 2) for f in self.parts())
        places = torch.ones(batch, length, dtype=torch.int64).cumsum(-1) - 1
        angles = places[:, :, None] * self.rates
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        q, k = (self.turned(t, angles.cos(), angles.sin()) for t in (q, k))
        k, v = (
            t[:, :, None].expand(batch, -1, self.times, length, self.inner).flatten(1, 2)
            for t in (k, v)
        )
        scores = q @ k.transpose(2, 3) / self.inner**0.5
        seen = torch.ones(batch, length, dtype=torch.bool)
        rows, columns = torch.arange(length)[:, None], torch.arange(length)
        mask = (columns <= rows) & seen[torch.arange(batch)[:, None, None], columns]
        scores = scores.masked_fill(~mask[:, None], float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)
        return self.out(mixed.contiguous())

    def parts(self) -> tuple[nn.Module, ...]:
        return self.q, self.k, self.v


class Experts(nn.Module):
    """Each word goes to two of several networks, and the results are added where it was."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, width) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        shares, chosen = self.router(flat).softmax(-1).topk(2, dim=-1)
        order = chosen.reshape(-1).argsort(stable=True)
        words, expert = order // 2, chosen.reshape(-1)[order]
        made = torch.bmm(flat[words][:, None], self.up[expert])[:, 0].relu()
        made = made * shares.reshape(-1)[order][:, None]
        return torch.zeros_like(flat).index_add_(0, words, made).view_as(x)


class GPT(nn.Module):
    """Causal layers over an embedding that is also the head."""

    def __init__(self, words: int, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.Sequential(
            *(Block(Attention(width, heads, causal=True, bias=False), width) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.embedding(words) + self.positions)))


class Tied(nn.Module):
    """A table of words that is the head, too."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding, self.hidden = nn.Embedding(words, width), nn.Linear(width, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.hidden(self.embedding(words)).tanh())


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 5, padding=2),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classes = nn.Sequential(nn.Flatten(), nn.Linear(24, 10), nn.Tanh(), nn.Linear(10, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.features(x))


class Residual(nn.Module):
    """Two convolutions with residuals, one of a stride, and a global mean."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.first = nn.Conv2d(4, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=2, dilation=2)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).relu()
        x = x + self.first(x).relu()
        x = x + self.second(x).relu()
        return self.head(x.mean((2, 3)))


def classify(model: nn.Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    criterion = nn.CrossEntropyLoss()

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def regress(model: nn.Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def speak(model: nn.Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    def step(words: Tensor, following: Tensor) -> Tensor:
        optimizer.zero_grad()
        logits = model(words)
        loss = functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def accumulate(model: nn.Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    """Three micro-batches to a step, and clipped gradients."""

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad()
        total = torch.zeros(())
        for part, target in zip(x.chunk(3), y.chunk(3), strict=True):
            loss = functional.mse_loss(model(part), target) / 3
            loss.backward()
            total = total + loss.detach()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return total, norm

    return step


def keep_gradients(model: nn.Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    """Gradients that add up from call to call, because nobody clears them."""

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 5))


def layer() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)


@dataclass(frozen=True)
class Model:
    """A module, an optimizer, a step over both, and batches for it."""

    name: str
    module: Callable[[], nn.Module]
    optimizer: Callable[[Iterator[nn.Parameter]], Optimizer]
    step: Callable[[nn.Module, Optimizer], Callable[..., Any]]
    batch: Callable[[], Batch]
    schedule: Callable[[int], dict[str, Any]]

    def build(self) -> tuple[nn.Module, Optimizer, Callable[..., Any]]:
        """All of it, from one seed."""
        torch.manual_seed(3)
        module = self.module()
        optimizer = self.optimizer(module.parameters())
        return module, optimizer, self.step(module, optimizer)


def vectors() -> Batch:
    return torch.randn(6, 8), torch.randint(0, 5, (6,))


def targets() -> Batch:
    return torch.randn(6, 8), torch.randn(6, 5)


def sequences() -> Batch:
    return torch.randn(3, 4, 8), torch.randn(3, 4, 8)


def wide_sequences() -> Batch:
    return torch.randn(3, 5, 16), torch.randn(3, 5, 16)


def sentences() -> Batch:
    return torch.randint(0, 11, (3, 4)), torch.randint(0, 11, (3, 4))


def digits() -> Batch:
    return torch.randn(5, 1, 12, 12), torch.randint(0, 5, (5,))


def pictures() -> Batch:
    return torch.randn(5, 3, 8, 8), torch.randint(0, 5, (5,))


def momentum(parameters: Any) -> Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01)


def adam(parameters: Any) -> Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)


def adamw(parameters: Any) -> Optimizer:
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1)


def sgd(parameters: Any) -> Optimizer:
    return torch.optim.SGD(parameters, lr=0.05)


def of_batch(name: str) -> Callable[[int], dict[str, Any]]:
    """Data parallel: the batch of one space is split, and all follow."""
    return lambda ranks: {name: {"b": ranks}}


MODELS = [
    Model("perceptron", perceptron, momentum, classify, vectors, of_batch("t_0_addmm")),
    Model("perceptron_adam", perceptron, adam, classify, vectors, of_batch("t_0_addmm")),
    Model(
        "attention",
        lambda: Block(Attention(8, 2), 8),
        momentum,
        regress,
        sequences,
        of_batch("attention_qkv_addmm"),
    ),
    Model(
        "einsums",
        lambda: Block(EinsumAttention(8, 2), 8),
        momentum,
        regress,
        sequences,
        of_batch("attention_bmm"),
    ),
    Model(
        "rotary",
        lambda: Block(Rotary(16, 4, 2), 16),
        momentum,
        regress,
        wide_sequences,
        of_batch("attention_q_mm"),
    ),
    Model(
        "experts",
        lambda: Block(Experts(8, 3), 8),
        momentum,
        regress,
        sequences,
        of_batch("up_addmm"),
    ),
    Model("encoder", layer, sgd, regress, sequences, of_batch("linear1_addmm")),
    Model(
        "gpt",
        lambda: GPT(11, 8, 2, 4, 4),
        adamw,
        speak,
        sentences,
        of_batch("blocks_0_attention_qkv_mm"),
    ),
    Model("tied", lambda: Tied(11, 8), adamw, speak, sentences, of_batch("hidden_addmm")),
    Model("lenet", LeNet, momentum, classify, digits, of_batch("features_0_convolution")),
    Model("residual", Residual, sgd, classify, pictures, of_batch("stem_convolution")),
    Model("accumulate", perceptron, adam, accumulate, targets, of_batch("t_0_addmm")),
    Model("keep_gradients", perceptron, sgd, keep_gradients, targets, of_batch("t_0_addmm")),
]


def twin(model: Model) -> tuple[nn.Module, Optimizer, Callable[..., Any]]:
    """The same model again, for torch alone."""
    return copy.copy(model).build()
