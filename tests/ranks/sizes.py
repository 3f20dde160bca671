"""One program of symbolic sizes, called with several; mistakes in sizes reach all ranks."""

from dataclasses import replace
from functools import partial

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, ScheduleError
from distspmd.execution import symbolic_program
from distspmd.plans.heuristics import HEURISTICS

N, M, K = (dace.symbol(name) for name in "NMK")
comm = MPI.COMM_WORLD


@dace.program
def smoothed(x: dace.float64[N, M + 1], w: dace.float64[2 * M], s: dace.float64):
    y = np.zeros((N,), np.float64)
    for _ in range(3):
        for i in dace.map[1 : N - 1]:
            y[i] = y[i] + (x[i - 1, 0] + x[i + 1, M]) * s / N
    return y, np.sum(x, axis=0), np.sum(w)


@dace.program
def powers(x: dace.float32[N]):
    for _ in range(K):
        x[:] = x * 2


def numpy_smoothed(x, w, s):
    y = np.zeros(len(x))
    y[1:-1] = 3 * (x[:-2, 0] + x[2:, -1]) * s / len(x)
    return y, x.sum(axis=0), w.sum()


def arguments(n: int, m: int) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(n + m)
    return rng.random((n, m + 1)), rng.random(2 * m), 0.5


def called(program, n: int, m: int) -> None:
    given = arguments(n, m)
    results = program(*given) if comm.rank == 0 else program()
    if comm.rank == 0:
        for found, wanted in zip(results, numpy_smoothed(*given), strict=True):
            np.testing.assert_allclose(found.reshape(np.shape(wanted)), wanted, 1e-12)


def expect(text: str, call, kind=ArgumentError) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert text in str(raised.value), str(raised.value)
    comm.Barrier()


sdfg = smoothed.to_sdfg() if comm.rank == 0 else None
if sdfg:
    sdfg = lowering = distspmd.lower(sdfg, {"__return_0.2": (3,), "__return_1": (1, 3)})
    print(lowering)
symbolic_program.HEURISTICS = replace(HEURISTICS, programs_kept=2)
with distspmd.compile(sdfg, comm) as program:
    for n, m in [(10, 4), (11, 1), (10, 4), (3, 7), (11, 1)]:
        called(program, n, m)
    made = list(program.seconds)
    assert made == [(("M", 4), ("N", 10)), (("M", 1), ("N", 11)), (("M", 7), ("N", 3))]
    x, w, s = arguments(10, 4)
    mistakes = [
        (
            {"x": x, "w": w[:7], "s": s},
            "the shapes contradict each other: dimension 0 of 'w' has 7, but 2*M is 8: M is 4, as "
            "dimension 1 of 'x' has 5.",
        ),
        ({"x": x[0], "w": w, "s": s}, "the shape [N, M + 1], but it has [5], 1 dimensions for 2"),
        ({"w": w, "s": s}, "the size N is open, because the argument 'x' of the shape [N, M + 1]"),
        ({"x": x, "w": w, "s": s, "N": 9}, "has 10, but N is 9: N is 9, as it is given"),
        ({"x": x, "w": w, "s": s, "N": 2.5}, "the size N is 2.5; pass an integer"),
        ({"x": x.astype("f"), "w": w, "s": s}, "Pass x.astype('float64')"),
    ]
    for given, text in mistakes:
        expect(text, partial(program, **(given if comm.rank == 0 else {})))
    assert program.at(N=11, M=1).lowering.ranks == 3
    received = sum(counted.received_bytes for _, counted in program.statistics())
    assert comm.allreduce(received) > 0
    program.reset_statistics()
    assert not any(counted.calls for _, counted in program.statistics())

sdfg = powers.to_sdfg()
sdfg = distspmd.lower(sdfg, {"x": (3,)}, arguments={"x": "distributed"})
with distspmd.compile(sdfg, comm) as program:
    whole = np.arange(7, dtype=np.float32)
    mine = program.tile("x", whole, N=7, K=2)
    assert program.layout("x", N=7, K=2).box(1) == ((3, 6),)
    program(x=mine, N=7, K=2)
    np.testing.assert_array_equal(mine, 4 * program.tile("x", whole, N=7, K=2))

sdfg = powers.to_sdfg()
sdfg = distspmd.lower(sdfg, {"x": (2,)})
with distspmd.compile(sdfg, comm) as program:
    for size, times in [(5, 3), (2, 1)]:
        values = np.arange(size, dtype=np.float32)
        program(x=values, K=times) if comm.rank == 0 else program()
        assert comm.rank != 0 or np.array_equal(values, np.arange(size) * 2.0**times)
    expect(
        "no shape of an argument determines the size K; pass K=<number>",
        partial(program, *([np.ones(5, "f")] if comm.rank == 0 else [])),
    )

sdfg = powers.to_sdfg()
sdfg = distspmd.lower(sdfg, {"x": (comm.size + 1,)})
expect("Start at least", lambda: distspmd.compile(sdfg, comm), ScheduleError)
if comm.rank == 0:
    print("all sizes ran")
