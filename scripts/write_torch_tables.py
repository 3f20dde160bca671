"""Writes the tables of layers, operators and measured models of `docs/torch.md`.

    python scripts/write_torch_tables.py [--check]

`tests/from_torch/test_layers.py` and `test_core_operators.py` compare each layer and operator with
torch; what `tests/zoo/measure.py` found of models is in `benchmarks/zoo.json`. With `--check`
nothing is written, and the exit status says whether something would change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from from_torch.core_operators import CASES, DRAWN, SIZES  # noqa: E402
from from_torch.core_operators import REFUSED as REFUSED_OPERATORS  # noqa: E402
from from_torch.layers import EVERY, REFUSED  # noqa: E402

from distspmd.frontend.operators import OPERATORS  # noqa: E402

PAGE = ROOT / "docs/torch.md"
MODELS = ROOT / "benchmarks/zoo.json"
BEGIN, END = "<!-- begin: scripts/write_torch_tables.py: {} -->", "<!-- end -->"
RUNS = ("megatron forward", "data_parallel step", "megatron step")


def row(what: str, names: Iterable[str]) -> str:
    """A row of the tables."""
    return f"| {what} | {', '.join(f'`{name}`' for name in sorted(names))} |"


def operators() -> Iterator[str]:
    """The lines of layers and operators."""
    yield "| layers of `torch.nn` | |"
    yield "|---|---|"
    yield row("as in torch, with their gradients", EVERY.keys() - REFUSED.keys())
    for reason in sorted({why for _, why in REFUSED.values()}):
        yield row(f"refused: {reason}", (n for n, (_, why) in REFUSED.items() if why == reason))
    yield ""
    yield "| core ATen set | |"
    yield "|---|---|"
    yield row("covered", (name for name in CASES if name in OPERATORS))
    yield row("decomposed", (name for name in CASES if name not in OPERATORS))
    yield row("covered; other numbers than those of torch are drawn", DRAWN)
    yield row("sizes, which are numbers while a program is traced", SIZES)
    for name, (reason, _) in REFUSED_OPERATORS.items():
        yield row(f"refused: {reason}", [name])


def models() -> Iterator[str]:
    """The lines of models that were compiled and run by presets."""
    table: dict[str, dict[str, Any]] = json.loads(MODELS.read_text())
    every = [runs.get(label) for runs in table.values() for label in RUNS]
    right = sum(is_right(runs.get(label) for label in RUNS) for runs in table.values())
    tried = sum(finding is not None for finding in every)
    yield f"{right} of {len(table)} models are right in all; {tried} runs were tried, and of these"
    yield f"{sum(is_right([finding]) for finding in every)} are right."
    yield ""
    yield "| model | forward, tensor parallel | step, data parallel | step, tensor parallel |"
    yield "|---|---|---|---|"
    for name, runs in table.items():
        yield f"| {name} | {' | '.join(cell(runs.get(label)) for label in RUNS)} |"


def is_right(findings: Iterable[dict[str, Any] | None]) -> bool:
    """Whether all runs did what torch does."""
    return all(finding is not None and finding["found"] == "right" for finding in findings)


def cell(finding: dict[str, Any] | None) -> str:
    """The seconds of one run, or what went wrong."""
    if finding is None:
        return "not tried"
    steps = " (first step)" if finding.get("steps") else ""
    return f"{finding['processor']} s{steps}" if is_right([finding]) else str(finding["found"])


TABLES: dict[str, Callable[[], Iterator[str]]] = {"operators": operators, "models": models}


def main() -> int:
    """Write the page, or say whether it would change."""
    text = written = PAGE.read_text()
    for name, lines in TABLES.items():
        before, rest = written.split(BEGIN.format(name))
        _, after = rest.split(END, 1)
        written = f"{before}{BEGIN.format(name)}\n" + "\n".join(lines()) + f"\n{END}{after}"
    if "--check" in sys.argv:
        if written != text:
            print("docs/torch.md would change")
        return int(written != text)
    PAGE.write_text(written)
    print("docs/torch.md written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
