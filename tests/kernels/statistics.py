"""Statistics and dynamic programming."""

import itertools

import dace
import numpy as np

from kernels.kernel import kernel

M, N, BASES = 11, 13, 7


@dace.program
def correlation(data: dace.float64[N, M]):
    mean = np.mean(data, axis=0)
    stddev = np.sqrt(np.mean((data - mean) ** 2, axis=0))
    stddev[stddev <= 0.1] = 1.0
    data[:] = (data - mean) / (np.sqrt(np.float64(N)) * stddev)
    corr = np.eye(M, dtype=data.dtype)
    for i in range(M - 1):
        corr[i + 1 :, i] = data[:, i] @ data[:, i + 1 :]
        corr[i, i + 1 :] = corr[i + 1 :, i]
    return corr


@dace.program
def covariance(data: dace.float64[N, M]):
    mean = np.mean(data, axis=0)
    data[:] = data - mean
    cov = np.zeros((M, M), np.float64)
    for i in range(M):
        cov[i:M, i] = data[:, i] @ data[:, i:M]
        cov[i:M, i] /= N - 1.0
        cov[i, i:M] = cov[i:M, i]
    return cov


@dace.program
def floyd_warshall(path: dace.int32[N, N]):
    for k in range(N):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def bases(rng):
    return rng.integers(0, 4, BASES).astype(np.int32)


@dace.program
def nussinov(seq: dace.int32[BASES]):
    table = np.zeros((BASES, BASES), np.int32)
    for i in range(BASES - 1, -1, -1):
        for j in range(i + 1, BASES):
            table[i, j] = np.maximum(table[i, j], table[i, j - 1])
            if i + 1 < BASES:
                table[i, j] = np.maximum(table[i, j], table[i + 1, j])
                if i < j - 1:
                    pair = np.int32(seq[i] + seq[j] == 3)
                    table[i, j] = np.maximum(table[i, j], table[i + 1, j - 1] + pair)
                else:
                    table[i, j] = np.maximum(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = np.maximum(table[i, j], table[i, k] + table[k + 1, j])
    return table


SAMPLES, BINS = 200, 10


def radii(rng):
    return rng.random(SAMPLES)


@dace.program
def azimint_naive(data: dace.float64[SAMPLES], radius: dace.float64[SAMPLES]):
    rmax = np.amax(radius)
    res = np.zeros((BINS,), np.float64)
    for i in range(BINS):
        r1 = rmax * i / BINS
        r2 = rmax * (i + 1) / BINS
        mask = np.logical_and((r1 <= radius), (radius < r2))
        on_values = np.float64(0)
        total = np.int64(0)
        for j in dace.map[0:SAMPLES]:
            if mask[j]:
                on_values += data[j]
                total += 1
        res[i] = on_values / total
    return res


def azimint_reference(data, radius):
    edges = radius.max() * np.arange(BINS + 1) / BINS
    masks = [(lo <= radius) & (radius < hi) for lo, hi in itertools.pairwise(edges)]
    return np.array([data[mask].mean() for mask in masks])


@dace.program
def azimint_hist(data: dace.float64[SAMPLES], radius: dace.float64[SAMPLES]):
    rmin = np.amin(radius)
    rmax = np.amax(radius)
    counts = np.zeros((BINS,), np.float64)
    sums = np.zeros((BINS,), np.float64)
    for i in dace.map[0:SAMPLES]:
        position = min(int(BINS * (radius[i] - rmin) / (rmax - rmin)), BINS - 1)
        counts[position] += 1.0
        sums[position] += data[i]
    return sums / counts


def hist_reference(data, radius):
    counts = np.histogram(radius, BINS)[0]
    sums = np.histogram(radius, BINS, weights=data)[0]
    return sums / counts


KERNELS = [
    kernel(
        correlation,
        {"data": "__i0 __i1", "data_slice_matmul_data_slice": "j"},
        by_dace={"data": "__i0 __i1", "corr_slice": "__i0"},
    ),
    kernel(
        covariance,
        {"data": "__i0 __i1", "data_slice_matmul_data_slice": "j"},
        by_dace={"data": "__i0 __i1", "cov_slice": "__i0"},
    ),
    kernel(floyd_warshall, {"path": "__i0 __i1"}),
    kernel(nussinov, {"__return": "__i0 __i1"}, seq=bases),
    kernel(
        azimint_naive,
        {"mask": "__i0", "sum_on_values": "a", "sum_total": "a"},
        azimint_reference,
        by_dace={"mask": "__i0", "on_values.2": "j"},
        radius=radii,
    ),
    kernel(azimint_hist, {"counts.2": "i"}, hist_reference, radius=radii),
]
