"""Runs the table of steps, each in processes of its own, and counts what was found.

In `tests`: `python -m zoo.steps.sweep` evaluates all on paper, `python -m zoo.steps.sweep --ranks 2
--preset "megatron(2)" nano_gpt gat` runs two of them on ranks. Each line of `--results` is the
finding of one run; what is in it already is not run again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from conftest import UNOPTIMISED

from distspmd.runtime.launch.mpiexec import launch
from zoo.steps.run_steps import PAPER, outcome
from zoo.steps.table import STEPS

_FORKS = multiprocessing.get_context("fork")
TESTS = Path(__file__).resolve().parent.parent.parent


def run(name: str, how: str, ranks: int, seconds: float) -> dict[str, Any]:
    """The finding of one step."""
    if how == PAPER:
        return in_a_fork(name, seconds)
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    settings = {"PYTHONPATH": path, **UNOPTIMISED}
    arguments = ["-m", "zoo.steps.run_steps", how, name]
    done = launch(arguments, ranks=ranks, timeout=seconds, capture=True, env=settings)
    if done.timed_out:
        return {"name": name, "found": "late", "said": f"over {seconds} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"name"')]
    if lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    said = (done.stdout + done.stderr)[-600:]
    return {"name": name, "found": "foreign", "said": f"crashed: {said}"}


def in_a_fork(name: str, seconds: float) -> dict[str, Any]:
    """The same on paper, in a process that does not have to import torch again."""
    queue = _FORKS.SimpleQueue()
    child = _FORKS.Process(target=lambda: queue.put(outcome(name, PAPER)))
    child.start()
    child.join(seconds)
    if child.is_alive():
        child.kill()
        return {"name": name, "found": "late", "said": f"over {seconds} s"}
    if queue.empty():
        return {"name": name, "found": "foreign", "said": f"crashed: {child.exitcode}"}
    found: dict[str, Any] = queue.get()
    return found


def main() -> None:
    """Run and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--preset", default=PAPER)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    known = (
        given.results.read_text().splitlines() if given.results and given.results.exists() else []
    )
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    findings = {(f["name"], f["how"]): f for f in map(json.loads, known)}
    counts: Counter[str] = Counter()
    for name in given.names or STEPS:
        finding = findings.get((name, given.preset))
        if finding is None:
            finding = {**run(name, given.preset, given.ranks, given.seconds), "how": given.preset}
            if given.results:
                with given.results.open("a") as file:
                    file.write(json.dumps(finding) + "\n")
        counts[finding["found"]] += 1
        said = " ".join(str(finding["said"]).split())[:200]
        print(f"{name}: {finding['found']} ({finding.get('seconds', '?')} s) {said}", flush=True)
    print(", ".join(f"{count} {found}" for found, count in counts.most_common()))


if __name__ == "__main__":
    main()
