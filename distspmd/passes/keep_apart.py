"""Spaces run on operands that lie apart, as experts make them, and these are reduced behind them.

before -> after:  ``h = by_expert(x, up)``, ``h -> [all-reduce]``, ``a = silu(h)``,
``y = by_expert(a, down)``, ``y -> [all-reduce]``  ->  all three on the operands,
``y -> [all-reduce]``

Where a space picks along what is split, the rank that has what is picked has the value, and the
others have zero (:mod:`distspmd.analysis.apart`). Code that makes zeros of zeros runs on such
operands, and so do spaces that pick by the same container. What is linear, and writes no more than
it reads, follows them: the rows of experts become words, of which there are fewer. All of it for
one container of picks is done together, if homes then have less traffic.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from distspmd.analysis.accesses import Access
from distspmd.analysis.apart import (
    Index,
    Owner,
    Picking,
    adds_up,
    indices,
    keeps_zero,
    picking,
    picks,
)
from distspmd.analysis.constraints import touched_by
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.linear_uses import reading
from distspmd.analysis.uses import Read, Use, Write
from distspmd.layouts import relations
from distspmd.layouts.layout import Layout
from distspmd.lowering import Reason
from distspmd.passes.compilation import Compilation
from distspmd.passes.partial_values import PartialValues, reads_operands
from distspmd.placement.homes import same_operands
from distspmd.placement.propagation import Tiled


@dataclass(frozen=True)
class KeepApart:
    """Spaces run on operands that lie apart, where that spares traffic."""

    name: str = "keep-apart"

    def apply(self, compilation: Compilation) -> None:
        """Change the tilings of spaces in place."""
        ranks = compilation.ranks

        def weigh(data: str, uses: Sequence[Use]) -> float:
            return compilation.choose_home(data, uses, ranks).traffic

        apart = _Apart(compilation.sdfg, list(compilation.spaces), dict(compilation.tiled), weigh)
        for owner in apart.owners():
            apart.keep(owner)
        compilation.tiled = {space.name: apart.tiled[space.name] for space in apart.spaces}
        compilation.apart = apart.running


@dataclass
class _Apart(PartialValues):
    """The partial values of a program, and which of them lie apart."""

    running: dict[str, Picking | None] = field(default_factory=dict)
    """Spaces that run on operands: what they pick, if what they write lies apart too."""
    touched: dict[str, Sequence[Access]] = field(default_factory=dict)
    """Accesses of spaces that were looked at."""

    def owners(self) -> list[Owner]:
        """The owners of containers that lie apart, in program order."""
        if not any(picks(space, self.tiled[space.name].tiling) for space in self.spaces):
            return []
        found = (self._picking(space) for space in self.spaces)
        owners = (pick.owner for pick in found if pick and self._is_fixed(pick.owner.member))
        return list(dict.fromkeys(owners))

    def keep(self, owner: Owner) -> None:
        """Run on operands what can, of what belongs to an owner, if that spares traffic."""
        before, running = dict(self.tiled), dict(self.running)
        changed = list(self._changes(owner))
        touched = dict.fromkeys(
            use.data
            for name in changed
            for tiled in (before[name], self.tiled[name])
            for use in tiled.uses
        )
        new = self._traffic(touched)
        kept = dict(self.tiled)
        for name in changed:
            self.tile(name, before[name])
        if new < self._traffic(touched):
            for name in changed:
                self.tile(name, kept[name])
        else:
            self.running = running

    def _traffic(self, names: Iterable[str]) -> float:
        return sum(self.weigh(name, self.uses[name]) for name in names)

    def _changes(self, owner: Owner) -> Iterator[str]:
        """Change spaces, in program order from the first that picks; their names."""
        made = {
            use.data
            for space in self.spaces
            if (pick := self._picking(space)) and pick.owner == owner
            for use in self.tiled[space.name].uses
            if isinstance(use, Write) and use.data in self.layouts
        }
        waiting = [place for data in made for place in self._readers(data)]
        heapq.heapify(waiting)
        done: set[int] = set()
        while waiting:
            place = heapq.heappop(waiting)
            if place in done:
                continue
            done.add(place)
            space = self.spaces[place]
            tiled = self._changed(space, owner)
            if tiled is None:
                continue
            self.tile(space.name, tiled)
            yield space.name
            for use in tiled.uses:
                if isinstance(use, Write):
                    for reader in self._readers(use.data):
                        heapq.heappush(waiting, reader)

    def _readers(self, data: str) -> list[int]:
        return [self.places[use.space.name] for use in self.uses[data] if isinstance(use, Read)]

    def _changed(self, space: IterationSpace, owner: Owner) -> Tiled | None:
        """The space as it runs on operands; None where it does not."""
        read = self.read(space)
        if not read:
            return None
        pick = self._picking(space)
        if pick is not None and pick.owner == owner:
            return self._reads_its_own(space, pick, read)
        if self.tiled[space.name].chosen_by.reason is Reason.SCHEDULE or space.moving:
            return None
        apart, rows = self._rows(space, owner, read)
        linear = reading(space, read, self.sdfg.arrays[read[0]].dtype)
        if apart and keeps_zero(space, apart):
            made = self.on_operands(space, apart)
        elif adds_up(space) or (linear is not None and linear.is_linear):
            made, rows = self.on_operands(space, read), None
        else:
            return None
        if made is None or _written(made) > _read(made):
            return None
        self.running[space.name] = None if rows is None else Picking(owner, rows)
        return made

    def _reads_its_own(
        self, space: IterationSpace, pick: Picking, read: Sequence[str]
    ) -> Tiled | None:
        """A space that picks, with reads of operands where it reads rows that it picked."""
        apart, rows = self._rows(space, pick.owner, read)
        own = self.tiled[space.name]
        if rows != pick.rows:
            return None
        found: list[Use] = []
        for use in own.uses:
            if isinstance(use, Read) and use.data in apart:
                layout = self.layouts[use.data]
                boxes, of = use.layout.boxes, layout.partial
                on = Layout.of_boxes(use.layout.mesh, use.layout.extents, boxes, of)
                if not same_operands(on, layout):
                    return None
                use = replace(use, layout=on)
            found.append(use)
        return replace(own, uses=found)

    def _rows(
        self, space: IterationSpace, owner: Owner, read: Sequence[str]
    ) -> tuple[list[str], Index | None]:
        """Containers apart that a space reads, all in the rows of the same parameters; these."""
        found: dict[str, Index] = {}
        for data in read:
            dimensions = self._dimensions(data, owner)
            index = self._index(space, data)
            if dimensions is not None:
                found[data] = tuple(index[d] for d in dimensions)
        rows = set(found.values())
        if len(rows) != 1 or None in (one := rows.pop()):
            return [], None
        return list(found), one

    def _dimensions(self, data: str, owner: Owner) -> tuple[int, ...] | None:
        """The dimensions of a container that its owner's member has; None if it is not apart."""
        layout = self.layouts.get(data)
        found: set[tuple[int, ...] | None] = set()
        for use in self.uses[data]:
            if isinstance(use, Read):
                continue
            pick = self.running.get(use.space.name) or self._picking(use.space)
            index = self._index(use.space, data)
            if pick is None or pick.owner != owner or layout is None:
                return None
            found.add(_placed(pick.rows, index))
        axes = layout and layout.partial and (layout.partial.axes or layout.mesh.names)
        if layout is None or set(axes or ()) != set(owner.axes) or len(found) != 1:
            return None
        return found.pop()

    def _picking(self, space: IterationSpace) -> Picking | None:
        """What a space picks by itself."""
        tiling = self.tiled[space.name].tiling
        if space.name in self.running or not picks(space, tiling):
            return None
        return picking(space, tiling, self._accesses(space))

    def _index(self, space: IterationSpace, data: str) -> Index:
        return indices(space, data, self._accesses(space))

    def _accesses(self, space: IterationSpace) -> Sequence[Access]:
        if space.name not in self.touched:
            self.touched[space.name] = touched_by(space)[0]
        return self.touched[space.name]

    def _is_fixed(self, member: str) -> bool:
        """Whether a container has one value in the whole run, from its write on."""
        writes = [use for use in self.uses[member] if not isinstance(use, Read)]
        once = len(writes) == 1 and writes[0].certain and writes[0].times == 1
        return not writes or (once and bool(self.sdfg.arrays[member].transient))


def _placed(rows: Index, index: Index) -> tuple[int, ...] | None:
    """The dimension that each of some parameters indexes; None if one of them indexes none."""
    return None if set(rows) - set(index) else tuple(index.index(row) for row in rows)


def _written(tiled: Tiled) -> int:
    return sum(_elements(use) for use in tiled.uses if not isinstance(use, Read))


def _read(tiled: Tiled) -> int:
    return sum(_elements(use) for use in tiled.uses if reads_operands(use))


def _elements(use: Use) -> int:
    return int(relations.volumes(use.layout.bounds).sum())
