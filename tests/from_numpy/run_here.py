"""All ranks run the cases of a module, ``CASES``; rank 0 prints what is not right, and how many.

``python run_here.py MODULE [NAME ...]``, with the spaces split along their first dimension.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from from_numpy.following import follow_case
from from_numpy.outcomes import RIGHT


def main(module: str, *names: str) -> None:
    """Run them.

    Args:
        module: that has the cases.
        names: of those that run; all, if there are none.
    """
    warnings.simplefilter("ignore")
    world = MPI.COMM_WORLD
    if world.rank != 0:
        for _ in range(world.bcast(None)):
            follow_case({world.size: world}, world)
        return
    from from_numpy.harness import on_ranks

    cases = [c for c in importlib.import_module(module).CASES if not names or c.name in names]
    right = 0
    world.bcast(len(cases))
    for case in cases:
        found = on_ranks(case, {world.size: world}, world)
        right += found.kind == RIGHT
        if found.kind != RIGHT or found.reason:
            print(case.name, found.kind, found.stage, found.reason, flush=True)
    print(f"{right} of {len(cases)} right", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
