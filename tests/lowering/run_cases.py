"""All ranks run the named cases; rank 0 writes a line of JSON for each into a file."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from lowering.running import Prepared, ahead, outcome

if TYPE_CHECKING:
    from lowering.harness import Case


def main(file: str, *names: str) -> None:
    from mpi4py import MPI

    warnings.simplefilter("ignore")
    world = MPI.COMM_WORLD

    def write(**fields: str) -> None:
        with Path(file).open("a") as out:
            out.write(json.dumps(fields) + "\n")

    def selected() -> list[Case]:
        from lowering.programs import CASES

        return [case for case in CASES if case.ranks == world.size and case.name in names]

    for ready, comm in ahead(prepare, selected, world):
        if ready:
            write(starts=ready[0].name)
        problem = outcome(ready and ready[1], comm)
        if ready:
            write(ends=ready[0].name, problem=problem)


def prepare(case: Case) -> Prepared:
    from lowering.harness import prepared

    return prepared(case)


if __name__ == "__main__":
    main(*sys.argv[1:])
