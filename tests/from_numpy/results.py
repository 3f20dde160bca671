"""Programs whose results are numbers of Python, and of NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def of_shapes(x: Any) -> Any:
    return len(x), x.shape, x.size, x.ndim, 3, max(len(x), 2), min(1.0, 2.0)


def of_conversions(x: Any) -> Any:
    number = float(x[0])
    more = abs(number), number**2, -int(4 * x[1]), number + x[1], round(number, 2)
    whole = int(x[0] * 9)
    return more, whole // 2, whole / 2, divmod(whole, 3), bool(x[0] > 0), x[0] > 0, x[0].item()


def of_loops(x: Any) -> Any:
    total, count, last, error = 0.0, 0, -1, 1.0
    for v in x:
        total += v
    for i in range(len(x)):
        if x[i] > 0.5:
            count += 1
            last = i
        error += 0.25 if i else 0.5
    while error > 1e-3:
        error = error * 0.5
    return total, count, last, error


def of_functions(x: Any) -> Any:
    both = any(x > 0.5), all(v > 0 for v in x), np.any(x > 2)
    c = complex(x[0], 1)
    return both, math.sqrt(x[0]), math.floor(x[0] * 7), c, c.real, (c * c).imag, x[0] + 1j


def of_containers(x: Any) -> Any:
    listed = x.tolist(), [float(v) for v in x], tuple(int(v * 5) for v in x)
    one_of = (0.8, 1.3, 2.1)[int(x[0] * 3)], np.allclose(x, x), np.array_equal(x, x)
    listed += one_of
    return {"n": len(x), "s": x.sum(), "f": 2.5, "m": max(x), "l": listed, "w": np.argmax(x)}


def every(x: Any) -> Any:
    return of_shapes(x), of_conversions(x), of_loops(x), of_functions(x), of_containers(x)


def known(x: Any, n: int = 3) -> Any:
    while n < 10:
        n *= 2
    return n


def of_text(x: Any, n: int = 3) -> Any:
    return "even" if n % 2 == 0 else ("odd", None)


CASES = [
    Case(f.__name__, f, "numbers of Python", "", lambda rng: (rng.random(7),), ())
    for f in (every, known, of_text)
]
