"""Programs with numbers of 16 bits, for :mod:`from_numpy.test_half_numbers`."""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def of_elements(x: Any) -> Any:
    h = x.astype(np.float16)
    first = h * h + h, h / 3, h - 1.5, np.exp(h / 8), h > 2, -h, abs(h)
    return *first, np.maximum(h, 0), np.sign(h), np.floor(h), h**2, h // 2, h % 3, np.isnan(h)


def beside_others(x: Any) -> Any:
    h = x.astype(np.float16)
    return h + x, h + np.float32(2), h * 2, h + h.astype(np.int8), h * 1j


def in_place(x: Any) -> Any:
    h = np.zeros((6, 5), np.float16)
    h[:] = x
    h[1:3] += 1
    h[0, 0] = 70000.0
    h[2] = h[3] * h[4]
    h[h < 0] = 0
    return h


def reduced(x: Any) -> Any:
    h = x.astype(np.float16)
    sums = h.sum(), h.mean(), h.sum(axis=1), h.mean(axis=0), h.prod(axis=1), h.std(axis=0)
    return *sums, h.max(), h.min(axis=0), h.argmax(), np.cumsum(h[:, 0] / 100), h.any()


def too_large(x: Any) -> Any:
    h = np.full(40, 60000.0, np.float16)
    return h.sum(), h.mean(), h * 2, x.astype(np.float16) * 1e4


def arranged(x: Any) -> Any:
    h = np.float16(x)
    first = h.T, h.reshape(5, 6), np.concatenate([h, h]), h[::-1], np.stack([h, h]), h[h > 3]
    return *first, np.sort(h), np.argsort(h, axis=1), np.where(h > 0, h, 0), np.diff(h)


def multiplied(x: Any) -> Any:
    h = x.astype(np.float16) / 10
    return h @ h.T, np.dot(h, h[0]), np.inner(h, h), np.outer(h[0], h[1])


def of_many_terms(x: Any) -> Any:
    h = (x != 99).astype(np.float16)
    products = h @ h.T, np.dot(h[0], h[1]), np.inner(h[0], h[1]), h @ h[0]
    return *products, h.sum(), h.sum(axis=1), h.mean(), np.outer(h[0], h[1]).max()


def in_a_loop(x: Any) -> Any:
    h = x.astype(np.float16)
    for _ in range(4):
        h = h * np.float16(0.5) + h[::-1]
    return h, float(h[0, 0]), h.view(np.uint16), h.astype(int), np.round(x > 0)


def smoothed(h: Any) -> Any:
    inner = (h[:-2] + h[1:-1] + h[2:]) / 3
    return inner, inner.sum(axis=0)


def _numbers(_: Any) -> list[Any]:
    return [np.random.default_rng(0).normal(size=(6, 5)) * 10]


def _halves(_: Any) -> list[Any]:
    return [np.random.default_rng(1).normal(size=(9, 4)).astype(np.float16)]


CASES = [
    *(
        Case(f.__name__, f, "", "", _numbers, ())
        for f in (
            *(of_elements, beside_others, in_place, reduced, too_large, arranged),
            *(multiplied, in_a_loop),
        )
    ),
    Case("of_many_terms", of_many_terms, "", "", lambda _: [np.zeros((4, 4096))], ()),
    Case("smoothed", smoothed, "", "", _halves, ()),
]
