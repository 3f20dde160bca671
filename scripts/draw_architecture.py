"""Draws the folders of the package by floor, from their imports, as `docs/architecture.svg`.

    python scripts/draw_architecture.py [--check]

A folder, or a single module of `distspmd/`, stands one floor below the lowest one that imports it.
Arrows that follow from others are left out. The sentence in each box is the first paragraph of its
docstring.
The table of `docs/architecture.md` is written between its markers. With `--check` nothing is
written, and the exit status says whether something would change.
"""

from __future__ import annotations

import argparse
import ast
import html
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/architecture.svg"
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- begin: scripts/draw_architecture.py -->", "<!-- end -->"

WIDTH, GAP, MARGIN = 228, 20, 16  # of boxes, in pixels
LINE, LETTERS = 13, 35  # height of a line of the sentence, and how many letters it takes
RISE = 34  # between floors, for the arrows


@dataclass(frozen=True)
class Room:
    """A folder, or a single module of `distspmd/`."""

    name: str
    path: str
    sentence: str
    modules: int
    imports: frozenset[str]
    knows_dace: bool


def modules() -> Iterator[tuple[str, Path]]:
    """Names of modules with their files."""
    for file in sorted((ROOT / "distspmd").rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), file


def imported(tree: ast.AST) -> Iterator[str]:
    """Full names of what a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms() -> dict[str, Room]:
    """All rooms by name. `distspmd/__init__.py` and `__main__.py` are none: they know all."""
    trees: dict[str, dict[str, ast.Module]] = {}
    for name, file in modules():
        room = name.split(".")[1] if "." in name else "__main__"
        trees.setdefault(room, {})[name] = ast.parse(file.read_text())
    trees.pop("__main__")
    found = {}
    for room, members in trees.items():
        targets = [target for tree in members.values() for target in imported(tree)]
        own = [target.split(".")[1] for target in targets if target.startswith("distspmd.")]
        head = ast.get_docstring(members[f"distspmd.{room}"]) or ""
        place = f"distspmd/{room}"
        is_folder = (ROOT / place).is_dir()
        found[room] = Room(
            room,
            f"{place}/" if is_folder else f"{place}.py",
            " ".join(head.split("\n\n")[0].split()).rstrip("."),
            len(members) - is_folder,
            frozenset(own) - {room},
            any(target.split(".")[0] == "dace" for target in targets),
        )
    return {
        name: replace(room, imports=room.imports & found.keys()) for name, room in found.items()
    }


def floors(known: Mapping[str, Room]) -> list[list[Room]]:
    """Rooms by floor, the lowest first.

    Raises:
        graphlib.CycleError: rooms import each other in a circle, which the error names.
    """
    TopologicalSorter({name: room.imports for name, room in known.items()}).prepare()

    @cache
    def depth(name: str) -> int:
        return max((depth(other) + 1 for other in known if name in known[other].imports), default=0)

    rows: list[list[Room]] = [[] for _ in range(max(map(depth, known)) + 1)]
    for name in known:
        rows[-1 - depth(name)].append(known[name])
    return rows


def below(known: Mapping[str, Room]) -> dict[str, frozenset[str]]:
    """For each room all rooms that it imports, and that these import, and so on."""
    order = TopologicalSorter({name: room.imports for name, room in known.items()}).static_order()
    found: dict[str, frozenset[str]] = {}
    for name in order:
        found[name] = known[name].imports.union(*(found[other] for other in known[name].imports))
    return found


def direct(known: Mapping[str, Room]) -> dict[str, list[str]]:
    """For each room those imports that do not follow from others."""
    under = below(known)
    return {
        name: sorted(o for o in room.imports if not any(o in under[p] for p in room.imports))
        for name, room in known.items()
    }


def arranged(rows: list[list[Room]], arrows: Mapping[str, list[str]]) -> list[list[Room]]:
    """Rooms of each floor, ordered by the mean place of what they import: few arrows cross."""
    place: dict[str, float] = {}
    result = []
    for row in rows:

        def wanted(room: Room) -> tuple[float, str]:
            below = [place[name] for name in arrows[room.name]]
            return (sum(below) / len(below) if below else 0.0, room.name)

        ordered = sorted(row, key=wanted)
        for number, room in enumerate(ordered):
            place[room.name] = number - (len(ordered) - 1) / 2
        result.append(ordered)
    return result


def picture() -> str:
    """The SVG."""
    known = rooms()
    rows = floors(known)
    arrows = direct(known)
    rows = arranged(rows, arrows)
    widest = max(map(len, rows))
    width = 2 * MARGIN + widest * WIDTH + (widest - 1) * GAP
    boxes: dict[str, tuple[float, float, float]] = {}  # left, top, height
    top: float = MARGIN
    for row in reversed(rows):
        height = max(26 + LINE * len(sentence_lines(room)) for room in row)
        left = (width - len(row) * WIDTH - (len(row) - 1) * GAP) / 2
        for number, room in enumerate(row):
            boxes[room.name] = (left + number * (WIDTH + GAP), top, height)
        top += height + RISE
    drawn = [_arrow(boxes[name], boxes[other]) for name in arrows for other in arrows[name]]
    under = below(known)
    for name, box in boxes.items():
        needs_dace = any(known[other].knows_dace for other in under[name] | {name})
        drawn.append(_box(known[name], _style(needs_dace), *box))
    return "\n".join([_head(width, top - RISE + MARGIN), *drawn, "</svg>\n"])


def sentence_lines(room: Room) -> list[str]:
    """The sentence of a room, broken for its box."""
    return textwrap.wrap(room.sentence, LETTERS)


def _head(width: float, height: float) -> str:
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" \
viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif">
<title>The folders of distspmd by floor; each imports only what stands below it</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" \
orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#777"/></marker></defs>
<rect width="100%" height="100%" fill="white"/>
<rect x="{MARGIN}" y="{MARGIN}" width="12" height="12" {_style(needs_dace=False)}/>
<text x="{MARGIN + 18}" y="{MARGIN + 10}" font-size="10.5">works without DaCe</text>
<rect x="{MARGIN}" y="{MARGIN + 20}" width="12" height="12" {_style(needs_dace=True)}/>
<text x="{MARGIN + 18}" y="{MARGIN + 30}" font-size="10.5">needs DaCe</text>"""


