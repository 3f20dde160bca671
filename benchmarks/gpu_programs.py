"""The programs of `gpu.py`: for distspmd, the same for PyTorch and JAX, and what they must move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shapes = dict[str, tuple[int, ...]]
STEPS_CHECKED = 3
"""Steps of programs that make some, where they are compared with NumPy."""
TRAINING = "training"
"""The name of a training step of a GPT (`gpu_training.py`), which needs PyTorch."""
COPIES = "copies"
"""The name of copies on the device, to and from it, and between ranks."""
LINE = "row: "
"""With which a rank's line begins that is a row of the results."""


def pointwise(x, y):
    return x * y + np.exp(-x)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, scale, shift):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * scale + shift


def total(x):
    return np.sum(x)


def jacobi(x, steps):
    for _ in range(steps):
        x[1:-1, 1:-1] = np.float32(0.25) * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return x


def transpose(x):
    return x.T.copy()


def matmul(x, w):
    return x @ w


def attention(x, wq, wk, wv, wo):
    q = np.einsum("bse,hpe->bhsp", x, wq)
    k = np.einsum("bse,hpe->bhsp", x, wk)
    v = np.einsum("bse,hpe->bhsp", x, wv)
    scores = np.einsum("bhsp,bhtp->bhst", q, k) * np.float32(wq.shape[1] ** -0.5)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = e / np.sum(e, axis=-1, keepdims=True)
    return np.einsum("bhsp,hpe->bse", np.einsum("bhst,bhtp->bhsp", weights, v), wo)


def gathered(x):
    """Elements that data choose, and places that data choose."""
    at = (np.abs(x[:, 0]) * 100).astype(np.int64) % x.shape[0]
    counts = np.zeros(x.shape, np.float32)
    np.add.at(counts, at, x)
    return x[at] * 2 + counts


def settled(x):
    """Halos in place, and an end that a residual decides."""
    change = np.float32(1)
    while change > np.float32(1e-2):
        before = x.copy()
        x[1:-1] = np.float32(0.5) * (x[:-2] + x[2:])
        change = np.max(np.abs(x - before))
    return x


def phases(x):
    """Complex numbers, whose reductions are kernels of DaCe."""
    return np.abs(np.sum(np.exp(1j * x.astype(np.float64)), axis=1))


def in_torch(name: str) -> Callable[..., Any]:
    """The program for PyTorch."""
    import torch
    from torch.nn import functional

    def by_hand(x, wq, wk, wv, wo):
        q, k, v = (torch.einsum("bse,hpe->bhsp", x, w) for w in (wq, wk, wv))
        heads = functional.scaled_dot_product_attention(q, k, v)
        return torch.einsum("bhsp,hpe->bse", heads, wo)

    def stepped(x, steps):
        for _ in range(steps):
            inner = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
            x[1:-1, 1:-1] = 0.25 * inner
        return x

    found: dict[str, Callable[..., Any]] = {
        "pointwise": lambda x, y: x * y + torch.exp(-x),
        "softmax": lambda x: torch.softmax(x, -1),
        "layer_norm": lambda x, scale, shift: functional.layer_norm(
            x, x.shape[-1:], scale, shift, 1e-5
        ),
        "total": torch.sum,
        "transpose": lambda x: x.T.contiguous(),
        "jacobi": stepped,
        "matmul": lambda x, w: x @ w,
        "attention": by_hand,
    }
    return found["pointwise" if name == "call" else name]


def in_jax(name: str) -> Callable[..., Any]:
    """The program for JAX."""
    import jax
    from jax import numpy as jnp

    def normalised(x, scale, shift):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / jnp.sqrt(variance + 1e-5) * scale + shift

    def by_hand(x, wq, wk, wv, wo):
        q, k, v = (jnp.einsum("bse,hpe->bhsp", x, w) for w in (wq, wk, wv))
        scores = jnp.einsum("bhsp,bhtp->bhst", q, k) * wq.shape[1] ** -0.5
        heads = jnp.einsum("bhst,bhtp->bhsp", jax.nn.softmax(scores, axis=-1), v)
        return jnp.einsum("bhsp,hpe->bse", heads, wo)

    def stepped(x, steps):
        def step(_, x):
            inner = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
            return x.at[1:-1, 1:-1].set(0.25 * inner)

        return jax.lax.fori_loop(0, steps, step, x)

    found: dict[str, Callable[..., Any]] = {
        "pointwise": lambda x, y: x * y + jnp.exp(-x),
        "softmax": lambda x: jax.nn.softmax(x, axis=-1),
        "layer_norm": normalised,
        "total": jnp.sum,
        "transpose": lambda x: x.T.copy(),
        "jacobi": stepped,
        "matmul": lambda x, w: x @ w,
        "attention": by_hand,
    }
    return found["pointwise" if name == "call" else name]


