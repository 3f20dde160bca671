"""The matrix product, cut in all ways: by rows, by columns, by both, and by summands.

Rows or columns: each rank computes a part of the result, and one operand is whole on all ranks.
Rows and columns (2-D): each rank has rows of one and columns of the other; a part of the result.
Summands: each rank multiplies columns of one by rows of the other, and the products of all ranks
are added (partial results); with rows as well it is 2.5-D, on (2, 1, 2). Nothing else moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from showing import SMALL, Example, main

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    import dace

N, M, K = (130, 90, 70) if SMALL else (2048, 2048, 2048)


def product(a: dace.float32[N, K], b: dace.float32[K, M]):
    return a @ b


def draw(rng):
    return {"a": rng.random((N, K), np.float32), "b": rng.random((K, M), np.float32)}


SCHEMES = {
    (4, 1, 1): "a in rows; b on all ranks; results in rows",
    (1, 4, 1): "b in columns; a on all ranks; results in columns",
    (2, 2, 1): "a in rows, each on 2 ranks; b in columns, each on 2 ranks; results in blocks",
    (1, 1, 4): "a in columns, b in rows; results are summands of all ranks, which are added",
    (2, 1, 2): "a in blocks; b in rows, each on 2 ranks; results in rows, summands of 2 ranks",
}
EXAMPLES = [Example(product, {"__return": parts}, words, draw) for parts, words in SCHEMES.items()]

if __name__ == "__main__":
    main(__file__, EXAMPLES)
