"""Writes the tables of layers and operators of `docs/torch.md`, from the cases of the tests.

    python scripts/write_torch_tables.py [--check]

`tests/from_torch/test_layers.py` and `test_core_operators.py` compare each case with torch. With
`--check` nothing is written, and the exit status says whether something would change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from from_torch.core_operators import CASES, DRAWN, SIZES  # noqa: E402
from from_torch.core_operators import REFUSED as REFUSED_OPERATORS  # noqa: E402
from from_torch.layers import EVERY, REFUSED  # noqa: E402

from distspmd.frontend.operators import OPERATORS  # noqa: E402

PAGE = ROOT / "docs/torch.md"
BEGIN, END = "<!-- begin: scripts/write_torch_tables.py -->", "<!-- end -->"


def row(what: str, names: Iterable[str]) -> str:
    """A row of the tables."""
    return f"| {what} | {', '.join(f'`{name}`' for name in sorted(names))} |"


def table() -> Iterator[str]:
    """The lines between the markers."""
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


def main() -> int:
    """Write the page, or say whether it would change."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END, 1)
    written = f"{before}{BEGIN}\n" + "\n".join(table()) + f"\n{END}{after}"
    if "--check" in sys.argv:
        if written != text:
            print("docs/torch.md would change")
        return int(written != text)
    PAGE.write_text(written)
    print("docs/torch.md written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
