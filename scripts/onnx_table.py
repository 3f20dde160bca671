"""Runs ONNX's own test cases of operators and writes the table `docs/onnx.md`.

python scripts/onnx_table.py [--each N] [--results FILE]

runs N cases of each operator, or all. With a file of results, those of earlier runs are kept in it.
"""

import argparse
import collections
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from from_onnx.cases import NodeCase, modules, node_cases, problems  # noqa: E402

from distspmd import frontend  # noqa: E402
from distspmd.errors import UnsupportedProgram  # noqa: E402

MARK = "<!-- scripts/onnx_table.py writes what follows -->\n"
PASSES = "passes"
AT_ONCE = 40


def refusal(case: NodeCase) -> str:
    """Why a case is refused; empty if it is not."""
    try:
        frontend.onnx_model(case.model)
    except UnsupportedProgram as error:
        return str(error)
    return ""


def outcomes(cases: Sequence[NodeCase], known: dict[str, str], file: Path | None) -> dict[str, str]:
    """What became of each case: passes, why it is refused, or what is wrong."""
    found = dict(known)
    waiting = [case for case in cases if case.name not in known]
    for start in range(0, len(waiting), AT_ONCE):
        part = waiting[start : start + AT_ONCE]
        refused = {case.name: refusal(case) for case in part}
        run = [case for case in part if not refused[case.name]]
        wrong = problems(run) if run else {}
        for case in part:
            is_wrong = wrong.get(case.name)
            found[case.name] = refused[case.name] or (f"WRONG: {is_wrong}" if is_wrong else PASSES)
        if file:
            file.write_text(json.dumps(found))
        print(f"{start + len(part)} of {len(waiting)}", file=sys.stderr, flush=True)
    return found


def short(refused: str) -> str:
    """A refusal in a few words."""
    if "has no elements" in refused:
        return "no elements"
    if types := re.search(r"elements of the type (\w+)", refused):
        return f"elements of {types[1]}"
    if ": it is not covered" in refused:
        return "not covered"
    if covered := re.search(r"the operator aten\.(\w+)", refused):
        return f"torch's {covered[1]} is not covered"
    if covered := re.search(r"is a (\w+)_type; only tensors", refused):
        return f"a {covered[1]}"
    text = re.sub(r"^the ONNX operator \w+ \(the node '[^']*'\): ", "", refused)
    text = re.sub(r"'[^']*/[^']*' ", "", text)
    return re.split(r"[.;] |\.$", text)[0].replace("|", "/")


def table(cases: Sequence[NodeCase], found: dict[str, str]) -> str:
    """A row for each operator."""
    of: dict[str, list[str]] = collections.defaultdict(list)
    for case in cases:
        of[case.operator].append(found[case.name])
    passed = sum(text == PASSES for text in found.values())
    bare = [op for op, texts in of.items() if {short(t) for t in texts} == {"not covered"}]
    lines = [
        f"{passed} of {len(cases)} cases pass that were run.",
        "",
        f"Not covered at all: {', '.join(sorted(bare))}.",
        "",
        "| operator | cases | pass | refused |",
        "|---|---|---|---|",
    ]
    for operator in sorted(of.keys() - set(bare)):
        texts = of[operator]
        reasons = collections.Counter(short(text) for text in texts if text != PASSES)
        shown = "; ".join(f"{n} {text}" for text, n in reasons.items())
        passes = sum(text == PASSES for text in texts)
        lines.append(f"| {operator} | {len(texts)} | {passes} | {shown} |")
    return "\n".join(lines) + "\n"


def some(cases: Sequence[NodeCase], each: int | None) -> list[NodeCase]:
    """The first of the cases of each operator, from both ends in turn."""
    of: dict[str, list[NodeCase]] = collections.defaultdict(list)
    for case in cases:
        of[case.operator].append(case)
    chosen = []
    for own in of.values():
        turns = [case for pair in zip(own, own[::-1], strict=True) for case in pair]
        chosen += list({case.name: case for case in turns}.values())[:each]
    return chosen


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--each", type=int, help="number of cases of each operator")
    given = parser.parse_args()
    cases = some(list(node_cases(modules())), given.each)
    known = (
        json.loads(given.results.read_text()) if given.results and given.results.exists() else {}
    )
    found = outcomes(cases, known, given.results)
    found = {case.name: found[case.name] for case in cases}
    page = ROOT / "docs" / "onnx.md"
    page.write_text(page.read_text().partition(MARK)[0] + MARK + "\n" + table(cases, found))
    passing = ROOT / "tests" / "from_onnx" / "passing.txt"
    lines = sorted(f"{case.file} {case.name}\n" for case in cases if found[case.name] == PASSES)
    passing.write_text("".join(lines))


if __name__ == "__main__":
    main()
