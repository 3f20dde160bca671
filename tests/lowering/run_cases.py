"""All ranks run the named cases; rank 0 writes a line of JSON for each into a file."""

import contextlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from distspmd.codegen.build import build
from distspmd.lowering import ATTRIBUTE
from lowering.harness import Case, outcome
from lowering.programs import CASES


def build_ahead(cases: list[Case], comm: Any, builders: int) -> None:
    """Compile the cases into the cache, some ranks at the same time."""
    if comm.rank >= builders:
        return
    for case in cases[comm.rank :: builders]:
        with contextlib.suppress(Exception):  # it comes again, and is reported, when the case runs
            sdfg = case.sdfg()
            build(sdfg, getattr(sdfg, ATTRIBUTE), comm.size)


def main(file: str, *names: str) -> None:
    from mpi4py import MPI

    from distspmd.runtime.agreement import wait_quietly

    comm = MPI.COMM_WORLD
    warnings.simplefilter("ignore")
    selected = [case for case in CASES if case.ranks == comm.size and case.name in names]
    build_ahead(selected, comm, builders=min(2, comm.size))
    wait_quietly(comm)
    for case in selected:
        if comm.rank == 0:
            with Path(file).open("a") as out:
                out.write(json.dumps({"starts": case.name}) + "\n")
        problem = outcome(case, comm)
        if comm.rank == 0:
            with Path(file).open("a") as out:
                out.write(json.dumps({"ends": case.name, "problem": problem}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
