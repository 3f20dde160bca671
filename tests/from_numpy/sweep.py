"""Runs many cases and prints what became of each: ``python -m from_numpy.sweep --help``.

Cases share processes, or launches of ranks. One that crashes or does not end costs its own outcome
alone: the others are started again without it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from distspmd.runtime.launch.mpiexec import Completed, launch
from from_numpy.collections_of_cases import COLLECTIONS, collection
from from_numpy.corpus.registry import Case
from from_numpy.outcomes import FOREIGN, KINDS, Outcome, as_table

TESTS = Path(__file__).resolve().parent.parent


def sweep(
    names: Sequence[str],
    *,
    which: str = "corpus",
    mode: str = "1,2,3",
    limit: float = 120,
    jobs: int = 1,
    dimension: int = 0,
    optimised: bool = False,
    record: Path | None = None,
) -> list[Outcome]:
    """Outcomes of cases, in the order of their names.

    Args:
        names: of cases of the collection.
        which: one of COLLECTIONS.
        mode: "paper", or numbers of ranks, with commas.
        limit: seconds for each case.
        jobs: how many launches there are side by side.
        dimension: of each space, that is split over all ranks; the last where it has fewer.
        optimised: whether compilers optimise.
        record: a file to which each outcome is added at once, as a line of JSON.
    """
    shares = [list(names[first::jobs]) for first in range(jobs)]
    settings = [mode, str(limit), str(dimension)]

    def run(share: list[str]) -> dict[str, Outcome]:
        with tempfile.TemporaryDirectory() as folder:
            return _share(share, which, settings, Path(folder), optimised, record)

    with ThreadPoolExecutor(jobs) as pool:
        found = {name: each for some in pool.map(run, shares) for name, each in some.items()}
    return [found[name] for name in names]


def _share(
    left: list[str],
    which: str,
    settings: list[str],
    folder: Path,
    optimised: bool,
    record: Path | None,
) -> dict[str, Outcome]:
    """Launch until all cases have an outcome."""
    found: dict[str, Outcome] = {}
    file, named = folder / "outcomes", folder / "names"
    settings = [*settings, str((record or folder / "record").resolve())]
    while left:
        file.write_text("")
        named.write_text("\n".join(left))
        done = _launched([str(file), str(named), which, *settings], folder, optimised, len(left))
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        ended = [Outcome(**line["ends"]) for line in lines if "ends" in line]
        found |= {each.name: each for each in ended}
        started = [line["starts"] for line in lines if "starts" in line]
        stuck = [name for name in started if name not in found]
        if not started and left:
            stuck = left  # nothing can be started
        for name in stuck:
            found[name] = Outcome(name, FOREIGN, _end(done), "run", float(settings[1]))
        left = [name for name in left if name not in found]
    return found


def _launched(arguments: list[str], folder: Path, optimised: bool, cases: int) -> Completed:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    mode, limit = arguments[3], float(arguments[4])
    return launch(
        ["-m", "from_numpy.run_cases", *arguments],
        ranks=1 if mode == "paper" else max(map(int, mode.split(","))),
        timeout=limit * (cases + 2),
        capture=True,
        env={"PYTHONPATH": path, **({} if optimised else {"DACE_compiler_build_type": "None"})},
        cwd=folder,
    )


def _end(done: Completed) -> str:
    """How a launch ended in which a case did not: what was said last, above all of a time-out."""
    said = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or [""]
    if any(line.startswith("Timeout (") for line in said):
        at = next((n for n, line in enumerate(said) if "most recent call first" in line), 0)
        return "it did not end in its time: " + " | ".join(said[at : at + 4])
    return f"its process ended with code {done.returncode}: " + " | ".join(said[-6:])


def by_field(outcomes: Sequence[Outcome], cases: Mapping[str, Case]) -> str:
    """The outcomes of each field, as a table."""
    fields: dict[str, Counter[str]] = {}
    for each in outcomes:
        fields.setdefault(cases[each.name].field, Counter())[each.kind] += 1
    longest = max(map(len, fields), default=0)
    head = f"{'':{longest}}" + "".join(f"{kind:>9}" for kind in KINDS)
    rows = [
        f"{field:{longest}}" + "".join(f"{counted[kind]:9}" for kind in KINDS)
        for field, counted in sorted(fields.items())
    ]
    return "\n".join([head, *rows])


def main() -> None:
    """Run the cases that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m from_numpy.sweep", description=__doc__)
    parser.add_argument("names", nargs="*", help="patterns of names; all where left out")
    parser.add_argument("--collection", choices=COLLECTIONS, default="corpus")
    parser.add_argument("--mode", default="1,2,3", help='"paper", or numbers of ranks: "1,2,3"')
    parser.add_argument("--field", default="*", help="pattern of fields")
    parser.add_argument("--smallest", action="store_true", help="each program at its first size")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each case")
    parser.add_argument("--jobs", type=int, default=1, help="launches side by side")
    parser.add_argument("--dimension", type=int, default=0, help="of each space, that is split")
    parser.add_argument("--optimised", action="store_true", help="compilers optimise")
    parser.add_argument("--width", type=int, default=160, help="of a line; 0 for any")
    parser.add_argument("--json", type=Path, help="file for the outcomes, at the end")
    parser.add_argument("--record", type=Path, help="file to which each is added at once")
    given = parser.parse_args()
    cases = collection(given.collection)
    patterns, functions = given.names or ["*"], set()
    names = []
    for name, case in cases.items():
        if not any(fnmatch(name, p) for p in patterns) or not fnmatch(case.field, given.field):
            continue
        if not given.smallest or case.function not in functions:
            names.append(name)
        functions.add(case.function)
    outcomes = sweep(
        names,
        which=given.collection,
        mode=given.mode,
        limit=given.limit,
        jobs=given.jobs,
        dimension=given.dimension,
        optimised=given.optimised,
        record=given.record,
    )
    print(by_field(outcomes, cases), as_table(outcomes, given.width), sep="\n\n")
    if given.json:
        given.json.write_text(json.dumps([each.as_dict() for each in outcomes], indent=1))
    sys.exit(any(each.kind not in ("right", "refused") for each in outcomes))


if __name__ == "__main__":
    main()
