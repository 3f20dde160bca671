"""All ranks run the named cases; rank 0 writes a line of JSON for each into a file."""

import json
import sys
import warnings
from pathlib import Path

from lowering.harness import ahead, outcome, prepared
from lowering.programs import CASES


def main(file: str, *names: str) -> None:
    from mpi4py import MPI

    warnings.simplefilter("ignore")

    def write(**fields: str) -> None:
        with Path(file).open("a") as out:
            out.write(json.dumps(fields) + "\n")

    selected = [case for case in CASES if case.ranks == MPI.COMM_WORLD.size and case.name in names]
    for case, ready, comm in ahead(prepared, selected, MPI.COMM_WORLD):
        if ready:
            write(starts=case.name)
        problem = outcome(ready, comm)
        if ready:
            write(ends=case.name, problem=problem)


if __name__ == "__main__":
    main(*sys.argv[1:])
