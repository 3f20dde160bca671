"""All ranks run the named kernels; rank 0 writes a line of JSON for each into a file."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distspmd
from lowering.running import Prepared, ahead, check

if TYPE_CHECKING:
    from kernels.kernel import Kernel


def run(ready: Prepared | None, comm: Any) -> dict[str, Any]:
    """Run a kernel that rank 0 has prepared on all ranks; its problem, bytes and solvers."""
    problem = comm.bcast(ready and ready.problem)
    if problem:
        return {"problem": problem}
    with distspmd.compile(ready and ready.sdfg, comm) as program:
        found = comm.allgather(check(program, ready and ready.data[0], comm))
        received = [(m, s.received_bytes) for m, s in program.statistics()]
        arguments = sum(n for m, n in received if m.from_caller or m.to_caller)
        between = sum(n for _, n in received) - arguments
        share = 1 - program.lowering.whole
    return {
        "problem": "; ".join(filter(None, found)),
        "arguments": comm.allreduce(arguments),
        "between": comm.allreduce(between),
        "share": share,
        "solvers": sorted({m.solution.plan.solver for m, _ in received}),
    }


def main(file: str, *names: str) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    warnings.simplefilter("ignore")

    def selected() -> list[Kernel]:
        from kernels import KERNELS

        return [kernel for kernel in KERNELS if not names or kernel.name in names]

    def prepare(kernel: Kernel) -> Prepared:
        from lowering.harness import prepared

        return prepared(kernel.case(world.size), 1)

    for ready, comm in ahead(prepare, selected, world):
        if ready:
            print(f"{ready[0].name} on {comm.size}", flush=True)
        found = run(ready and ready[1], comm)
        if ready:
            result = {"kernel": ready[0].name, "ranks": comm.size, **found}
            with Path(file).open("a") as out:
                out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
