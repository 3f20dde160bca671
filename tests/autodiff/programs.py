"""Programs that ask for gradients of arrays, and the same losses in torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dace
import dace.autodiff  # registers requires_grad_, backward and grad
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

D = dace.float64


@dace.program
def elements(x: D[7, 5], y: D[7, 5], row: D[5], column: D[7]):
    x.requires_grad_()
    y.requires_grad_()
    row.requires_grad_()
    column.requires_grad_()
    first = np.where(x > 0, np.sin(x), np.cos(x)) * x * x + np.abs(x)
    second = x / (1 + y**2) - np.sqrt(2 + y**2) * np.log(3 + x**2)
    third = np.minimum(x, y) * np.maximum(x, 0) + np.tanh(x + row) ** 3
    fourth = (np.exp(x - column[:, np.newaxis]) - 1) ** 2
    fifth = (x[1:, :] - x[:-1, :]) ** 2
    loss = np.sum(first + second) + np.sum(third * fourth) + np.sum(fifth)
    loss.backward()
    return x.grad, y.grad, row.grad, column.grad


def elements_in_torch(x: Tensor, y: Tensor, row: Tensor, column: Tensor) -> Tensor:
    first = torch.where(x > 0, x.sin(), x.cos()) * x * x + x.abs()
    second = x / (1 + y**2) - (2 + y**2).sqrt() * (3 + x**2).log()
    third = torch.minimum(x, y) * x.relu() + (x + row).tanh() ** 3
    fourth = ((x - column[:, None]).exp() - 1) ** 2
    fifth = (x[1:] - x[:-1]) ** 2
    return (first + second).sum() + (third * fourth).sum() + fifth.sum()


@dace.program
def perceptron(x: D[7, 5], w: D[5, 4], b: D[4], v: D[4, 3], u: D[3]):
    w.requires_grad_()
    b.requires_grad_()
    v.requires_grad_()
    u.requires_grad_()
    hidden = np.maximum(x @ w + b, 0)
    out = hidden @ v
    loss = np.mean((out @ u) ** 2)
    loss.backward()
    return w.grad, b.grad, v.grad, u.grad


def perceptron_in_torch(x: Tensor, w: Tensor, b: Tensor, v: Tensor, u: Tensor) -> Tensor:
    return (((x @ w + b).relu() @ v @ u) ** 2).mean()


@dace.program
def attention(q: D[2, 7, 4], k: D[2, 5, 4], v: D[2, 5, 3]):
    q.requires_grad_()
    k.requires_grad_()
    v.requires_grad_()
    scores = np.einsum("bqi,bki->bqk", q, k) / 2
    greatest = np.maximum.reduce(scores, axis=2, keepdims=True)
    weights = np.exp(scores - greatest)
    total = np.add.reduce(weights, axis=2, keepdims=True)
    loss = np.sum(np.sin((weights / total) @ v))
    loss.backward()
    return q.grad, k.grad, v.grad


def attention_in_torch(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return ((q @ k.mT / 2).softmax(2) @ v).sin().sum()


@dace.program
def reductions(x: D[7, 5], k: D[7, 5]):
    x.requires_grad_()
    rows = np.sum(x**3, axis=1) ** 2
    kept = np.maximum(x, 0.5)  # so that several of a row are the least
    least = np.exp(np.min(kept, axis=1))
    loss = np.sum(rows) + np.sum(least) * np.mean(x) + np.max(x * k) ** 2
    loss.backward()
    return x.grad


def reductions_in_torch(x: Tensor, k: Tensor) -> Tensor:
    least = torch.maximum(x, torch.tensor(0.5, dtype=x.dtype)).amin(1).exp()
    return ((x**3).sum(1) ** 2).sum() + least.sum() * x.mean() + (x * k).max() ** 2


@dace.program
def maps(x: D[7, 8], w: D[8, 4], g: D[7, 4]):
    x.requires_grad_()
    w.requires_grad_()
    z = np.zeros((7, 6))
    for i, j in dace.map[0:7, 0:6]:
        middle = 2 * x[i, j + 1]
        z[i, j] = np.sin(x[i, j] + middle) - x[i, j + 2] ** 2
    z[:] = z * 3  # another value of the same name
    y = np.zeros((7, 4))
    for i, j, k in dace.map[0:7, 0:4, 0:8]:
        y[i, j] += x[i, k] * w[k, j]
    y.backward(g)  # as in sum(y * g)
    loss = np.sum(z * z) + np.sum(np.reshape(np.transpose(x), (56,)) ** 3)
    loss.backward()  # gradients add up
    return x.grad, w.grad


def maps_in_torch(x: Tensor, w: Tensor, g: Tensor) -> Tensor:
    z = 3 * ((x[:, :6] + 2 * x[:, 1:7]).sin() - x[:, 2:] ** 2)
    return ((x @ w) * g).sum() + (z * z).sum() + (x**3).sum()


@dace.program
def ranges(x: D[7], z: D[7], w: D[9]):
    x.requires_grad_()
    z.requires_grad_()
    w.requires_grad_()
    y = np.zeros((7,))
    for i, j in dace.map[0:7, 2:8]:
        y[i] += z[i] * w[j]
    u = np.zeros((7,))
    for i, j in dace.map[1:7:2, 0:8:3]:
        u[i] += np.sin(x[i - 1] * w[j + 1]) * i + z[i] * j
    v = np.zeros((7,))
    for i, j in dace.map[2:6, 1:9]:
        v[i] += x[i] * w[j] * w[j - 1]
    t = np.zeros((7,))
    for i in dace.map[3:10]:  # all of it, counted from 3
        t[i - 3] = z[9 - i] * i
    loss = np.sum(y * t) + np.sum(u * u) + np.sum(v * v)
    loss.backward()
    return x.grad, z.grad, w.grad


def ranges_in_torch(x: Tensor, z: Tensor, w: Tensor) -> Tensor:
    y = z * w[2:8].sum()
    i, j = torch.arange(1, 7, 2)[:, None], torch.arange(0, 8, 3)
    u = ((x[i - 1] * w[j + 1]).sin() * i + z[i] * j).sum(1)
    v = x[2:6] * (w[1:] * w[:-1]).sum()
    t = z.flip(0) * torch.arange(3, 10)
    return (y * t).sum() + (u * u).sum() + (v * v).sum()


@dace.program
def intermediates(x: D[7], z: D[7], more: D[7]):
    x.requires_grad_()
    z.requires_grad_()
    y = x * 2 + more
    y.requires_grad_()
    loss = np.sum(y**2 * z)
    loss.backward()
    return x.grad, y.grad  # nobody reads z.grad


def intermediates_in_torch(x: Tensor, z: Tensor, more: Tensor) -> Tensor:
    return ((x * 2 + more) ** 2 * z).sum()  # of ``more`` it is that of y


@dace.program
def updated(x: D[7], z: D[7]):
    x.requires_grad_()
    z.requires_grad_()
    loss = np.sum(x * x * z)
    loss.backward()
    x[:] = x - 0.1 * x.grad
    again = np.sum(x * np.sin(z))
    again.backward()
    return x.grad, z.grad


def updated_in_torch(x: Tensor, z: Tensor) -> Tensor:
    loss = (x * x * z).sum()
    (slope,) = torch.autograd.grad(loss, x, retain_graph=True)
    return loss + ((x - 0.1 * slope) * z.sin()).sum()


@dace.program
def powers(x: D[7], z: D[7]):
    x.requires_grad_()
    z.requires_grad_()
    base = np.where(x > 0, x, 0.0 * x)
    exponent = np.where(z > 0, z + 1, 0.0 * z)
    nothing = (x - x) ** (z - z) + (x - x) ** 0 + 2**exponent
    whole = np.zeros((7,))
    for i in dace.map[0:7]:
        whole[i] = dace.float64(dace.int32(5 * x[i])) * x[i] + dace.float64(z[i]) ** 2
    loss = np.sum(base**exponent) + np.sum(nothing) + np.sum(whole)
    loss.backward()
    return x.grad, z.grad


def powers_in_torch(x: Tensor, z: Tensor) -> Tensor:
    base = torch.where(x > 0, x, 0 * x)
    exponent = torch.where(z > 0, z + 1, 0 * z)
    nothing = (x - x) ** (z - z) + (x - x) ** 0 + 2**exponent
    whole = (5 * x).int().double() * x + z**2
    return (base**exponent + nothing + whole).sum()


@dace.program
def overlapping(x: D[7], z: D[7]):
    x.requires_grad_()
    z.requires_grad_()
    y = np.zeros((7,))
    y[1:5] += x[0:4] * z[0:4]
    y[2:6] += x[1:5] ** 2
    y[0:3] -= np.sin(x[2:5])
    y[3:7] += z[3:7] - x[0:4]
    loss = np.sum(y * y * z)
    loss.backward()
    return x.grad, z.grad


def overlapping_in_torch(x: Tensor, z: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[1:5] += x[0:4] * z[0:4]
    y[2:6] += x[1:5] ** 2
    y[0:3] -= x[2:5].sin()
    y[3:7] += z[3:7] - x[0:4]
    return (y * y * z).sum()


@dace.program
def step(x: dace.float32[7, 5], y: dace.float32[7, 4], w: dace.float32[5, 4]):
    w.requires_grad_()
    scores = x @ w
    loss = np.sum(y * (np.log(np.sum(np.exp(scores), axis=1))[:, np.newaxis] - scores))
    loss.backward()
    w[:] = w - np.float32(0.1) * w.grad
    return w.grad


def step_in_torch(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    return -(y * (x @ w).log_softmax(1)).sum()


@dataclass(frozen=True)
class Gradients:
    """A program that returns gradients, its loss in torch, and how it is partitioned."""

    program: Any
    loss: Callable[..., Tensor]
    asked: tuple[str, ...]
    schedule: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.program.f.__name__)

    def arguments(self) -> dict[str, NDArray[Any]]:
        rng = np.random.default_rng(4)
        annotated = self.program.f.__annotations__
        types = {name: annotated[name] for name in self.program.argnames}
        return {
            name: rng.standard_normal(kind.shape).astype(kind.dtype.type)
            for name, kind in types.items()
        }

    def expected(self, arguments: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        tensors = {n: torch.tensor(a, requires_grad=True) for n, a in arguments.items()}
        self.loss(**tensors).backward()
        return [np.asarray(tensors[name].grad) for name in self.asked]


GRADIENTS = [
    Gradients(elements, elements_in_torch, ("x", "y", "row", "column"), {"fourth": (3, 1)}),
    Gradients(perceptron, perceptron_in_torch, ("w", "b", "v", "u"), {"hidden": (3, 1)}),
    Gradients(attention, attention_in_torch, ("q", "k", "v"), {"weights": (1, 3, 1)}),
    Gradients(reductions, reductions_in_torch, ("x",), {"kept": (3, 1)}),
    Gradients(maps, maps_in_torch, ("x", "w"), {"z": (3, 1)}),
    Gradients(ranges, ranges_in_torch, ("x", "z", "w"), {"y": (3,)}),
    Gradients(intermediates, intermediates_in_torch, ("x", "more"), {"y": (3,)}),
    Gradients(updated, updated_in_torch, ("x", "z"), {"loss": (3,)}),
    Gradients(powers, powers_in_torch, ("x", "z"), {"base": (3,)}),
    Gradients(overlapping, overlapping_in_torch, ("x", "z"), {"loss": (3,)}),
    Gradients(step, step_in_torch, ("w",), {"scores": (3, 1, 1)}),
]