def _style(needs_dace: bool) -> str:
    fill, stroke = ("#fdf1e3", "#d98c3f") if needs_dace else ("#e6f0fa", "#4a7fb5")
    return f'fill="{fill}" stroke="{stroke}"'


def _arrow(above: tuple[float, float, float], below: tuple[float, float, float]) -> str:
    x0, y0 = above[0] + WIDTH / 2, above[1] + above[2]
    x1, y1 = below[0] + WIDTH / 2, below[1]
    bend = min((y1 - y0) / 2, 60)
    path = (
        f"M{x0:.0f},{y0:.0f} C{x0:.0f},{y0 + bend:.0f} {x1:.0f},{y1 - bend:.0f} {x1:.0f},{y1:.0f}"
    )
    return (
        f'<path d="{path}" fill="none" stroke="#aaa" stroke-width="1.2" marker-end="url(#head)"/>'
    )


def _box(room: Room, style: str, left: float, top: float, height: float) -> str:
    text = [
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{WIDTH}" height="{height:.0f}" rx="4" '
        f"{style}/>",
        f'<text x="{left + 8:.0f}" y="{top + 17:.0f}" font-size="13" font-weight="bold">'
        f"{html.escape(room.path)}</text>",
    ]
    for number, words in enumerate(sentence_lines(room)):
        text.append(
            f'<text x="{left + 8:.0f}" y="{top + 32 + LINE * number:.0f}" font-size="10.5" '
            f'fill="#333">{html.escape(words)}</text>'
        )
    return "\n".join(text)


def table() -> str:
    """The order of knowledge as a table of Markdown, the lowest floor first."""
    lines = ["| floor | | modules | what it holds |", "|---|---|---|---|"]
    for number, row in enumerate(floors(rooms())):
        lines += [
            f"| {number} | `{room.path}` | {room.modules} | {room.sentence} |"
            for room in sorted(row, key=lambda room: room.name)
        ]
    return "\n".join(lines)


def page() -> str:
    """`docs/architecture.md` with the table as it is now."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Write both files, or with `--check` say whether they are as they should be."""
    parser = argparse.ArgumentParser(description="Draw the folders of the package by floor.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = 0
    for file, text in ((PICTURE, picture()), (PAGE, page())):
        if not file.exists() or file.read_text() != text:
            stale = 1
            if not check:
                file.write_text(text)
            print(file.relative_to(ROOT), "would change" if check else "written")
    return stale if check else 0


if __name__ == "__main__":
    sys.exit(main())
