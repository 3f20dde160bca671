"""Transposes in a row, interleaved columns, and fused projections, at uneven extents."""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def turned_twice(x: Any, y: Any) -> Any:
    a = x.T + 1
    b = a.T * y
    c = np.swapaxes(np.transpose(b), 0, 1) - x
    return a, b, c.T.T


def every_third(x: Any, w: Any) -> Any:
    qkv = x @ w
    q, k, v = qkv[:, 0::3], qkv[:, 1::3], qkv[:, 2::3]
    return q @ k.T, v * 2


def fused(x: Any, w: Any) -> Any:
    """Attention of 5 heads with one projection of queries, keys and values."""
    n, e = x.shape
    heads, d = 5, e // 5
    qkv = (x @ w).reshape(n, 3, heads, d)
    q, k, v = (qkv[:, i].transpose(1, 0, 2) for i in range(3))
    scores = np.matmul(q, np.swapaxes(k, 1, 2)) / np.sqrt(d)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    return np.matmul(scores, v)


def fused_by_columns(x: Any, w: Any) -> Any:
    n, e = x.shape
    q, k, v = np.split(x @ w, 3, axis=1)
    heads = [part.reshape(n, 5, e // 5).transpose(1, 0, 2) for part in (q, k, v)]
    return np.einsum("hid,hjd,hje->hie", *heads).transpose(1, 0, 2).reshape(n, e)


CASES = [
    Case("turned_twice", turned_twice, "", "", lambda r: (r.random((7, 5)), r.random((7, 5))), ()),
    Case("every_third", every_third, "", "", lambda r: (r.random((7, 4)), r.random((4, 15))), ()),
    Case("fused", fused, "", "", lambda r: (r.random((7, 10)), r.random((10, 30))), ()),
    Case(
        "by_columns",
        fused_by_columns,
        "",
        "",
        lambda r: (r.random((7, 10)), r.random((10, 30))),
        (),
    ),
]
