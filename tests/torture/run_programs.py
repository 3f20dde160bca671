"""All ranks run random programs and compare with NumPy; rank 0 writes a line of JSON for each.

Usage: run_programs.py FILE FOLDER SEED...

A seed may have options behind it, which shrinking makes: ``17/drop=2,4/only=v3``.
"""

import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lowering.running import Prepared, ahead, outcome

import distspmd
from distspmd.errors import DistSPMDError
from torture.programs import Program, count_of, random_program, random_schedule


def prepare(program: Program, ranks: int, folder: Path) -> tuple[Prepared, str]:
    """A program lowered and compiled, with data for two calls; and what became of it."""
    import copy

    import numpy as np
    from lowering.on_paper import problems

    from distspmd.execution.builds import build_for
    from distspmd.frontend import numpy_program

    function = program.written(folder)
    try:
        frontend = "numpy" if program.seed % 4 else "dace"
        sdfg = numpy_program(function, frontend=frontend)
        spaces = {s.name: count_of(s.ranges) for s in distspmd.iteration_spaces(sdfg)}
        schedule = random_schedule(program.seed, ranks, spaces)
        lowering = distspmd.lower(sdfg, schedule)
        found = "; ".join(problems(lowering))
        if found:
            return Prepared(None, [], found), "wrong"
        build_for(lowering.sdfg, ranks, device=os.environ.get("DISTSPMD_DEVICE"))
    except DistSPMDError as error:
        return Prepared(None, [], f"{type(error).__name__}: {error}"), "refused"
    except Exception as error:
        return Prepared(None, [], f"{type(error).__name__}: {error}"), "foreign error"
    data: list[tuple[dict[str, Any], Any, Mapping[str, Any]]] = []
    for seed in (1, 2):
        given = program.drawn(seed)
        after = copy.deepcopy(given)
        with np.errstate(all="ignore"):
            data.append((given, function(**after), after))
    return Prepared(lowering.sdfg, [(a, r, dict(b)) for a, r, b in data]), "right"


def main(file: str, folder: str, *seeds: str) -> None:
    from mpi4py import MPI

    warnings.simplefilter("ignore")
    world = MPI.COMM_WORLD

    def write(**fields: Any) -> None:
        with Path(file).open("a") as out:
            out.write(json.dumps(fields) + "\n")

    def work(item: tuple[str, Program]) -> tuple[Prepared, str]:
        at = Path(folder) / f"rank{world.rank}"
        at.mkdir(exist_ok=True)
        return prepare(item[1], world.size, at)

    def items() -> list[tuple[str, Program]]:
        return [(seed, of_text(seed)) for seed in seeds]

    for ready, comm in ahead(work, items, world):
        if ready:
            (seed, _), (prepared, became) = ready
            write(seed=seed, became="started")
        found = outcome(ready and prepared, comm)
        if ready:
            if found and became == "right":
                became = "wrong"
            write(seed=seed, became=became, message=found)


def of_text(text: str) -> Program:
    """The program of a number, made smaller as the options say."""
    number, *steps = text.split("/")
    program = random_program(int(number))
    for step in steps:
        program = list(program.smaller())[int(step)]
    return program


if __name__ == "__main__":
    main(*sys.argv[1:])
