"""A step of gradient descent of attention, whose gradient is written by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
from dace import float64 as f8


def attention_step(s: int, heads: int, d: int) -> Callable[..., Any]:
    """The step on ``s`` rows of ``heads * d``: one projection for queries, keys and values.

    Returns:
        a plain function of ``x``, ``y`` and the weights ``w`` and ``wo``, which it changes.
    """
    e = heads * d

    def step(
        x: f8[s, e],  # type: ignore[valid-type]
        y: f8[s, e],  # type: ignore[valid-type]
        w: f8[e, 3 * e],  # type: ignore[valid-type]
        wo: f8[e, e],  # type: ignore[valid-type]
    ):
        qkv = x @ w
        q = qkv[:, :e].reshape(s, heads, d)
        k = qkv[:, e : 2 * e].reshape(s, heads, d)
        v = qkv[:, 2 * e :].reshape(s, heads, d)
        scores = np.einsum("shd,thd->hst", q, k)
        raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p = raised / raised.sum(axis=-1, keepdims=True)
        o = np.einsum("hst,thd->shd", p, v).reshape(s, e)
        z = o @ wo
        dz = (z - y) / s
        dwo = o.T @ dz
        do = (dz @ wo.T).reshape(s, heads, d)
        dp = np.einsum("shd,thd->hst", do, v)
        ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True))
        dq = np.einsum("hst,thd->shd", ds, k).reshape(s, e)
        dk = np.einsum("hst,shd->thd", ds, q).reshape(s, e)
        dv = np.einsum("hst,shd->thd", p, do).reshape(s, e)
        dqkv = np.concatenate([dq, dk, dv], axis=1)
        w[:] = w - 0.1 * (x.T @ dqkv)
        wo[:] = wo - 0.1 * dwo
        return ((z - y) ** 2).mean()

    return step
