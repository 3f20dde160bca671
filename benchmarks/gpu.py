"""Programs on devices, beside PyTorch (eager and compiled) and JAX where these are installed.

``python benchmarks/gpu.py [program ...] [--device cuda|emulated] [--ranks 1 2] [--small]
[--json FILE]`` starts its own ranks, once for each program, so that one that fails leaves the
others alone. Arguments lie in the memory of the device; a time is the best of a call that is waited
for, of the slowest rank. Each program is compared with NumPy at small sizes before it is timed;
with ``--check`` that is all, for twelve of them. Rates are of the bytes that any way to compute it
moves, or of its operations; they stand beside the rate of a copy on the device. What is not here,
is said, and is no error: on a machine without a GPU ``--device emulated --small`` runs all of it,
the others on the host, and its times say nothing. The file is written again with each row.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_peers import Peers
from gpu_programs import CHECKED, COPIES, EVERY, LINE, PROGRAMS, TRAINING

from distspmd.errors import DeviceError
from distspmd.runtime.compilers.cuda_toolkit import find_driver
from distspmd.runtime.devices.kinds import check_can_run
from distspmd.runtime.launch.mpiexec import launch
from distspmd.tables import Table, as_text

Row = dict[str, Any]
RANKS = Path(__file__).resolve().with_name("gpu_ranks.py")
_SHOWN_LINES = 30


@dataclass
class Found:
    """What is known so far, which a file has, too."""

    device: str
    file: Path | None
    rows: list[Row] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, rows: list[Row] = [], missing: list[str] = [], failed: list[str] = []) -> None:  # noqa: B006
        """Keep more, and write all of it."""
        self.rows += rows
        self.missing += missing
        self.failed += failed
        if self.file is not None:
            told = {"device": self.device, "driver": str(find_driver()), "rows": self.rows}
            told |= {"missing": self.missing, "failed": self.failed}
            self.file.write_text(json.dumps(told, indent=1) + "\n")

    def launch(self, name: str, ranks: int, passed: list[str], limit: float) -> None:
        """One program on ranks, which are ended after so many seconds."""
        done = launch([RANKS, name, *passed], ranks=ranks, capture=True, timeout=limit)
        lines = done.stdout.splitlines()
        rows = [json.loads(line.removeprefix(LINE)) for line in lines if line.startswith(LINE)]
        if done.returncode == 0:
            self.add(rows)
            return
        printed = [line for line in lines if not line.startswith(LINE)]
        last = "\n".join([*printed, *done.stderr.splitlines()][-_SHOWN_LINES:])
        self.add(rows, failed=[f"{name}, {ranks} rank(s), ended with {done.returncode}:\n{last}"])


def table(rows: list[Row]) -> str:
    """All rows, with rates beside that of a copy on the device."""
    copies = [row for row in rows if row["program"] == "copy on the device"]
    fastest = max((row["bytes"] / row["seconds"] for row in copies), default=0.0)
    lines = []
    for row in rows:
        if row["seconds"] is None:
            lines.append((row["program"], row["by"], row["arithmetic"], "right", "", "", ""))
            continue
        rate = row.get("bytes", 0) / row["seconds"]
        speed = row.get("operations", 0) / row["seconds"]
        lines.append(
            (
                *(row["program"], row["by"], row["arithmetic"], f"{row['seconds'] * 1e3:.4g}"),
                f"{rate / 1e9:.4g}" if rate else "",
                f"{rate / fastest:.2f}" if rate and fastest else "",
                f"{speed / 1e12:.4g}" if speed else "",
            )
        )
    head = ("program", "by", "arithmetic", "ms", "GB/s", "of a copy", "TFLOP/s")
    return as_text([Table("", head, tuple(lines))])


def measured(options: argparse.Namespace) -> Found:
    """All programs, each on ranks and by the others."""
    found = Found(options.device, options.json)
    names = options.programs or [*(CHECKED if options.check else (*PROGRAMS, TRAINING))]
    if TRAINING in names and importlib.util.find_spec("torch") is None:
        names.remove(TRAINING)
        found.add(missing=["a training step of a GPT: PyTorch is not installed"])
    why = ""
    try:
        check_can_run(options.device, compiles=True)
    except DeviceError as problem:
        why = str(problem)
        found.add(missing=[f"device {options.device!r}: {why}"])
    passed = ["--device", options.device, "--repeat", str(options.repeat)]
    passed += ["--small"] * options.small + ["--check"] * options.check
    peers = Peers(options.device, options.small, options.repeat)
    of_peers = not (options.check or options.no_peers)
    if of_peers:  # else they are not even imported
        found.add(missing=[f"{peer}: {reason}" for peer, reason in peers.absent.items()])
    copied = [] if options.check or options.programs else [COPIES]
    for name in [*copied, *names]:
        for ranks in [] if why else options.ranks:
            found.launch(name, ranks, passed, options.limit)
        if of_peers and name != COPIES:
            found.add(*peers.rows(name))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="program", choices=[*EVERY, TRAINING, []])
    parser.add_argument("--device", default="cuda", choices=["cuda", "emulated"])
    parser.add_argument("--ranks", type=int, nargs="*", default=[1])
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--small", action="store_true", help="sizes that take no time")
    parser.add_argument("--check", action="store_true", help="compare with NumPy, and time nothing")
    parser.add_argument("--no-peers", action="store_true", help="neither PyTorch nor JAX")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a program on ranks")
    parser.add_argument("--json", type=Path, help="a file for the results")
    found = measured(parser.parse_args())
    print(table(found.rows))
    for line in found.missing:
        print(f"not here: {line}")
    for text in found.failed:
        print(f"failed: {text}")
    return 1 if found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
