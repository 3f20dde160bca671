"""Arguments and results that the caller holds on rank 0, on every rank, or in tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, ScheduleError

if TYPE_CHECKING:
    import dace

comm = MPI.COMM_WORLD
M, N = 11, 7


def scaled(x: dace.float64[M, N], w: dace.float32[N], s: dace.float64):
    y = x * s + w
    return y, np.sum(x)


def smoothed(x: dace.float64[M, N], y: dace.float64[M, N]):
    for _t in range(3):
        y[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        x[1:-1, 1:-1] = y[1:-1, 1:-1] * 0.25


def edges_stay(x: dace.float64[M]):
    for i in distspmd.map[2:9]:
        x[i] = 2 * x[i]


def run(program, schedule, kinds, arguments):
    """Call with what each rank holds; compare all that each rank has afterwards with NumPy."""
    wanted = {name: np.array(value) for name, value in arguments.items()}
    results = program(**wanted)
    results = results if isinstance(results, tuple) else () if results is None else (results,)
    with distspmd.compile(
        lambda: distspmd.lower(program, schedule, arguments=kinds), comm
    ) as compiled:
        lowering = compiled.lowering
        for memlet in lowering.memlets:
            distspmd.verify(memlet.solution.plan)
        mine = {
            name: np.array(value)
            if kinds.get(name) == "replicated"
            else compiled.tile(name, value)
            if kinds.get(name) == "distributed"
            else np.array(value)
            for name, value in arguments.items()
            if comm.rank == 0 or name in kinds
        }
        found = compiled(**mine)
        for name, value in mine.items():
            expected = compiled.tile(name, wanted[name]) if np.ndim(wanted[name]) else wanted[name]
            if kinds.get(name) == "replicated" and comm.rank >= lowering.ranks:
                continue
            np.testing.assert_allclose(value, expected, err_msg=f"{name} {kinds}")
        names = (
            ["__return"] if len(results) == 1 else [f"__return_{k}" for k in range(len(results))]
        )
        found = found if isinstance(found, tuple) else (found,) * len(results)
        for name, result, value in zip(names, results, found, strict=True):
            if name in kinds or comm.rank == 0:
                expected = compiled.tile(name, np.reshape(result, compiled.layout(name).extents))
                np.testing.assert_allclose(np.reshape(value, expected.shape), expected)
            else:
                assert isinstance(value, distspmd.runtime.MissingResult)
    return lowering


rng = np.random.default_rng(0)
x, y = rng.random((M, N)), rng.random((M, N))
w, s = rng.random(N).astype(np.float32), np.float64(3)
n = comm.size
rows = {"__return_0": (n, 1)}
for kinds in (
    {},
    {"x": "distributed", "__return_0": "distributed"},
    {"x": "replicated", "w": "replicated", "s": "replicated", "__return_1": "replicated"},
    {"x": "distributed", "w": "replicated", "__return_0": "replicated"},
):
    lowering = run(scaled, rows, kinds, {"x": x, "w": w, "s": s})
    moved = {m.data for m in lowering.memlets if any(m.solution.plan.received(r) for r in range(n))}
    held = {name for name, kind in kinds.items() if kind == "distributed"} | (
        {"w", "s"} & kinds.keys()
    )
    assert not moved & held, (kinds, moved)
    in_place = {name for name, kind in kinds.items() if kind == "distributed"}
    assert not in_place & {m.data for m in lowering.memlets}  # not even a copy
for kinds in (
    {"x": "distributed", "y": "distributed"},
    {"x": "replicated", "y": "distributed"},
    {"x": "distributed"},
):
    run(smoothed, {"y": (n, 1)}, kinds, {"x": x, "y": y})
for kinds in ({}, {"x": "replicated"}, {"x": "distributed"}):
    run(edges_stay, {"x": (n,)}, kinds, {"x": rng.random(M)})

with pytest.raises(ScheduleError, match=r"names 'z'.*neither takes nor returns"):
    distspmd.compile(lambda: distspmd.lower(edges_stay, {}, arguments={"z": "root"}), comm)
with pytest.raises(ScheduleError, match=r"'split'; write one of 'root', 'replicated'"):
    distspmd.compile(lambda: distspmd.lower(edges_stay, {}, arguments={"x": "split"}), comm)
with distspmd.compile(
    lambda: distspmd.lower(edges_stay, {"x": (n,)}, arguments={"x": "distributed"}), comm
) as compiled:
    with pytest.raises(ArgumentError, match=r"must be float64\[\d+\] on rank \d+, its part of"):
        compiled(x=np.zeros(M + 1))
    with pytest.raises(ArgumentError, match=r"to cut a tile from has \[3\]"):
        compiled.tile("x", np.zeros(3))
    with pytest.raises(ArgumentError, match="missing on rank"):
        compiled()
if comm.rank == 0:
    print("held as asked")
