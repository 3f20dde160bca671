"""Where the caller holds arguments and results at a call: on rank 0, on every rank, or in tiles.

What is `"gathered"` is in tiles, as what is `"distributed"`; copies that ranks gather of it are
freed while others are gathered, and made again (:mod:`distspmd.passes.gathered_copies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distspmd.errors import ScheduleError, describe
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.schedule import HOLDINGS

KINDS = HOLDINGS
ROOT, REPLICATED, DISTRIBUTED, GATHERED = KINDS
IN_TILES = (DISTRIBUTED, GATHERED)


def check_arguments(
    program: str, names: Sequence[str], arguments: object, place: str = "arguments="
) -> None:
    """Whether a mapping from arguments and results to kinds of holding fits a program.

    Args:
        program: its name, for messages.
        names: its arguments and results.
        arguments: the mapping.
        place: where it is written, for messages.

    Raises:
        ScheduleError: no mapping, an argument that the program does not have, or an unknown kind.
    """
    if not isinstance(arguments, Mapping):
        raise ScheduleError(
            f"arguments={describe(arguments)} is no mapping. Write, for an argument of "
            f"{program!r}, arguments={{{names[0] if names else 'x'!r}: 'distributed'}}."
        )
    for name, kind in arguments.items():
        if name not in names:
            import difflib

            close = difflib.get_close_matches(str(name), names)
            hint = f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(names)}."
            raise ScheduleError(
                f"{place} names {name!r}, which {program!r} neither takes nor returns. {hint}"
            )
        if kind not in KINDS:
            raise ScheduleError(
                f"{place} wants {name!r} {kind!r}; write one of {', '.join(map(repr, KINDS))}."
            )


def held_by_caller(kind: str, extents: tuple[int, ...], ranks: int) -> Layout | None:
    """The layout in which the caller holds an argument; None where the home decides it."""
    if kind in IN_TILES:
        return None
    if kind == ROOT:
        return Layout.root(extents)
    whole = intervals.whole(extents)
    return Layout.of_boxes(Mesh(ranks=ranks), extents, [whole] * ranks)
