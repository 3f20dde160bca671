"""What ranks import that neither parse nor lower: whatever they call, nothing of the compiler."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

import distspmd

if TYPE_CHECKING:
    import dace

comm = MPI.COMM_WORLD
COMPILER = ("dace", "sympy", "networkx", "torch", "distspmd.pipeline", "distspmd.codegen.build")
SCHEDULE = {"hidden": {"i": comm.size}}


def perceptron(x: dace.float64[40, 6], w: dace.float64[6, 5]):
    hidden = x @ w
    return np.maximum(hidden, 0)


@distspmd.program(schedule=SCHEDULE)
def decorated(x, w):
    hidden = x @ w
    return np.maximum(hidden, 0)


def check(step: str) -> None:
    """Ranks beyond the first have imported nothing of the compiler."""
    found = [name for name in COMPILER if name in sys.modules]
    assert comm.rank == 0 or not found, f"after {step}, rank {comm.rank} has imported {found}"


def told(call) -> str:
    """What all ranks are told."""
    try:
        call()
    except distspmd.DistSPMDError as error:
        return str(error).removeprefix("rank 0: ")
    return "nothing"


def lowered(**options):
    """What rank 0 makes."""
    return distspmd.lower(perceptron, SCHEDULE, **options)


check("its imports")
x, w = np.random.default_rng(0).random((40, 6)), np.random.default_rng(1).random((6, 5))
wanted = np.maximum(x @ w, 0)
with distspmd.compile(lowered, comm, arithmetic="strict") as program:
    check("compile")
    found = program(x, w) if comm.rank == 0 else program()
    assert comm.rank != 0 or np.allclose(found, wanted)
    text = told(partial(program, **({"x": x[:9], "w": w} if comm.rank == 0 else {})))
    assert text.startswith("perceptron: the argument 'x' must be float64[40, 6]"), text
    distspmd.explain(program), program.statistics(), str(program.lowering)
    check("calls and mistakes")
kinds = dict.fromkeys(("x", "__return"), "distributed")
with distspmd.compile(lambda: lowered(arguments=kinds), comm, arithmetic="strict") as program:
    mine = {"x": program.tile("x", x)}
    found = program(**mine, **({"w": w} if comm.rank == 0 else {}))
    assert np.allclose(found, program.tile("__return", wanted))
    check("a program with tiles")
for _ in range(2):
    found = decorated(x, w) if comm.rank == 0 else decorated()
    assert comm.rank != 0 or np.allclose(found, wanted)
check("a decorated function")
for call, text in [
    (lambda: distspmd.compile(partial(distspmd.lower, perceptron, {"y": (2,)}), comm), "'y'"),
    (lambda: distspmd.compile(lambda: "a string", comm), "'a string' is not a lowered SDFG"),
    (lambda: distspmd.compile(None, comm), "None is not a lowered SDFG"),
    (partial(decorated, x, w[:3]), "the shapes (40,6) and (3,5) do not fit"),
]:
    assert text in told(call), told(call)
check("refusals")
mesh = distspmd.layouts.Mesh(i=comm.size)
rows = distspmd.layouts.Layout.parse(f"[{-(-40 // comm.size)}{{i}}40, 6]", mesh)
whole = distspmd.layouts.Layout.root((40, 6))
tile = distspmd.redistribute(comm, x if comm.rank == 0 else None, whole, rows, dtype="float64")
part = x[tuple(slice(*ends) for ends in rows.box(comm.rank))]
assert part.size == 0 or np.array_equal(tile, part)
check("a redistribution")
most = max(comm.allgather(len(sys.modules) if comm.rank else 0))
if comm.rank == 0:
    print(f"{most} modules, {len(sys.modules)} on rank 0")
