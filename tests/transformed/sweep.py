"""All of DaCe's transformations on all programs: ``python -m transformed.sweep``, in `tests/`.

It needs the repository in PYTHONPATH. Programs of DaCe may end the process that runs them: a
process of its own works on them, and another one goes on behind the one that ended it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from transformed.outcomes import FOREIGN, UNMATCHED, WRONG, Outcome, counts_of, outcome
from transformed.programs import PROGRAMS
from transformed.transformations import transformations

LIMIT = 600
"""Seconds for each program."""
TESTS = Path(__file__).resolve().parent.parent


def all_names() -> list[str]:
    """All transformations on all programs."""
    return [f"{each}/{program}" for each in transformations() for program in PROGRAMS]


def sweep(names: Sequence[str], plain: bool = True) -> list[Outcome]:
    """Outcomes, in the order of names."""
    found: dict[str, Outcome] = {}
    crashed: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        file, named = Path(folder, "outcomes"), Path(folder, "names")
        while left := [name for name in names if name not in found]:
            file.write_text("")
            named.write_text(json.dumps([(name, plain, name in crashed) for name in left]))
            path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
            command = [sys.executable, "-m", "transformed.sweep", "--work", str(named), str(file)]
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True
            )
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            found |= {line["name"]: Outcome(**line) for line in lines if "dace" in line}
            stuck = [line["starts"] for line in lines if "starts" in line][-1:]
            for name in [n for n in stuck or left if n not in found]:
                if name in crashed or not plain:
                    said = f"its process ended with {done.returncode}: {done.stderr[-300:]!r}"
                    found[name] = Outcome(name, UNMATCHED, FOREIGN, said)
                crashed.add(name)
    return [found[name] for name in names]


def work(named: str, file: str) -> None:
    """What the process does that may be ended."""
    warnings.simplefilter("ignore")
    with Path(file).open("a", buffering=1) as out:
        for name, plain, crashed in json.loads(Path(named).read_text()):
            faulthandler.dump_traceback_later(LIMIT, exit=True)
            out.write(json.dumps({"starts": name}) + "\n")
            out.write(json.dumps(outcome(name, plain, crashed).as_dict()) + "\n")


def main() -> None:
    """Sweep over what the command line names, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m transformed.sweep", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="of names such as MapTiling/stencil")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--paper", action="store_true", help="DaCe's own programs are not run")
    parser.add_argument("--record", help="a file for all outcomes, as lines of JSON")
    given = parser.parse_args()
    if given.work:
        work(*given.work)
        return
    names = all_names()
    names = [n for n in names if any(fnmatch(n, p) for p in given.patterns or ["*"])]
    found = sweep(names, plain=not given.paper)
    if given.record:
        Path(given.record).write_text("".join(json.dumps(e.as_dict()) + "\n" for e in found))
    for name, row in counts_of(found).items():
        print(f"{name:40}", ", ".join(f"{count} {kind}" for kind, count in sorted(row.items())))
    for each in found:
        if each.said:
            print(f"{each.name}: {each.dace} at DaCe, {each.ours or '-'} here: {each.said}")
    sys.exit(any(each.ours in (FOREIGN, WRONG) for each in found))


if __name__ == "__main__":
    main()
