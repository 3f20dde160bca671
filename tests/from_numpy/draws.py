"""Random numbers on 1 rank and on all, on two grids: the same, and well distributed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program

COMM = MPI.COMM_WORLD
MANY = 4000


def drawn(x: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    a = rng.random((5, 7)) + x
    t = np.zeros((4, 5))
    for k in range(4):
        t[k] = rng.uniform(-1, 1, 5)
        if t[k, 0] > 0:
            t[k] += rng.integers(10, 20, 5)
    np.random.seed(3)  # noqa: NPY002
    d = np.random.rand(3) + np.random.randn(3)  # noqa: NPY002
    other = np.random.default_rng(seed)
    again = other.random((5, 7)) + x
    few = rng.random(4, dtype=np.float32)
    order = rng.permutation(9)
    rng.shuffle(t)
    return (
        a,
        t,
        d,
        again,
        few,
        order,
        rng.choice(x, 4),
        rng.random(),
        rng.choice(9, 5, replace=False),
    )


def distributed(x: Any) -> Any:
    rng = np.random.default_rng(11)
    n = len(x)
    p = np.array([0.1, 0.2, 0.7])
    return (
        rng.random(n),
        rng.uniform(2.0, 5.0, n),
        rng.normal(1.0, 2.0, n),
        rng.standard_normal(n),
        rng.integers(0, 6, n),
        rng.integers(1, 6, n, endpoint=True),
        rng.exponential(2.0, n),
        rng.laplace(1.0, 2.0, n),
        rng.logistic(0.0, 1.0, n),
        rng.gumbel(0.0, 1.0, n),
        rng.rayleigh(1.0, n),
        rng.weibull(2.0, n),
        rng.lognormal(0.0, 0.5, n),
        rng.geometric(0.25, n),
        rng.choice(3, n, p=p),
        rng.power(2.0, n),
    )


def rejected(x: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    first, second = rng.spawn(2)
    return (
        rng.poisson(np.abs(x) * 9, (3, 7)),
        rng.binomial(x.astype(int), 0.4),
        rng.gamma(x + 0.1, 2.0),
        rng.dirichlet([0.5, 1.0, 2.0], 4),
        rng.multinomial(20, [0.2, 0.3, 0.5], (2, 2)),
        rng.multivariate_normal([1.0, -2.0], [[2.0, 0.6], [0.6, 1.0]], 3),
        rng.vonmises(0.5, x),
        rng.hypergeometric(5, 6, 4, 7),
        rng.choice(5, 3, replace=False, p=[0.1, 0.2, 0.3, 0.2, 0.2]),
        rng.choice(np.outer(x, x), 2, axis=1),
        rng.choice(9, (2, 4), replace=False),
        rng.permuted(np.outer(x, x), axis=1),
        first.random(3),
        second.random(3),
    )


_PI = math.pi
MOMENTS = [
    (0.5, 1 / 12),
    (3.5, 9 / 12),
    (1.0, 4.0),
    (0.0, 1.0),
    (2.5, 35 / 12),
    (3.5, 35 / 12),
    (2.0, 4.0),
    (1.0, 8.0),
    (0.0, _PI**2 / 3),
    (np.euler_gamma, _PI**2 / 6),
    (math.sqrt(_PI / 2), (4 - _PI) / 2),
    (math.gamma(1.5), math.gamma(2) - math.gamma(1.5) ** 2),
    (math.exp(0.125), (math.exp(0.25) - 1) * math.exp(0.25)),
    (4.0, 12.0),
    (1.6, 0.44),
    (2 / 3, 0.5 - 4 / 9),
]
"""Means and variances."""


def results(function: Any, comm: Any, dimension: int, *given: Any) -> Any:
    """What a program gives on a communicator, with its spaces split along a dimension."""
    lowered = None
    if comm.rank == 0:
        sdfg = numpy_program(function, *given)
        split = {}
        for space in distspmd.iteration_spaces(sdfg):
            parts = [1] * len(space.parameters)
            parts[min(dimension, len(parts) - 1)] = comm.size
            split[space.name] = tuple(parts)
        lowered = distspmd.lower(sdfg, split)
    with distspmd.compile(lowered, comm) as program:
        return program(*(given if comm.rank == 0 else ()))


def main() -> None:
    """All comparisons."""
    x = np.arange(7.0)
    alone = COMM.Split(COMM.rank)
    whole = [results(drawn, COMM, d, x, np.int64(5)) for d in (0, 1)]
    wholes = [results(rejected, COMM, d, x, np.int64(5)) for d in (0, 1)]
    many = results(distributed, COMM, 0, np.zeros(MANY))
    if COMM.rank != 0:
        return
    one, other = (results(drawn, alone, 0, x, np.int64(seed)) for seed in (5, 6))
    for found in whole:
        for a, b in zip(one, found, strict=True):
            assert np.array_equal(a, b), (a, b)
    by_rejection = results(rejected, alone, 0, x, np.int64(5))
    for found in wholes:
        for n, (a, b) in enumerate(zip(by_rejection, found, strict=True)):
            rounded = n == 5  # a product of matrices
            assert np.allclose(a, b, 1e-13) if rounded else np.array_equal(a, b), (a, b)
    assert len(set(by_rejection[8])) == 3
    assert len(set(by_rejection[10].ravel())) == 8
    assert by_rejection[4].sum(axis=2).tolist() == [[20, 20], [20, 20]]
    assert not np.array_equal(*by_rejection[-2:])
    a, t, d, again, few, order, chosen, last, places = one
    assert np.array_equal(a, again)
    assert not np.array_equal(a, other[0])
    assert np.array_equal(d, other[2])  # of a seed of its own
    assert len({v % 1 for v in t.ravel()}) == t.size, "each turn of a loop draws anew"
    assert few.dtype == np.float32
    assert (few < 1).all()
    assert np.array_equal(np.sort(order), np.arange(9))
    assert set(chosen) <= set(x)
    assert last < 1
    assert len(set(places)) == 5
    for n, (found, (mean, variance)) in enumerate(zip(many, MOMENTS, strict=True)):
        assert abs(np.mean(found) - mean) < 5 * math.sqrt(variance / MANY), (n, np.mean(found))
        assert abs(np.var(found) / variance - 1) < 0.25, (n, np.var(found), variance)
        assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.08, n
    print("all as drawn", flush=True)


if __name__ == "__main__":
    main()
