"""Indices that data decide: ranks fetch what their indices name, which they find at run time."""

import itertools

import dace
import numpy as np

from lowering.harness import cases

ROWS, COLUMNS, ENTRIES = 11, 9, 40


@dace.program
def spmv_in_maps(
    row: dace.uint32[ROWS + 1],
    col: dace.uint32[ENTRIES],
    val: dace.float64[ENTRIES],
    x: dace.float64[COLUMNS],
):
    y = np.empty([ROWS], dtype=np.float64)
    for i in dace.map[0:ROWS]:
        y[i] = 0
        for j in dace.map[row[i] : row[i + 1]]:
            y[i] += val[j] * x[col[j]]
    return y


@dace.program
def spmv_of_slices(
    row: dace.uint32[ROWS + 1],
    col: dace.uint32[ENTRIES],
    val: dace.float32[ENTRIES],
    x: dace.float32[COLUMNS],
    y: dace.float32[ROWS],
):
    for i in dace.map[0:ROWS]:
        cols = col[row[i] : row[i + 1]]
        vals = val[row[i] : row[i + 1]]
        y[i] = vals @ x[cols]


@dace.program
def spmv_in_a_loop(
    row: dace.uint32[ROWS + 1],
    col: dace.uint32[ENTRIES],
    val: dace.float64[ENTRIES],
    x: dace.float64[COLUMNS],
):
    y = np.empty(ROWS, val.dtype)
    for i in range(ROWS):
        start = dace.define_local_scalar(dace.uint32)
        stop = dace.define_local_scalar(dace.uint32)
        start = row[i]
        stop = row[i + 1]
        cols = col[start:stop]
        vals = val[start:stop]
        y[i] = vals @ x[cols]
    return y


def spmv_in_numpy(row, col, val, x):
    return np.array([val[a:b] @ x[col[a:b]] for a, b in itertools.pairwise(row)])


@dace.program
def rows_of_a_product(
    row: dace.int32[ROWS + 1],
    col: dace.int64[ENTRIES],
    val: dace.complex64[ENTRIES],
    x: dace.complex64[COLUMNS, 5],
    y: dace.complex64[ROWS, 5],
):
    for i, j in dace.map[0:ROWS, 0:5]:
        for k in range(row[i], row[i + 1]):
            y[i, j] += val[k] * x[col[k], j]


@dace.program
def powers(
    row: dace.int64[COLUMNS + 1],
    col: dace.int64[ENTRIES],
    val: dace.float64[ENTRIES],
    x: dace.float64[COLUMNS],
):
    for _ in range(4):
        y = np.zeros_like(x)
        for i in dace.map[0:COLUMNS]:
            for k in range(row[i], row[i + 1]):
                y[i] += val[k] * x[col[k]]
        x[:] = y / 2


@dace.program
def moving_indices(x: dace.int32[13], index: dace.int16[10], y: dace.int32[10]):
    for _ in range(3):
        for i in dace.map[0:10]:
            y[i] = y[i] + x[index[i]]
        for j in dace.map[0:10]:
            index[j] = (index[j] + 4) % 13


@dace.program
def indices_of_a_loop(x: dace.float64[13], index: dace.int64[3, 10], y: dace.float64[10]):
    for t in range(3):
        for i in dace.map[0:10]:
            y[i] = y[i] + x[index[t, i]] * x[i + t]


@dace.program
def table_rows(table: dace.float32[12, 6], index: dace.int32[7], out: dace.float32[7, 6]):
    for i in dace.map[0:7]:
        out[i, :] = table[index[i], :]


@dace.program
def chosen_columns(table: dace.float64[6, 12], index: dace.int64[7]):
    return table[:, index] * 2


@dace.program
def index_of_indices(
    x: dace.float64[12], p: dace.int32[9], index: dace.int64[7], y: dace.float64[7]
):
    for i in dace.map[0:7]:
        y[i] = x[p[index[i]] + 1] + x[i]


@dace.program
def two_indices(x: dace.int8[9, 12], a: dace.int64[10], b: dace.int64[10], y: dace.int8[10]):
    for i in dace.map[0:10]:
        y[i] = x[a[i], (b[i] + i) % 12]


