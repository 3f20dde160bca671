"""All ranks run the cases that a file names; rank 0 writes lines of JSON: each starts and ends.

A case that does not end in its time ends the process, or all ranks, with a trace of where they
stood; :mod:`from_numpy.sweep` goes on with the next.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from from_numpy.collections_of_cases import collection
from from_numpy.corpus.registry import Case
from from_numpy.following import follow_case
from from_numpy.outcomes import Outcome


def main(
    file: str, named: str, which: str, mode: str, limit: str, dimension: str, record: str
) -> None:
    """Run cases and append what becomes of them to a file.

    Args:
        file: that is written, of JSON lines.
        named: a file with names of cases.
        which: the collection that has them.
        mode: "paper", or numbers of ranks with commas, of which the largest were started.
        limit: seconds for each case.
        dimension: of each space, that is split.
        record: another file, to which outcomes alone are appended.
    """
    warnings.simplefilter("ignore")
    names = Path(named).read_text().splitlines()
    files = Files(Path(file), Path(record))
    if mode == "paper":
        _on_paper(files, _cases(which, names), float(limit), int(dimension))
        return
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    counts = [*map(int, mode.split(","))]
    comms = {ranks: world.Split(0 if world.rank < ranks else 1) for ranks in counts}
    if world.rank == 0:
        _on_ranks(files, _cases(which, names), comms, float(limit), int(dimension))
        return
    for _ in names:  # rank 0 watches the time
        follow_case(comms, world)


def _cases(which: str, names: Iterable[str]) -> list[Case]:
    known = collection(which)
    return [known[name] for name in names]


@dataclass(frozen=True)
class Files:
    """Where it is written which case starts and ends, and what became of it."""

    steps: Path
    record: Path

    def write_start(self, case: Case) -> None:
        _append(self.steps, {"starts": case.name})

    def write_end(self, outcome: Outcome) -> None:
        _append(self.steps, {"ends": outcome.as_dict()})
        _append(self.record, outcome.as_dict())


def _append(file: Path, content: Any) -> None:
    with file.open("a") as out:
        out.write(json.dumps(content) + "\n")


def _on_paper(files: Files, cases: Iterable[Case], limit: float, dimension: int) -> None:
    from from_numpy.harness import on_paper

    for case in cases:
        files.write_start(case)
        faulthandler.dump_traceback_later(limit, exit=True)
        files.write_end(on_paper(case, dimension=dimension))
    faulthandler.cancel_dump_traceback_later()


def _on_ranks(
    files: Files,
    cases: Iterable[Case],
    comms: Mapping[int, Any],
    limit: float,
    dimension: int,
) -> None:
    from mpi4py import MPI

    from from_numpy.harness import on_ranks

    for case in cases:
        files.write_start(case)
        faulthandler.dump_traceback_later(limit, exit=True)
        files.write_end(on_ranks(case, comms, MPI.COMM_WORLD, dimension))
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(*sys.argv[1:])
