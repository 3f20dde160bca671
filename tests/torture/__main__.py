"""Runs random programs and redistributions for as long as asked, and shrinks what fails.

Usage: scripts/torture [KIND]... [--seconds N] [--seed N]

Programs run on devices where ``DISTSPMD_DEVICE`` names a kind of them.
Every line says the seed that repeats it. The exit status is 1 if anything was wrong, ended in an
error that is not one of ours, or did not end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from distspmd.runtime.launch.mpiexec import Completed, launch

TESTS = Path(__file__).resolve().parent.parent
RANKS = (1, 2, 3, 4, 5, 6, 8)
RIGHT, REFUSED, WRONG, FOREIGN, HUNG, ENDED = (
    *("right", "refused", "wrong", "foreign error"),
    *("did not end", "ended the ranks"),
)
FAILURES = (WRONG, FOREIGN, HUNG, ENDED)


def run(module: str, *arguments: object, ranks: int, timeout: float, **env: str) -> Completed:
    """A program of this folder on ranks."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    argv = ["-m", f"torture.{module}", *map(str, arguments)]
    env = {"PYTHONPATH": path, **env}
    return launch(argv, ranks=ranks, timeout=timeout, capture=True, env=env, cwd=TESTS.parent)


def try_programs(
    seeds: Sequence[str], ranks: int, timeout: float, **env: str
) -> dict[str, tuple[str, str]]:
    """What became of programs on so many ranks, with the message, by seed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes"
        done = run("run_programs", file, folder, *seeds, ranks=ranks, timeout=timeout, **env)
        lines = file.read_text().splitlines() if file.exists() else []
    found = {
        line["seed"]: (line["became"], line.get("message", "")) for line in map(json.loads, lines)
    }
    how = HUNG if done.timed_out else ENDED
    for seed, (became, _) in found.items():
        if became == "started":
            found[seed] = (how, (done.stdout + done.stderr)[-3000:])
    if not found and not done.timed_out and done.returncode:
        found[seeds[0]] = (ENDED, (done.stdout + done.stderr)[-3000:])
    if "runtime error:" in done.stderr or "AddressSanitizer" in done.stderr:
        found[seeds[-1]] = (WRONG, done.stderr[-3000:])
    return found


def shrink(seed: str, ranks: int, became: str, seconds: float = 300) -> tuple[str, str]:
    """A smaller program that fails in the same way, and its text."""
    from torture.run_programs import of_text

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        tried = [f"{seed}/{n}" for n in range(len(list(of_text(seed).smaller())))]
        now = of_text(seed).text
        for smaller in tried:
            if of_text(smaller).text == now:
                continue
            if try_programs([smaller], ranks, 60).get(smaller, ("", ""))[0] == became:
                seed = smaller
                break
        else:
            break
    return seed, of_text(seed).text


def listed(counts: Counter[str]) -> str:
    """Counts as text, the largest first."""
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


class Kind(Protocol):
    """Something that is tried again and again.

    Attributes:
        failures: how often something was wrong.
    """

    failures: int

    def step(self) -> None:
        """Try once, and print what is wrong."""

    def summary(self) -> str:
        """What was tried, in one line."""


class Programs:
    """Batches of random programs, each batch on another number of ranks."""

    def __init__(self, seed: int, batch: int = 24) -> None:
        self.next, self.batch, self.became = seed, batch, Counter[str]()
        self.failures = 0

    def step(self) -> None:
        ranks = random.Random(self.next).choice(RANKS)
        seeds = [str(n) for n in range(self.next, self.next + self.batch)]
        self.next += self.batch
        left = list(seeds)
        while left:
            found = try_programs(left, ranks, 30 * len(left) + 120)
            if not found:
                print(f"programs {left[0]}..{left[-1]} on {ranks} ranks gave no answer", flush=True)
                self.failures += 1
                return
            for seed, (became, message) in found.items():
                self.became[became] += 1
                if became in FAILURES:
                    self._tell(seed, ranks, became, message)
            # Those behind one that ended the ranks have not run.
            left = [seed for seed in left if seed not in found]

    def _tell(self, seed: str, ranks: int, became: str, message: str) -> None:
        self.failures += 1
        print(f"program {seed} on {ranks} ranks: {became}: {message[:2000]}", flush=True)
        small, text = shrink(seed, ranks, became)
        print(f"as small as {small}:\n{text}", flush=True)

    def summary(self) -> str:
        counts = listed(self.became)
        return f"{sum(self.became.values())} programs: {counts}; next seed {self.next}"


class Redistributions:
    """Batches of random redistributions."""

    def __init__(self, seed: int, batch: int = 500) -> None:
        self.next, self.batch, self.failures = seed, batch, 0
        self.counts = Counter[str]()

    def step(self) -> None:
        ranks = random.Random(self.next).choice(RANKS)
        done = run(
            "run_redistributions", self.next, self.batch, ranks=ranks, timeout=120 + self.batch
        )
        said = done.stdout + done.stderr
        counted = re.search(r"(\d+) right, (\d+) refused", said)
        if done.returncode or not counted:
            self.failures += 1
            how = HUNG if done.timed_out else f"ended with {done.returncode}"
            print(f"redistributions from seed {self.next} on {ranks} ranks {how}:\n{said[-3000:]}")
        else:
            self.counts[RIGHT] += int(counted[1])
            self.counts[REFUSED] += int(counted[2])
            for line in said.splitlines():
                if line.startswith("seed "):
                    print(line, flush=True)
        self.next += self.batch

    def summary(self) -> str:
        counts = listed(self.counts)
        return f"redistributions: {counts}; next seed {self.next}"


class Caches:
    """The cache of programs is damaged, and the programs run again."""

    def __init__(self, seed: int) -> None:
        self.next, self.failures, self.counts = seed, 0, Counter[str]()
        self.folder = Path(tempfile.mkdtemp(prefix="torture-cache-"))

    def step(self) -> None:
        draw = random.Random(self.next)
        seeds = [str(n) for n in range(3)]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "outcomes"
            env = {"DISTSPMD_CACHE": str(self.folder)}
            done = run("run_programs", file, folder, *seeds, ranks=2, timeout=600, **env)
            lines = [json.loads(line) for line in file.read_text().splitlines()]
        became = [line["became"] for line in lines if line["became"] != "started"]
        self.counts.update(became)
        if done.returncode or len(became) < len(seeds) or set(became) & set(FAILURES):
            self.failures += 1
            said = (done.stdout + done.stderr)[-3000:]
            print(f"with the damage of seed {self.next - 1}: {became}\n{said}", flush=True)
        for file in damaged(draw, self.folder):
            self.counts[f"{file} damaged"] += 1
        self.next += 1

    def summary(self) -> str:
        counts = listed(self.counts)
        shutil.rmtree(self.folder, ignore_errors=True)
        return f"damaged caches: {counts}; next seed {self.next}"


def damaged(draw: random.Random, folder: Path) -> Iterator[str]:
    """Damage some files of a cache; their suffixes."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and not f.is_symlink())
    for file in draw.sample(files, min(len(files), draw.randint(1, 4))):
        held = file.read_bytes()
        how = draw.randrange(4)
        file.chmod(0o600)
        if how == 0:
            file.unlink()
        elif how == 1:
            file.write_bytes(held[: draw.randint(0, len(held))])
        elif how == 2:
            file.write_bytes(b"{}")
        else:
            at = draw.randrange(len(held) or 1)
            file.write_bytes(held[:at] + draw.randbytes(64) + held[at + 64 :])
        yield file.suffix or file.name


