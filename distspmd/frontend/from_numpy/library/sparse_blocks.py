"""Sparse matrices of blocks, parts of triangles, and eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.sparse import Sparse, matrix


def _entries(block: Any) -> Any:
    if block.whole is None:
        return block.entries, block.lines, block.columns
    m, n = block.shape
    places = np.arange(m * n)
    return np.ravel(block.whole), places // n, places % n


def _is_array(blocks: Any) -> Any:
    return any(isinstance(each, Sparse) and each.is_array for row in blocks for each in row)


def bmat(blocks: Any, format: object = None, dtype: object = None) -> Any:
    """A matrix of rows of blocks, of which None is one of zeros."""
    kind = _is_array(blocks)
    heights = [0] * len(blocks)
    widths = [0] * len(blocks[0])
    made: Any = [[None] * len(widths) for _ in blocks]
    for i, row in enumerate(blocks):
        for j, each in enumerate(row):
            if each is not None:
                made[i][j] = each if isinstance(each, Sparse) else matrix(each, None, None, kind)
                heights[i], widths[j] = made[i][j].shape
    data, lines, columns = [], [], []
    top = 0
    for i, row in enumerate(made):
        left = 0
        for j, each in enumerate(row):
            if each is not None:
                if each.shape != (heights[i], widths[j]):
                    raise ValueError("blocks of a row or a column have other extents")
                values, inner_lines, inner_columns = _entries(each)
                data.append(values)
                lines.append(inner_lines + top)
                columns.append(inner_columns + left)
            left = left + widths[j]
        top = top + heights[i]
    shape = (sum(heights), sum(widths))
    found = Sparse(
        np.concatenate(data), np.concatenate(lines), np.concatenate(columns), shape, None, kind
    )
    return found if dtype is None else found.astype(dtype)


def vstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Matrices below each other."""
    return bmat([[each] for each in blocks], format, dtype)


def hstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    """Matrices beside each other."""
    return bmat([list(blocks)], format, dtype)


def block_diag(mats: Any, format: object = None, dtype: object = None) -> Any:
    """Matrices along the diagonal."""
    rows = [[each if i == j else None for j in range(len(mats))] for i, each in enumerate(mats)]
    return bmat(rows, format, dtype)


def tril(A: Any, k: Any = 0, format: object = None) -> Any:  # noqa: N803
    """What is below a diagonal."""
    return A.full(np.tril(A.toarray(), k))


def triu(A: Any, k: Any = 0, format: object = None) -> Any:  # noqa: N803
    """What is above a diagonal."""
    return A.full(np.triu(A.toarray(), k))


def inv(A: Any) -> Any:  # noqa: N803
    """The inverse."""
    return A.full(np.linalg.inv(A.toarray()))


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """A norm of a matrix, or of its rows or columns."""
    return np.linalg.norm(x.toarray(), ord, axis)


def eigsh(
    A: Any,  # noqa: N803
    k: object = 6,
    M: object = None,  # noqa: N803
    sigma: object = None,
    which: object = "LM",
    v0: object = None,
    ncv: object = None,
    maxiter: object = None,
    tol: object = 0,
    return_eigenvectors: object = True,
) -> Any:
    """Some eigenvalues of a symmetric matrix, ascending; the vectors have the sign of LAPACK."""
    if M is not None:
        raise NotImplementedError("scipy.sparse.linalg.eigsh with M=")
    values, vectors = np.linalg.eigh(A.toarray() if isinstance(A, Sparse) else A)
    if which not in ("LM", "SM", "LA", "SA"):
        raise NotImplementedError(f"scipy.sparse.linalg.eigsh of {which!r}")
    if sigma is not None:
        sizes = -np.abs(1.0 / (values - sigma)) if which == "LM" else np.abs(values - sigma)
        if which not in ("LM",):
            raise NotImplementedError("scipy.sparse.linalg.eigsh near sigma but for 'LM'")
    elif which in ("LM", "SM"):
        sizes = -np.abs(values) if which == "LM" else np.abs(values)
    else:
        sizes = -values if which == "LA" else values
    best = np.argsort(sizes)[:k]
    chosen = np.sort(best)
    if not return_eigenvectors:  # then ARPACK leaves them as it has found them, the best last
        return values[best[::-1]] if sigma is None else values[chosen]
    return values[chosen], vectors[:, chosen]
