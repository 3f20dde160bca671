"""Where the caller holds arguments and results at a call: on rank 0, on every rank, or in tiles.

The tiles are those of a layout that the caller gives, or else of the home. What is `"gathered"` is
in tiles, as what is `"distributed"`; copies that ranks gather of it are freed while others are
gathered, and made again (:mod:`distspmd.passes.gathered_copies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from distspmd.errors import ScheduleError, describe
from distspmd.layouts import intervals, relations
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.schedule import HOLDINGS, Holding

KINDS = HOLDINGS
ROOT, REPLICATED, DISTRIBUTED, GATHERED = KINDS
IN_TILES = (DISTRIBUTED, GATHERED)


def check_arguments(
    program: str, names: Sequence[str], arguments: object, place: str = "arguments="
) -> None:
    """Whether a mapping from arguments and results to how they are held fits a program.

    Args:
        program: its name, for messages.
        names: its arguments and results.
        arguments: the mapping.
        place: where it is written, for messages.

    Raises:
        ScheduleError: no mapping, an argument that the program does not have, or an unknown kind,
            or a layout in which no array can be held.
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
        if isinstance(kind, Layout):
            _check_layout(f"{place} wants {name!r} in {kind}", kind)
        elif kind not in KINDS:
            raise ScheduleError(
                f"{place} wants {name!r} {kind!r}; write one of {', '.join(map(repr, KINDS))}, or "
                "a distspmd.layouts.Layout."
            )


def _check_layout(said: str, layout: Layout) -> None:
    """See to it that ranks can hold values in a layout, all of them."""
    if layout.partial:
        raise ScheduleError(
            f"{said}: a caller holds values, not operands of a sum. Leave {layout.partial} out."
        )
    if layout.is_block_cyclic:
        raise ScheduleError(
            f"{said}, whose tiles are no boxes. Let the schedule deal the space that writes it, "
            "with distspmd.layouts.cyclic and 'distributed' here; or write a layout of blocks, and "
            "call distspmd.redistribute."
        )
    if not relations.covers(layout, np.array([intervals.whole(layout.extents)], np.int64)):
        raise ScheduleError(f"{said}, in which no rank has some of it. Write a layout of all.")


def is_tile(kind: Holding) -> bool:
    """Whether what a rank passes or gets is a tile, whose shape is not that of the array."""
    return isinstance(kind, Layout) or kind in IN_TILES


def ranks_of(arguments: Mapping[str, Holding], there_are: int = 1) -> int:
    """How many ranks there must be for the layouts that a caller gives.

    Args:
        arguments: how the caller holds them.
        there_are: ranks, each of which has what is replicated, even where few ranks compute.
    """
    found = [kind.ranks for kind in arguments.values() if isinstance(kind, Layout)]
    return max([1, *found, *[there_are] * (REPLICATED in arguments.values())])


def held_by_caller(
    kind: Holding, extents: tuple[int, ...], ranks: int, said: str = ""
) -> Layout | None:
    """The layout in which the caller holds an argument; None where the home decides it.

    Args:
        kind: as it was asked for.
        extents: of the argument.
        ranks: of the grids.
        said: what was asked, for messages.

    Raises:
        ScheduleError: a layout of another array.
    """
    if isinstance(kind, Layout):
        if kind.extents != extents:
            raise ScheduleError(
                f"{said} in {kind}, a layout of {list(kind.extents)}, but the program has "
                f"{list(extents)} of it. Write a layout of that array."
            )
        return kind
    if kind in IN_TILES:
        return None
    if kind == ROOT:
        return Layout.root(extents)
    whole = intervals.whole(extents)
    return Layout.of_boxes(Mesh(ranks=ranks), extents, [whole] * ranks)
