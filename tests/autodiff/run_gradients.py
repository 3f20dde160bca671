"""All ranks compute the gradients of programs; rank 0 says what differs from torch."""

from __future__ import annotations

import copy
import sys
import warnings
from typing import Any

import numpy as np
from dace import SDFG
from mpi4py import MPI
from parsed_by_dace import numpy_program

import distspmd
from autodiff.programs import GRADIENTS, Gradients


def check(case: Gradients, parsed: SDFG | None, comm: Any) -> str:
    """What is wrong with a program on some ranks; rank 0 has parsed it."""
    sdfg, arguments = copy.deepcopy(parsed), {}
    if sdfg is not None:
        arguments = case.arguments()
        sdfg = distspmd.lower(sdfg, case.schedule if comm.size > 1 else {}).sdfg
    with distspmd.compile(sdfg, comm) as program:
        before = {name: value.copy() for name, value in arguments.items()}
        found = program(**arguments)
    if comm.rank != 0:
        return ""
    found = found if isinstance(found, tuple) else (found,)
    expected = case.expected(before)
    if case.name == "step":
        found = (*found, arguments["w"])
        expected.append(before["w"] - 0.1 * expected[0])
    distances = [float(np.max(np.abs(a - b))) for a, b in zip(found, expected, strict=True)]
    allowed = 1e-10 if found[0].dtype == np.float64 else 1e-5
    return "" if max(distances) < allowed else f"differs by {distances} on {comm.size}"


def main(step: int) -> None:
    """Check each program of so many, on all ranks."""
    warnings.simplefilter("ignore")
    world = MPI.COMM_WORLD
    for case in GRADIENTS[::step]:
        parsed = numpy_program(case.program) if world.rank == 0 else None
        problem = check(case, parsed, world)
        if world.rank == 0:
            print(f"{case.name}: {problem or 'right'}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
