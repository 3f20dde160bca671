"""All ranks run the cases that a file names; rank 0 writes lines of JSON: each starts and ends.

A case that does not end in its time ends the process, or all ranks, with a trace of where they
stood; :mod:`from_numpy.sweep` goes on with the next.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from from_numpy.collections_of_cases import collection
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, on_ranks


def main(file: str, named: str, which: str, mode: str, limit: str, dimension: str) -> None:
    """Run cases and append what becomes of them to a file.

    Args:
        file: that is written, of JSON lines.
        named: a file with names of cases.
        which: the collection that has them.
        mode: "paper", or numbers of ranks with commas, of which the largest were started.
        limit: seconds for each case.
        dimension: of each space, that is split.
    """
    warnings.simplefilter("ignore")
    known = collection(which)
    cases = [known[name] for name in Path(named).read_text().splitlines()]
    if mode == "paper":
        _on_paper(Path(file), cases, float(limit), int(dimension))
    else:
        _on_ranks(Path(file), cases, [*map(int, mode.split(","))], float(limit), int(dimension))


def _on_paper(file: Path, cases: Iterable[Case], limit: float, dimension: int) -> None:
    for case in cases:
        _write(file, starts=case.name)
        faulthandler.dump_traceback_later(limit, exit=True)
        _write(file, ends=on_paper(case, dimension=dimension).as_dict())
    faulthandler.cancel_dump_traceback_later()


def _on_ranks(
    file: Path, cases: Iterable[Case], counts: list[int], limit: float, dimension: int
) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comms = {ranks: world.Split(0 if world.rank < ranks else 1) for ranks in counts}
    for case in cases:
        if world.rank == 0:
            _write(file, starts=case.name)
        faulthandler.dump_traceback_later(limit, exit=True)
        outcome = on_ranks(case, comms, world, dimension)
        if outcome:
            _write(file, ends=outcome.as_dict())
    faulthandler.cancel_dump_traceback_later()


def _write(file: Path, **fields: Any) -> None:
    with file.open("a") as out:
        out.write(json.dumps(fields) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
