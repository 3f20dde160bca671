"""Self-attention of BERT-large as Megatron partitions it: by heads.

Each rank has the projections of its heads, and computes their queries, keys, values, scores and
weighted values; nothing moves between ranks until the end of the attention. The output projection
sums over heads, so its results are summands of all ranks, which are added once: by a reduction to
rank 0 where the caller is there, by an all-reduce where every rank has the inputs and wants the
result, by a reduce-scatter where what follows is split by tokens.

The fused variant has one projection for queries, keys and values, which is split afterwards; the
split is along a dimension of its own, so it moves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from showing import SMALL, Example, main

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    import dace

B, S, H, P = (2, 6, 4, 3) if SMALL else (8, 512, 16, 64)
E = H * P
RANKS = 4


def attention(
    x: dace.float32[B, S, E],
    wq: dace.float32[H, P, E],
    wk: dace.float32[H, P, E],
    wv: dace.float32[H, P, E],
    wo: dace.float32[H, P, E],
):
    q = np.einsum("bse,hpe->bhsp", x, wq)
    k = np.einsum("bse,hpe->bhsp", x, wk)
    v = np.einsum("bse,hpe->bhsp", x, wv)
    scores = np.einsum("bhsp,bhtp->bhst", q, k) * np.float32(P**-0.5)
    top = np.maximum.reduce(scores, axis=-1, keepdims=True)
    e = np.exp(scores - top)
    weights = e / np.add.reduce(e, axis=-1, keepdims=True)
    heads = np.einsum("bhst,bhtp->bhsp", weights, v)
    return np.einsum("bhsp,hpe->bse", heads, wo)


def fused_attention(
    x: dace.float32[B, S, E], wqkv: dace.float32[3, H, P, E], wo: dace.float32[H, P, E]
):
    qkv = np.einsum("bse,khpe->kbhsp", x, wqkv)
    scores = np.einsum("bhsp,bhtp->bhst", qkv[0], qkv[1]) * np.float32(P**-0.5)
    top = np.maximum.reduce(scores, axis=-1, keepdims=True)
    e = np.exp(scores - top)
    weights = e / np.add.reduce(e, axis=-1, keepdims=True)
    heads = np.einsum("bhst,bhtp->bhsp", weights, qkv[2])
    return np.einsum("bhsp,hpe->bse", heads, wo)


def residual_attention(
    x: dace.float32[B, S, E],
    wq: dace.float32[H, P, E],
    wk: dace.float32[H, P, E],
    wv: dace.float32[H, P, E],
    wo: dace.float32[H, P, E],
):
    projected = attention(x, wq, wk, wv, wo)
    return x + projected


def in_numpy(x, wo, wq=None, wk=None, wv=None, wqkv=None):
    wq, wk, wv = (wq, wk, wv) if wqkv is None else wqkv
    q, k, v = (np.einsum("bse,hpe->bhsp", x, w, optimize=True) for w in (wq, wk, wv))
    scores = q @ k.swapaxes(-1, -2) * np.float32(P**-0.5)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = (e / e.sum(axis=-1, keepdims=True)) @ v
    return np.einsum("bhsp,hpe->bse", heads, wo, optimize=True)


def draw(rng):
    weights = ("wq", "wk", "wv", "wo")
    given = {name: rng.standard_normal((H, P, E), np.float32) / 32 for name in weights}
    return {"x": rng.standard_normal((B, S, E), np.float32), **given}


def draw_fused(rng):
    wqkv = rng.standard_normal((3, H, P, E), np.float32) / 32
    return {
        "x": rng.standard_normal((B, S, E), np.float32),
        "wqkv": wqkv,
        "wo": rng.standard_normal((H, P, E), np.float32) / 32,
    }


def with_residual(x, **weights):
    return x + in_numpy(x, **weights)


HEADS = {name: {"h": RANKS} for name in ("q", "k", "v")}
WEIGHTS = dict.fromkeys(("wq", "wk", "wv", "wo"), "distributed")
WORDS = "nothing moves between ranks; the results of all heads are "
EXAMPLES = [
    Example(
        attention,
        {**HEADS, "__return": {"h": RANKS}},
        f"{WORDS}added on rank 0",
        draw,
        in_numpy,
    ),
    Example(
        fused_attention,
        {name: {"h": RANKS} for name in ("qkv", "__return")},
        f"{WORDS}added on rank 0",
        draw_fused,
        in_numpy,
    ),
    Example(
        attention,
        {**HEADS, "__return": {"h": RANKS}},
        f"{WORDS}added on every rank, by one all-reduce",
        draw,
        in_numpy,
        {"arguments": {"x": "replicated", "__return": "replicated", **WEIGHTS}},
    ),
    Example(
        residual_attention,
        {**HEADS, "projected": {"h": RANKS}, "__return": {"__i1": RANKS}},
        f"{WORDS}added by one reduce-scatter, which leaves each rank its tokens",
        draw,
        with_residual,
        {"arguments": {"x": "replicated", "__return": "distributed", **WEIGHTS}},
    ),
]

if __name__ == "__main__":
    main(__file__, EXAMPLES, RANKS)