@dace.program
def padded(x: dace.float64[9], index: dace.int64[10, 3], y: dace.float64[10]):
    for i in dace.map[0:10]:
        for k in range(3):
            if index[i, k] >= 0:
                y[i] += x[index[i, k]]


@dace.program
def follows_itself(following: dace.int64[9], y: dace.int64[9]):
    for i in dace.map[0:9]:
        y[i] = following[following[i]]


@dace.program
def computed_index(x: dace.float64[9], w: dace.float64[7], y: dace.float64[7]):
    for i in dace.map[0:7]:
        place = dace.int64(w[i] * 9)
        y[i] = x[place]


@dace.program
def one_for_all(x: dace.float64[9, 8], index: dace.int64[5], y: dace.float64[8]):
    c = index[2]
    for i in dace.map[0:8]:
        y[i] = x[c, i]


@dace.program
def weights_in_bins(place: dace.int64[20], weight: dace.float64[20], h: dace.float64[9]):
    for i in dace.map[0:20]:
        h[place[i]] += weight[i]


@dace.program
def by_entries(
    at: dace.int64[ENTRIES],
    col: dace.int64[ENTRIES],
    val: dace.float64[ENTRIES],
    x: dace.float64[COLUMNS],
    y: dace.float64[ROWS],
):
    for k in dace.map[0:ENTRIES]:
        y[at[k]] += val[k] * x[col[k]]


def bounds_of(rows, dtype):
    """Where rows begin: some are empty, and one has most entries."""

    def drawn(rng):
        most = int(rng.integers(0, rows))
        inner = [0] * most + [ENTRIES * 3 // 4] * (rows - 1 - most)
        inner += rng.integers(0, 4, len(inner))
        return np.array([0, *np.minimum(np.sort(inner), ENTRIES), ENTRIES], dtype)

    return drawn


def below(extent, *shape, dtype=np.int64, least=0):
    return lambda rng: rng.integers(least, extent, shape).astype(dtype)


def small(*shape):
    return lambda rng: rng.random(shape)


COLUMN = below(COLUMNS, ENTRIES)
CASES = [
    *cases(
        spmv_in_maps,
        {"__return": (1,)},
        {"__return": (2,)},
        {"__return": (6,)},
        row=bounds_of(ROWS, np.uint32),
        col=below(COLUMNS, ENTRIES, dtype=np.uint32),
    ),
    *cases(
        spmv_of_slices,
        {"y": (4,)},
        row=bounds_of(ROWS, np.uint32),
        col=below(COLUMNS, ENTRIES, dtype=np.uint32),
    ),
    *cases(
        spmv_in_a_loop,
        {"__return": (3,)},
        reference=spmv_in_numpy,
        row=bounds_of(ROWS, np.uint32),
        col=below(COLUMNS, ENTRIES, dtype=np.uint32),
    ),
    *cases(rows_of_a_product, {"y": (3, 2)}, row=bounds_of(ROWS, np.int32), col=COLUMN),
    *cases(powers, {"y.2": (4,)}, row=bounds_of(COLUMNS, np.int64), col=COLUMN),
    *cases(moving_indices, {"y": (4,)}, index=below(13, 10, dtype=np.int16)),
    *cases(indices_of_a_loop, {"y": (3,)}, index=below(13, 3, 10)),
    *cases(table_rows, {"out": (8,)}, index=below(12, 7, dtype=np.int32)),
    *cases(chosen_columns, {"__return": (2, 3)}, index=below(12, 7)),
    *cases(index_of_indices, {"y": (3,)}, p=below(11, 9, dtype=np.int32), index=below(9, 7)),
    *cases(two_indices, {"y": (4,)}, a=below(9, 10), b=below(12, 10)),
    *cases(padded, {"y": (4,)}, index=below(9, 10, 3, least=-1)),
    *cases(follows_itself, {"y": (3,)}, following=below(9, 9)),
    *cases(computed_index, {"y": (3,)}, w=small(7)),
    *cases(one_for_all, {"y": (4,)}, index=below(9, 5)),
    *cases(weights_in_bins, {"h": (4,)}, {"h": (3,)}, place=below(9, 20)),
    *cases(by_entries, {"y": (6,)}, at=below(ROWS, ENTRIES), col=COLUMN),
]