class Jobs:
    """Several launches at once with one empty cache."""

    def __init__(self, seed: int, jobs: int = 3) -> None:
        self.next, self.jobs, self.failures, self.counts = seed, jobs, 0, Counter[str]()

    def step(self) -> None:
        draw = random.Random(self.next)
        with tempfile.TemporaryDirectory() as cache:
            said: list[str] = []

            def job(ranks: int) -> None:
                done = run(
                    "run_redistributions",
                    *(self.next, 20),
                    ranks=ranks,
                    timeout=600,
                    DISTSPMD_CACHE=cache,
                )
                said.append("" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:])

            threads = [
                threading.Thread(target=job, args=(draw.choice(RANKS[:4]),))
                for _ in range(self.jobs)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for line in said:
            self.counts[WRONG if line else RIGHT] += 1
            if line:
                self.failures += 1
                print(f"one of {self.jobs} jobs, seed {self.next}:\n{line}", flush=True)
        self.next += 1

    def summary(self) -> str:
        counts = listed(self.counts)
        return f"jobs at once: {counts}; next seed {self.next}"


class Sanitizers:
    """Random programs with the address and the undefined-behaviour sanitizers, runtime included."""

    def __init__(self, seed: int, batch: int = 8) -> None:
        self.next, self.batch, self.failures, self.counts = seed, batch, 0, Counter[str]()
        self.cache = Path(tempfile.mkdtemp(prefix="torture-sanitizers-"))
        command = ["g++", "-print-file-name=libasan.so", "-print-file-name=libubsan.so"]
        found = [
            subprocess.run([command[0], each], capture_output=True, text=True, check=True).stdout
            for each in command[1:]
        ]
        self.env = {
            "CXX": "g++ -fsanitize=address,undefined -fno-omit-frame-pointer",
            "LD_PRELOAD": ":".join(each.strip() for each in found),
            "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:use_sigaltstack=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "DACE_compiler_cpp_standard": "20",  # DaCe's headers are not right under 17 with them
            "DISTSPMD_CACHE": str(self.cache),
        }

    def step(self) -> None:
        seeds = [str(n) for n in range(self.next, self.next + self.batch)]
        ranks = random.Random(self.next).choice(RANKS[:4])
        self.next += self.batch
        found = try_programs(seeds, ranks, 240 * self.batch, **self.env)
        self.counts.update(became for became, _ in found.values())
        for seed, (became, message) in found.items():
            if became in FAILURES:
                self.failures += 1
                print(f"sanitizers, program {seed} on {ranks} ranks: {became}: {message}")
        libraries = [each.read_bytes() for each in self.cache.rglob("*.so")]
        assert any(b"__asan_" in each for each in libraries), "nothing was compiled with sanitizers"

    def summary(self) -> str:
        counts = listed(self.counts)
        shutil.rmtree(self.cache, ignore_errors=True)
        return f"with sanitizers: {counts}; next seed {self.next}"


class Determinism:
    """Random programs run again, and on larger communicators: the same bits."""

    def __init__(self, seed: int, batch: int = 12) -> None:
        self.next, self.batch, self.failures, self.counts = seed, batch, 0, Counter[str]()

    def step(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            arguments = (folder, self.next, self.batch)
            done = run("run_deterministic", *arguments, ranks=5, timeout=60 * self.batch)
        said = done.stdout + done.stderr
        counted = re.search(r"(\d+) right, (\d+) refused", said)
        if done.returncode or not counted:
            self.failures += 1
            print(f"determinism from seed {self.next}:\n{said[-3000:]}", flush=True)
        else:
            self.counts[RIGHT] += int(counted[1])
            self.counts[REFUSED] += int(counted[2])
        self.next += self.batch

    def summary(self) -> str:
        counts = listed(self.counts)
        return f"the same bits: {counts}; next seed {self.next}"


class Growth:
    """Thousands of calls, programs and communicators in one process, which may not grow."""

    def __init__(self, seed: int) -> None:
        self.next, self.failures, self.said = seed, 0, ""

    def step(self) -> None:
        calls, programs = (10_000, 1_000) if self.next == 0 else (1_000, 100)
        ranks = 4 if self.next % 2 == 0 else 2
        done = run("run_growth", calls, programs, ranks=ranks, timeout=3600)
        self.said = done.stdout.strip().replace("\n", "; ")
        if done.returncode:
            self.failures += 1
            print(f"growth on {ranks} ranks:\n{(done.stdout + done.stderr)[-3000:]}", flush=True)
        self.next += 1

    def summary(self) -> str:
        return f"growth: {self.said}"


KINDS: dict[str, Callable[[int], Kind]] = {
    "programs": Programs,
    "redistributions": Redistributions,
    "caches": Caches,
    "jobs": Jobs,
    "sanitizers": Sanitizers,
    "determinism": Determinism,
    "growth": Growth,
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long, in all")
    parser.add_argument("--seed", type=int, default=0, help="the first number of each kind")
    asked = parser.parse_args(arguments)
    unknown = set(asked.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no kind is called {sorted(unknown)[0]!r}; there are {', '.join(KINDS)}")
    running = [KINDS[kind](asked.seed) for kind in asked.kinds or KINDS]
    until = time.monotonic() + asked.seconds
    while time.monotonic() < until:
        for kind in running:
            if time.monotonic() < until:
                kind.step()
    for kind in running:
        print(kind.summary(), flush=True)
    return int(any(kind.failures for kind in running))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
