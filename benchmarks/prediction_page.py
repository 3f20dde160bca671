"""Writes figures into docs/search.md: ``python benchmarks/prediction_page.py FILE``.

FILE is what ``prediction.py --out`` kept. The table between the marks of the page is replaced, and
the picture beside it is drawn anew.
"""

import json
import sys
from pathlib import Path

import numpy as np
from prediction import Figure, draw, ordered, repeated, spearman

PAGE = Path(__file__).resolve().parent.parent / "docs" / "search.md"
BEGIN, END = "<!-- begin: benchmarks/prediction_page.py -->", "<!-- end -->"
HEAD = (
    "| program | Spearman | calls with calls | pairs 10 % apart in order | found / best measured | "
    "slowest / fastest | predicted / measured, median |"
)


def row(name: str, figures: list[Figure]) -> str:
    """The figures of a program."""
    seconds = np.array([f.measured for f in figures])
    (found,) = (f.measured for f in figures if f.is_found)
    ratio = float(np.median([f.predicted / f.measured for f in figures]))
    label = name.replace("_", " ")
    return (
        f"| {label} ({len(figures)}) | {spearman(figures):.2f} | {repeated(figures):.2f} | "
        f"{ordered(figures):.0%} | {found / seconds.min():.2f} | "
        f"{seconds.max() / seconds.min():.1f} | {ratio:.1f} |"
    )


def table(kept: dict[str, list[dict[str, object]]]) -> str:
    """The table of all programs, and what they come to."""
    programs = {name: [Figure(**f) for f in own] for name, own in kept.items()}  # type: ignore[arg-type]
    rows = [row(name, figures) for name, figures in programs.items()]
    every = [f for figures in programs.values() for f in figures]
    exact = sum(f.planned == f.counted for f in every)
    rhos = [spearman(figures) for figures in programs.values()]
    worst = max(
        next(f.measured for f in own if f.is_found) / min(f.measured for f in own)
        for own in programs.values()
    )
    said = (
        f"Bytes of the plans were the bytes counted in {exact} of {len(every)} schedules. "
        f"Spearman is {min(rhos):.2f} to {max(rhos):.2f}, {np.mean(rhos):.2f} on the average, and "
        f"at least 0.85 in {sum(rho >= 0.85 for rho in rhos)} of {len(rhos)} programs. What is "
        f"found takes at most {worst:.2f} times as long as the best that was measured."
    )
    return "\n".join([said, "", HEAD, f"|{'---|' * 7}", *rows])


def main() -> None:
    file = Path(sys.argv[1])
    kept = json.loads(file.read_text())
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END, 1)
    PAGE.write_text(f"{before}{BEGIN}\n{table(kept['programs'])}\n{END}{after}")
    draw([file], PAGE.parent / "prediction.png")
    print(table(kept["programs"]))


if __name__ == "__main__":
    main()
