"""Runs the kernels of `tests/kernels` on 1 to 6 ranks and writes the table `docs/coverage.md`.

    python scripts/coverage.py [--ranks 1 2] [--results FILE] [kernel ...]

runs some of them, and writes no table. With a file of results, those of earlier runs are kept in
it, and the table is written when all are there: so a slow machine may do it in several turns.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from kernels import KERNELS  # noqa: E402
from kernels.kernel import RANKS, Kernel  # noqa: E402

from distspmd.runtime.launch.mpiexec import launch  # noqa: E402

HEAD = """# Coverage: the kernels of npbench and polybench

The programs of DaCe's npbench and polybench tests, written anew as NumPy programs from their
definitions (`tests/kernels`), read by DaCe's parser, each with a grid over its largest maps, on
{ranks} ranks, compared with plain NumPy. `python scripts/coverage.py` writes this page.

*Of the work* is the part of the predicted work that ranks share, on {most} ranks. *Arguments* are
the bytes that all ranks receive when arrays come from rank 0 and results go back to it, *between
ranks* those of all other communication, both in one run on {most} ranks; *through* are the solvers
of all distributed memlets. {works} of {all} kernels work on all these numbers of ranks.

| kernel | split | of the work | result | arguments | between ranks | through |
|---|---|---|---|---|---|---|
"""


def run(ranks: int, names: Sequence[str], file: Path) -> None:
    """Run kernels on a number of ranks; the file gets a line of JSON for each."""
    path = os.pathsep.join(
        filter(None, [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")])
    )
    done = launch(
        ["-m", "lowering.run_kernels", file, *names],
        ranks=ranks,
        env={"PYTHONPATH": path},
        threads=1,
    )
    if done.returncode:
        print(f"{ranks} ranks ended with code {done.returncode}", file=sys.stderr)


def results(file: Path) -> dict[int, dict[str, dict[str, Any]]]:
    """The last result of each kernel on each number of ranks."""
    of_ranks: dict[int, dict[str, dict[str, Any]]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        found = json.loads(line)
        of_ranks.setdefault(found["ranks"], {})[found["kernel"]] = found
    return dict(sorted(of_ranks.items()))


def row(kernel: Kernel, of_ranks: dict[int, dict[str, dict[str, Any]]]) -> str:
    """A row of the table, from the results on each number of ranks."""
    found = {ranks: results.get(kernel.name) for ranks, results in of_ranks.items()}
    problems = {
        ranks: result["problem"] if result else "the ranks ended" for ranks, result in found.items()
    }
    wrong = {ranks: problem for ranks, problem in problems.items() if problem}
    last = found[max(found)] or {}
    if not wrong:
        result = "works"
    else:
        first = next(iter(wrong.values())).split("\n")[0].replace("|", "\\|")
        on = "" if len(wrong) == len(found) else f"on {', '.join(map(str, wrong))} ranks: "
        result = f"{on}{first}"
    received = [f"{last[key]:,}" if key in last else "" for key in ("arguments", "between")]
    solvers = ", ".join(last.get("solvers", ()))
    share = f"{last['share']:.0%}" if "share" in last else ""
    columns = f"`{kernel.name}`", kernel.words, share, result, *received, solvers
    return f"| {' | '.join(columns)} |\n"


def main() -> None:
    """Run what was asked for, print the rows, write the table when it has all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="kernel")
    parser.add_argument("--ranks", type=int, nargs="*", default=list(RANKS))
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    selected = [kernel for kernel in KERNELS if kernel.name in options.kernels] or KERNELS
    with tempfile.TemporaryDirectory() as folder:
        file = (options.results or Path(folder) / "results").resolve()
        for ranks in options.ranks:
            run(ranks, [kernel.name for kernel in selected], file)
        of_ranks = results(file)
    rows = [row(kernel, of_ranks) for kernel in selected]
    works = sum("| works |" in text for text in rows)
    print("".join(rows), f"{works} of {len(rows)} kernels work", sep="")
    if len(selected) == len(KERNELS) and tuple(of_ranks) == RANKS:
        ranks = f"{', '.join(map(str, RANKS[:-1]))} and {RANKS[-1]}"
        head = HEAD.format(ranks=ranks, most=RANKS[-1], works=works, all=len(rows))
        (ROOT / "docs" / "coverage.md").write_text(head + "".join(rows))


if __name__ == "__main__":
    main()
