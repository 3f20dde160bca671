"""Proof that the ranks run all of an iteration space, each the part that the record says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import sympy
from dace.sdfg import nodes
from numpy.typing import NDArray

from distspmd.checking.lowered_accesses import Evaluator, LibrarySpace
from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box, Numbers
from distspmd.layouts.layout import Layout
from distspmd.lowering import TiledSpace

Runs = Iterator[tuple[str, Numbers, Numbers]]
"""Each parameter, what the ranks run of it, and what they have to run, shape (ranks, 2)."""


def prove_complete(space: TiledSpace) -> None:
    """Every iteration of a space is in the part of some rank."""
    if space.bounds is None:
        return
    ranges = [_range(text) for _, text in space.iterates]
    if any(each is None for each in ranges):
        return
    wanted: Box = tuple((lo, hi) for lo, hi, _ in ranges)  # type: ignore[misc]
    steps = [step for _, _, step in ranges]  # type: ignore[misc]
    parts: list[Box] = []
    for bounds in space.bounds.tolist():
        # a part ends behind its last value, and the next one begins a step later
        box = tuple(
            (lo, min(hi + step - 1, end))
            for (lo, hi), step, (_, end) in zip(bounds, steps, wanted, strict=True)
        )
        if all(hi > lo for lo, hi in bounds):
            parts.append(box)
    missing = intervals.subtract_all(wanted, [*dict.fromkeys(parts)])
    if missing:
        place = f"{space.source}: " if space.source else ""
        raise PlanError(
            f"{place}no rank runs the iterations [{intervals.box_text(missing[0])}] of "
            f"the space {space.name!r}."
        )


def _range(text: str) -> tuple[int, int, int] | None:
    parts = text.split(":")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        return None
    return (numbers[0], numbers[1], abs(numbers[2]) if len(numbers) > 2 else 1)


@dataclass
class Parts:
    """The parts of spaces in a lowered program, beside those in its record.

    Attributes:
        on_ranks: evaluates ranges of the lowered program.
    """

    on_ranks: Evaluator
    _idle: dict[str, str] = field(default_factory=dict)
    """Spaces of which nothing ran where the walk came to them, and what messages call them."""
    _ran: set[str] = field(default_factory=set)

    @property
    def _ranks(self) -> int:
        return self.on_ranks.ranks

    def prove(
        self,
        space: TiledSpace,
        node: nodes.MapEntry | LibrarySpace,
        where: str,
    ) -> None:
        """The node runs, on each rank, the part that the record says."""
        if space.bounds is None:
            return
        if isinstance(node, nodes.MapEntry):
            runs = self._parts_of_map(space, node)
        else:
            runs = self._parts_of_library_node(space, node)
        ran = True
        for parameter, found, wanted in runs:
            ran = ran and bool((found[:, 1] > found[:, 0]).any())
            wrong = np.flatnonzero((found != wanted).any(axis=1))
            if len(wrong):
                rank = int(wrong[0])
                raise PlanError(
                    f"{where} runs {parameter} from {found[rank, 0]} to {found[rank, 1]} on rank "
                    f"{rank}, which has the part from {wanted[rank, 0]} to {wanted[rank, 1]}."
                )

        if ran:
            self._ran.add(space.name)
        elif self.busy(space).any():
            self._idle[space.name] = where

    def prove_run(self) -> None:
        """Each space that the walk came to has run somewhere."""
        for name, where in self._idle.items():
            if name not in self._ran:
                raise PlanError(f"{where} never runs any iteration.")

    def _parts(self, space: TiledSpace, parameter: int) -> Numbers:
        assert space.bounds is not None
        found = np.zeros((self._ranks, 2), np.int64)
        found[: len(space.bounds)] = space.bounds[:, parameter]
        return found

    def _parts_of_map(self, space: TiledSpace, entry: nodes.MapEntry) -> Runs:
        ranges = self.on_ranks.range_of(entry)
        for d, (parameter, found) in enumerate(zip(entry.map.params, ranges, strict=True)):
            ends = entry.map.range.ranges[d]
            part = self.on_ranks.part_of(ends) if found is None else None
            most = None if part is None else self.on_ranks.within(part)
            if most is not None:  # data choose what of it runs
                yield str(parameter), *self._of_rank(space, d, most, None)
            elif found is not None:
                whole = self._of_all_ranks(space, d, ends) if self._is_chosen(*ends) else None
                yield str(parameter), *self._of_rank(space, d, found, whole)

    def _of_all_ranks(
        self, space: TiledSpace, parameter: int, ends: Sequence[sympy.Expr]
    ) -> tuple[int, int] | None:
        """What a rank with all of a space would run of a range that loops choose."""
        hull = _range(space.iterates[parameter][1])
        begin, end = map(sympy.sympify, ends[:2])
        if hull is None:
            return None
        lower = {s: hull[0] for s in begin.free_symbols if s.name in self.on_ranks.own}
        upper = {s: hull[1] for s in end.free_symbols if s.name in self.on_ranks.own}
        first = self.on_ranks.numbers(begin.subs(lower))
        last = self.on_ranks.numbers(end.subs({**upper, **lower}))
        if first is None or last is None:
            return None
        return int(first[0]), int(last[0]) + 1

    def _parts_of_library_node(self, space: TiledSpace, library: LibrarySpace) -> Runs:
        """Its indices begin at zero; in the arrays, they are as far from the record everywhere."""
        origins, busy = library.origins(), self.busy(space)
        for d, (parameter, found) in enumerate(
            zip(library.entry.map.params, self.on_ranks.range_of(library.entry), strict=True)
        ):
            for origin in origins.get(str(parameter), ()):
                begin = self.on_ranks.numbers(origin)
                if found is None or begin is None:
                    continue
                running = busy & (found[:, 1] > found[:, 0])
                part = self._parts(space, d)
                shift = (begin + found[:, 0] - part[:, 0])[running]
                runs = found + (begin - (shift.max() if len(shift) else 0))[:, None]
                whole = None
                if self._is_chosen(origin, *library.entry.map.range.ranges[d]):
                    some = runs[running] if running.any() else np.zeros((1, 2), np.int64)
                    whole = int(some[:, 0].min()), int(some[:, 1].max())
                yield str(parameter), *self._of_rank(space, d, runs, whole)

    def _is_chosen(self, *ends: sympy.Expr) -> bool:
        """Whether a loop chooses what runs, and not the rank alone."""
        symbols = {symbol.name for end in ends for symbol in sympy.sympify(end).free_symbols}
        return bool(symbols - self.on_ranks.own)

    def _of_rank(
        self, space: TiledSpace, parameter: int, runs: Numbers, whole: tuple[int, int] | None
    ) -> tuple[Numbers, Numbers]:
        """What busy ranks run of a parameter, and what they have to run by the record.

        Args:
            space, parameter: which.
            runs: first values and ends on all ranks.
            whole: what loops have chosen of its range, if they do.
        """
        part, busy = self._parts(space, parameter), self.busy(space)
        runs = np.where((busy & (runs[:, 1] > runs[:, 0]))[:, None], runs, 0)
        if whole is None:
            return runs, np.where(busy[:, None], part, 0)
        low, high = whole
        wanted = np.stack([np.maximum(part[:, 0], low), np.minimum(part[:, 1], high)], axis=1)
        return runs, np.where((busy & (wanted[:, 1] > wanted[:, 0]))[:, None], wanted, 0)

    def busy(self, space: TiledSpace) -> NDArray[np.bool_]:
        """Ranks that have a part of a space."""
        assert space.bounds is not None
        found = np.zeros(self._ranks, bool)
        found[: len(space.bounds)] = (space.bounds[:, :, 1] > space.bounds[:, :, 0]).all(axis=1)
        return found

    @staticmethod
    def prove_once(space: TiledSpace, layout: Layout, where: str) -> None:
        """Ranks that hold different operands, as a layout says, run different iterations."""
        if space.bounds is None or space.mesh.size != layout.ranks:
            return
        boxes: list[Box] = [tuple((lo, hi) for lo, hi in box) for box in space.bounds.tolist()]
        for rank, box in enumerate(boxes):
            for other in range(rank):
                both = intervals.intersect(box, boxes[other])
                if layout.operand(rank) != layout.operand(other) and not intervals.is_empty(both):
                    raise PlanError(
                        f"{where} runs the iterations [{intervals.box_text(both)}] on ranks "
                        f"{other} and {rank}, whose results are added up."
                    )
