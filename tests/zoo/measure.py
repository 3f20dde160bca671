"""Measures the models of the zoo on ranks by presets, for the table of `docs/torch.md`.

In `tests`: `mpiexec -n 2 python -m zoo.measure --seconds 240 ../benchmarks/zoo.json llama vit` runs
the forward pass and the training step of each model by `data_parallel` and `megatron`, beside
torch. What is in the file already is not run again, and none is begun behind the seconds, so that
a long table is made in pieces. Each run has a cache of its own, in which nothing is but what
`DISTSPMD_SHARED_CACHE` names: seconds are those of a first start.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from mpi4py import MPI

from distspmd.errors import DistSPMDError
from zoo.registry import build, named
from zoo.run_zoo import run

RUNS = ("megatron forward", "data_parallel step", "megatron step")


def findings(path: Path) -> dict[str, dict[str, Any]]:
    """What the file says, by model and then by run."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, name: str, run: str, finding: dict[str, Any]) -> None:
    """Enter one run into the file, whose rows are lines."""
    table = findings(path)
    table.setdefault(name, {})[run] = finding
    rows = (f"  {json.dumps(name)}: {json.dumps(table[name])}" for name in table)
    written = path.with_suffix(".written")
    written.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    written.replace(path)


def measured(name: str, preset: str, what: str, comm: Any) -> dict[str, Any]:
    """What one run found, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DISTSPMD_CACHE"] = comm.bcast(folder)
        try:
            said, judged, taken = run(what, preset, build(name), comm)
        except DistSPMDError as problem:
            return {"found": "refused", "said": str(problem)}
        comm.barrier()
    clock, processor = (round(seconds, 1) for seconds in taken)
    found: dict[str, Any] = {"found": "wrong", "said": said} if said else {"found": "right"}
    found |= {"steps": judged} if judged else {}
    return {**found, "clock": clock, "processor": processor}


def main() -> None:
    """Run what is missing in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    comm, begin = MPI.COMM_WORLD, time.monotonic()
    for name, label in itertools.product(given.names or named(), RUNS):
        is_known = label in findings(given.results).get(name, {})
        if comm.bcast((is_known, time.monotonic() - begin > given.seconds)) != (False, False):
            continue
        if comm.rank == 0:  # this stays where a crash ends the ranks
            write(given.results, name, label, {"found": "crashed"})
        finding = measured(name, *label.split(), comm)
        if comm.rank == 0:
            write(given.results, name, label, finding)
            print(f"{time.monotonic() - begin:.0f} {name} {label}: {finding}", flush=True)


if __name__ == "__main__":
    main()
