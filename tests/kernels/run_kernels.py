"""All ranks run the named kernels; rank 0 writes a line of JSON for each into a file."""

import copy
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lowering.harness import check

import distspmd
from distspmd.codegen.build import build
from distspmd.lowering import ATTRIBUTE
from kernels import KERNELS
from kernels.kernel import Kernel


def attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """What the work gives, and what a user would be told where it fails."""
    try:
        return work(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def build_ahead(kernels: list[Kernel], comm: Any, builders: int) -> None:
    """Compile the kernels into the cache, some ranks at the same time."""
    if comm.rank >= builders:
        return
    for kernel in kernels[comm.rank :: builders]:
        sdfg, _ = attempt(kernel.case(comm.size).sdfg)
        if sdfg is not None:  # a failure comes again, and is reported, when the kernel runs
            attempt(lambda lowered=sdfg: build(lowered, getattr(lowered, ATTRIBUTE), comm.size))


def run(kernel: Kernel, comm: Any) -> dict[str, Any]:
    """Lower, compile and run a kernel on all ranks; its problem, its bytes and its solvers."""
    case = kernel.case(comm.size)
    sdfg, data, problem = None, (), ""
    if comm.rank == 0:
        sdfg, problem = attempt(case.sdfg)
        if not problem:
            given = case.arguments(1)
            data = (given, *case.expected(copy.deepcopy(given)))
    problem = comm.bcast(problem)
    if problem:
        return {"problem": problem}
    program, problem = attempt(lambda: distspmd.compile(sdfg, comm))
    if problem:
        return {"problem": problem}
    with program:
        found = comm.allgather(check(program, data, comm))
        received = [(m, s.received_bytes) for m, s in program.statistics()]
        arguments = sum(n for m, n in received if m.from_caller or m.to_caller)
        between = sum(n for _, n in received) - arguments
    return {
        "problem": "; ".join(filter(None, found)),
        "arguments": comm.allreduce(arguments),
        "between": comm.allreduce(between),
        "solvers": sorted({m.solution.plan.solver for m, _ in received}),
    }


def main(file: str, *names: str) -> None:
    from mpi4py import MPI

    from distspmd.runtime.agreement import wait_quietly

    comm = MPI.COMM_WORLD
    warnings.simplefilter("ignore")
    selected = [kernel for kernel in KERNELS if not names or kernel.name in names]
    build_ahead(selected, comm, builders=min(2, comm.size))
    wait_quietly(comm)
    for kernel in selected:
        if comm.rank == 0:
            print(f"{kernel.name} on {comm.size}", flush=True)
        result = {"kernel": kernel.name, "ranks": comm.size, **run(kernel, comm)}
        if comm.rank == 0:
            with Path(file).open("a") as out:
                out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
