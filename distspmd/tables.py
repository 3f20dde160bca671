"""Tables as text for terminals and as HTML for notebooks."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text cells."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def as_text(tables: Sequence[Table]) -> str:
    """Tables in plain text, one below the other, as wide as their cells."""
    from rich.console import Console  # which takes a while, and most ranks print none
    from rich.table import Table as RichTable

    console = Console(file=io.StringIO(), width=10_000)
    pieces = []
    for table in tables:
        drawn = RichTable(*table.head)
        for row in table.rows:
            drawn.add_row(*(cell.replace("[", r"\[") for cell in row))
        with console.capture() as capture:
            console.print(drawn)
        title = f"{table.title}\n" if table.title else ""
        pieces.append(title + capture.get())
    return "\n".join(pieces)


def as_html(tables: Sequence[Table]) -> str:
    """Tables as HTML."""
    pieces = []
    for table in tables:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.head)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in table.rows
        )
        title = f"<h4>{html.escape(table.title)}</h4>" if table.title else ""
        pieces.append(f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "".join(pieces)


def shorten(what: str, most: int = 72) -> str:
    """A text that ends in dots where it is longer."""
    return what if len(what) <= most else f"{what[: most - 3]}..."
