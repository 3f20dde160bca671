"""What a machine with GPUs is asked, the most valuable first; see ``scripts/gpu --help``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_pack
from gpu_parts import CUT, JSON, NOT_RUN, RIGHT, Ended, Part, Results, Runner, end_on_signals

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "gpu"
"""The environment of a pack, the cache of programs, and what parts print."""
SANITIZED = ("jacobi", "softmax", "matmul")
MINUTE = 60.0
_UNHURRIED = 10
"""How many times as long parts may take where the run has no time of its own."""

_MACHINE = """
for what in "uname -a" nproc "free -g" "df -h . /dev/shm" nvidia-smi "nvcc --version" "g++ -v"
do command -v ${what%% *} >/dev/null && $what || echo "not here: ${what%% *}"; done
"""


def prepare(runner: Runner, device: str) -> dict[str, Any] | None:
    """Install what parts need; what is here, or None if that failed."""
    if gpu_pack.fits():
        python = WORK / "venv" / "bin" / "python"
        make = (sys.executable, "scripts/gpu_pack.py", "install", str(python.parent.parent))
    else:
        if gpu_pack.wheels():
            print(f"gpu-pack/ is for another Python than {sys.executable}; .venv is made")
        python = ROOT / ".venv" / "bin" / "python"
        make = ("bash", "-c", "source scripts/setup.sh; setup torch")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each rank compiles all its modules
    os.environ["PATH"] = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    os.environ["DISTSPMD_CACHE"] = str(WORK / "cache")  # nothing is kept for other programs
    runner.run(
        [
            Part("machine", ("bash", "-c", _MACHINE), 0.5 * MINUTE),
            Part("install", make, 30 * MINUTE),
            Part("here", (str(python), "scripts/gpu_here.py", device, JSON), MINUTE),
        ]
    )
    told = runner.results.parts[-1]
    if told["state"] != RIGHT:
        return None
    found: dict[str, Any] = told["found"]
    print(told["tail"], end="", flush=True)
    os.environ.setdefault("MPI4PY_LIBMPI", found["MPI4PY_LIBMPI"])
    return {**found, "python": str(python)}


class Plan:
    """Parts of a run.

    Args:
        options: of the command line.
        here: what `scripts/gpu_here.py` has found.
    """

    def __init__(self, options: argparse.Namespace, here: dict[str, Any]) -> None:
        self._options, self._here, self._python = options, here, here["python"]
        self._how = ["--device", options.device]
        if options.small:
            self._how += ["--small", "--repeat", "1"]

    def parts(self) -> list[Part]:
        """All of them, in their order."""
        if self._here["missing"]:  # the others are measured alone
            return [self._doctor(), self._benchmarks(self._options.ranks[0])]
        few = [ranks for ranks in self._options.ranks if ranks <= 2]
        many = [ranks for ranks in self._options.ranks if ranks > 2]
        first, *rest = self._here["programs"]
        found = [self._check(first, ranks, beside=False) for ranks in few[:1]]
        found.append(self._doctor())
        for ranks in few:
            checked = rest if ranks == few[0] else (first, *rest)
            found += [self._check(name, ranks) for name in checked]
        found += [part for name in SANITIZED[:2] for part in self._sanitized(name)]
        found += [self._benchmarks(ranks, peers=ranks == few[0]) for ranks in few[:1]]
        found.append(self._overhead())
        found += [self._benchmarks(ranks, peers=False) for ranks in few[1:]]
        found += [self._check(name, ranks) for ranks in many for name in (first, *rest)]
        found += [part for name in SANITIZED[2:] for part in self._sanitized(name)]
        found += [self._benchmarks(ranks, peers=False) for ranks in many]
        found.append(self._measure())
        found += [self._tests(ranks, "gpu and not slow") for ranks in self._options.ranks]
        found += [self._tests(ranks, "gpu and slow") for ranks in self._options.ranks]
        return found

    def _check(self, name: str, ranks: int, beside: bool = True) -> Part:
        command = (self._python, "benchmarks/gpu.py", name, "--check", "--ranks", str(ranks))
        given = (*command, *self._how[:2], "--json", JSON)
        seconds = (2 if beside else 4) * MINUTE  # the first one compiles the runtime, too
        return Part(f"{name} on {ranks}", given, seconds, beside=beside)

    def _doctor(self) -> Part:
        return Part("doctor", (self._python, "-m", "distspmd", "doctor"), 2 * MINUTE)

    def _sanitized(self, name: str) -> list[Part]:
        """Where there is no sanitizer, the program runs without: the command has run once."""
        inside = (self._python, "-m", "mpi4py", "benchmarks/gpu_ranks.py", name, "--check")
        inside = (*inside, *self._how[:2])
        tool = self._here["sanitizer"]
        if self._options.device != "cuda" or not tool:
            return [Part(f"{name} without sanitizer", inside, 2 * MINUTE, beside=True)]
        asked = {
            "memcheck": ("--target-processes", "all"),
            "racecheck": ("--tool", "racecheck"),
        }
        return [
            Part(
                f"{check} {name}",
                (tool, *words, "--error-exitcode", "1", *inside),
                3 * MINUTE,
                beside=True,
            )
            for check, words in asked.items()
        ]

    def _benchmarks(self, ranks: int, peers: bool = True) -> Part:
        command = [self._python, "benchmarks/gpu.py", *self._how, "--ranks", str(ranks)]
        command += [
            "--json",
            JSON,
            "--limit",
            str(90 * self._options.pace),
            *["--no-peers"] * (not peers),
        ]
        seconds = (6 if peers else 3) * MINUTE
        return Part(f"benchmarks on {ranks}", tuple(command), seconds)

    def _overhead(self) -> Part:
        command = (self._python, "benchmarks/overhead.py", *self._how[:2])
        return Part("call overhead", command, MINUTE)

    def _measure(self) -> Part:
        command = (self._python, "-m", "distspmd", "doctor", "--measure", *self._how[:2])
        return Part("measure", command, 3 * MINUTE)

    def _tests(self, ranks: int, which: str) -> Part:
        command = (self._python, "-m", "pytest", "-q", "-m", which, *self._options.rest)
        named = {
            "DISTSPMD_TEST_DEVICE": self._options.device,
            "DISTSPMD_TEST_RANKS": str(ranks),
        }
        seconds = (180 if which.endswith("and slow") else 30) * MINUTE
        return Part(f"tests on {ranks}, {which}", command, seconds, named)


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The command line as options, and the rest of it."""
    usage = "scripts/gpu [--device cuda|emulated] [--minutes M] [--ranks 1,2,4] [--out FOLDER] ..."
    described = (ROOT / "scripts" / "gpu").read_text().partition('"""')[2].partition('"""')[0]
    parser = argparse.ArgumentParser(
        "scripts/gpu", usage, described, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--pack", nargs="?", const="3.12", metavar="PYTHON", help="make gpu-pack/, for Python 3.12")
    add("--device", choices=("cuda", "emulated"), default="cuda", help="emulated needs no GPU")
    add("--minutes", type=float, help="for all parts together; what is left over is not run")
    add("--ranks", default="1,2,4", help="numbers of ranks (1,2,4)")
    add("--out", type=Path, help="a folder for results.json and log.txt ($OUT, else gpu-results)")
    add("--only", default="", metavar="REGEX", help="parts whose names have it, and set-up")
    add("--small", action="store_true", help="small programs, once each; emulated ones are")
    options, options.rest = parser.parse_known_args(argv)
    options.ranks = [int(number) for number in options.ranks.split(",")]
    options.small |= options.device == "emulated"
    options.pace = 1 if options.minutes else _UNHURRIED
    options.out = options.out or Path(os.environ.get("OUT") or ROOT / "gpu-results")
    return options


def main(argv: Sequence[str]) -> int:
    """Make a pack, or run all parts; 1 if one of them has failed or the run was ended."""
    options = parsed(argv)
    if options.pack:
        gpu_pack.make(python=options.pack)
        return 0
    end_on_signals()
    results = Results(options.out, {"command": ["scripts/gpu", *argv], "device": options.device})
    seconds = None if options.minutes is None else options.minutes * MINUTE
    width = max(1, len(os.sched_getaffinity(0)) // 4)
    runner = Runner(results, WORK / "printed", ROOT, width, seconds)
    try:
        found = prepare(runner, options.device)
        if found is not None:
            if found["missing"]:
                print(f"not here: {found['missing']}", flush=True)
            parts = Plan(options, found).parts()
            asked = [part for part in parts if re.search(options.only, part.name)]
            runner.run([replace(part, seconds=part.seconds * options.pace) for part in asked])
    except Ended:
        print(f"cut; what is known is in {results.file}")
        return 1
    results.end()
    left = [part["name"] for part in results.parts if part["state"] in (CUT, NOT_RUN)]
    if left:
        print(f"no time was left for: {'; '.join(left)}")
    if results.bad():
        print(f"failed: {'; '.join(results.bad())}; what they printed is in {results.log}")
        return 1
    print(f"all parts that could run are right; {results.file} says what they have shown")
    return 0