@dataclass(frozen=True)
class Program:
    """A program on a device.

    Attributes:
        function: of NumPy arrays.
        shapes: of its arguments, which are float32.
        small: the same that take no time.
        bytes_moved: that any way to compute it moves, of shapes; 0 where that is no bound.
        operations: of floating point, of shapes; 0 where they are no bound.
        numbers: arguments that are numbers.
        arithmetic: kinds in which it is computed.
    """

    function: Callable[..., Any]
    shapes: Shapes
    small: Shapes
    bytes_moved: Callable[[Shapes, dict[str, int]], int] = lambda shapes, numbers: 0
    operations: Callable[[Shapes], int] = lambda shapes: 0
    numbers: dict[str, int] = field(default_factory=dict)
    arithmetic: tuple[str, ...] = ("vector",)


def _bytes(count: int) -> Callable[[Shapes, dict[str, int]], int]:
    """So many passes over the first argument, for each step."""
    return lambda shapes, numbers: 4 * count * int(np.prod(shapes["x"])) * numbers.get("steps", 1)


def _of_matmul(shapes: Shapes) -> int:
    (m, k), (_, n) = shapes["x"], shapes["w"]
    return 2 * m * k * n


def _of_attention(shapes: Shapes) -> int:
    (b, s, e), (h, p, _) = shapes["x"], shapes["wq"]
    return 2 * b * s * h * p * (4 * e + 2 * s)


_WEIGHTS = ("wq", "wk", "wv", "wo")

PROGRAMS = {
    "call": Program(pointwise, {"x": (1,), "y": (1,)}, {"x": (1,), "y": (1,)}),
    "pointwise": Program(
        pointwise, dict.fromkeys("xy", (1 << 28,)), dict.fromkeys("xy", (1000,)), _bytes(3)
    ),
    "total": Program(total, {"x": (1 << 28,)}, {"x": (1000,)}, _bytes(1)),
    "softmax": Program(softmax, {"x": (8, 16, 512, 512)}, {"x": (2, 3, 5, 7)}, _bytes(2)),
    "layer_norm": Program(
        layer_norm,
        {"x": (1 << 16, 1024), "scale": (1024,), "shift": (1024,)},
        {"x": (10, 7), "scale": (7,), "shift": (7,)},
        _bytes(2),
    ),
    "transpose": Program(transpose, {"x": (1 << 14, 1 << 14)}, {"x": (10, 7)}, _bytes(2)),
    "jacobi": Program(
        jacobi, {"x": (8192, 8192)}, {"x": (20, 20)}, _bytes(2), numbers={"steps": 100}
    ),
    "matmul": Program(
        matmul,
        dict.fromkeys("xw", (8192, 8192)),
        {"x": (9, 8), "w": (8, 11)},
        operations=_of_matmul,
        arithmetic=("vector", "tf32", "bfloat16"),
    ),
    "attention": Program(
        attention,
        {"x": (8, 512, 1024), **dict.fromkeys(_WEIGHTS, (16, 64, 1024))},
        {"x": (2, 5, 12), **dict.fromkeys(_WEIGHTS, (3, 4, 12))},
        operations=_of_attention,
        arithmetic=("vector", "tf32"),
    ),
}


_LAYERED = {"x": (12, 9)}

EVERY: dict[str, Program] = {
    **PROGRAMS,
    "gathered": Program(gathered, _LAYERED, _LAYERED),
    "settled": Program(settled, _LAYERED, _LAYERED),
    "phases": Program(phases, _LAYERED, _LAYERED),
}
"""With those that are not timed: elements and ends that data choose, and kernels of DaCe."""
CHECKED = (*(name for name in EVERY if name != "call"), TRAINING)
"""Names of programs that are compared with NumPy or PyTorch; "call" is "pointwise"."""


def drawn(name: str, shapes: Shapes) -> dict[str, np.ndarray]:
    """Arguments of a program, the same in each process."""
    rng = np.random.default_rng(0)
    return {
        argument: rng.standard_normal(shape, np.float32) / 8 for argument, shape in shapes.items()
    }


def row_of(program: str, by: str, arithmetic: str, seconds: float | None) -> dict[str, Any]:
    """What a row of the results has in each case."""
    return {"program": program, "by": by, "arithmetic": arithmetic, "seconds": seconds}


def work_of(name: str, small: bool) -> dict[str, int]:
    """Bytes that any way to compute a program moves, and operations; 0 where they are no bound."""
    program = PROGRAMS[name]
    shapes, numbers = program.shapes, program.numbers
    if small:
        shapes, numbers = program.small, dict.fromkeys(numbers, STEPS_CHECKED)
    return {
        "bytes": program.bytes_moved(shapes, numbers),
        "operations": program.operations(shapes),
    }
