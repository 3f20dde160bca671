"""Pictures of layouts: which rank holds which tile, as text and as SVG.

The last two dimensions span a plane. Each combination of tiles of the other dimensions has a plane
of its own.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box, Interval
from distspmd.layouts.layout import Layout

_PLANES = 4
_COLUMNS = 24


def picture(layout: Layout) -> str:
    """The planes of a layout as text."""
    planes = [*itertools.islice(_planes(layout), _PLANES + 1)]
    texts = ["\n".join(_plane(layout, plane)) for plane in planes[:_PLANES]]
    return "\n".join(texts + ["..."] * (len(planes) > _PLANES))


def svg(layouts: Sequence[tuple[str, Layout]]) -> str:
    """The first plane of each layout, side by side, in one SVG; a colour for each tile."""
    size, margin = 300, 30
    width = margin + len(layouts) * (size + margin)
    pieces = []
    for number, (title, layout) in enumerate(layouts):
        left, top = margin + number * (size + margin), 2 * margin
        text = html.escape(f"{title}: {layout}")
        pieces.append(f'<text x="{left}" y="{margin}" font-size="11">{text}</text>')
        pieces += _rectangles(layout, left, top, size)
    body = "\n".join(pieces)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{size + 3 * margin}" '
        'font-family="monospace">\n<rect width="100%" height="100%" fill="white"/>\n'
        f"{body}\n</svg>\n"
    )


def _planes(layout: Layout) -> Iterator[tuple[Interval, ...]]:
    """Intervals of all dimensions but the last two: one combination of tiles for each plane."""
    leading = len(layout.extents) - 2
    sides = [_intervals(layout, dimension) for dimension in range(max(0, leading))]
    return itertools.product(*sides)


def _intervals(layout: Layout, dimension: int) -> list[Interval]:
    """A dimension cut wherever a tile begins or ends."""
    held = [box for box in layout.boxes if not intervals.is_empty(box)]
    cuts = {0, layout.extents[dimension], *(at for box in held for at in box[dimension])}
    return [*itertools.pairwise(sorted(cuts))]


def _cells(
    layout: Layout, plane: tuple[Interval, ...]
) -> tuple[list[Interval], list[Interval], list[list[str]]]:
    """Rows, columns, and the ranks that hold each cell of a plane."""
    ndim = len(layout.extents)
    rows = _intervals(layout, ndim - 2) if ndim > 1 else [(0, 1)]
    columns = _intervals(layout, ndim - 1)
    table = []
    for row in rows:
        line = []
        for column in columns:
            cell: Box = (*plane, row, column) if ndim > 1 else (column,)
            line.append(
                _ranks([r for r, box in enumerate(layout.boxes) if intervals.contains(box, cell)])
            )
        table.append(line)
    return rows, columns, table


def _ranks(ranks: list[int]) -> str:
    """``0-3,8``."""
    runs: list[tuple[int, int]] = []
    for rank in ranks:
        if runs and runs[-1][1] == rank - 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    return ",".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in runs) or "-"


def _plane(layout: Layout, plane: tuple[Interval, ...]) -> Iterator[str]:
    rows, columns, table = _cells(layout, plane)
    if plane:
        yield f"[{intervals.box_text(plane)}, :, :]"
    heads = [f"{lo}:{hi}" for lo, hi in columns[:_COLUMNS]]
    sides = [f"{lo}:{hi}" if len(layout.extents) > 1 else "" for lo, hi in rows]
    width = max(map(len, [*heads, *(cell for line in table for cell in line[:_COLUMNS])]))
    side = max(map(len, sides))
    rule = " " * side + " +" + ("-" * (width + 2) + "+") * len(heads)
    yield (" " * side + "  " + " ".join(f"{head:^{width + 2}}" for head in heads)).rstrip()
    for name, line in itertools.islice(zip(sides, table, strict=True), _COLUMNS):
        yield rule
        cells = "|".join(f" {cell:^{width}} " for cell in line[:_COLUMNS])
        yield f"{name:>{side}} |{cells}|"
    yield rule
    if len(columns) > _COLUMNS or len(rows) > _COLUMNS:
        yield f"(the first {_COLUMNS} of {len(rows)} x {len(columns)} cells)"


def _rectangles(layout: Layout, left: int, top: int, size: int) -> Iterator[str]:
    rows, columns, table = _cells(layout, next(_planes(layout)))
    high, wide = max(1, rows[-1][1]), max(1, columns[-1][1])
    names: dict[str, int] = {}
    for (y0, y1), line in zip(rows, table, strict=True):
        for (x0, x1), cell in zip(columns, line, strict=True):
            hue = names.setdefault(cell, len(names)) * 47 % 360
            x, y = left + size * x0 / wide, top + size * y0 / high
            w, h = size * (x1 - x0) / wide, size * (y1 - y0) / high
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
                f'fill="hsl({hue},60%,80%)" stroke="black"/>'
            )
            yield (
                f'<text x="{x + w / 2:.1f}" y="{y + h / 2:.1f}" font-size="10" '
                f'text-anchor="middle" dominant-baseline="middle">{cell}</text>'
            )
