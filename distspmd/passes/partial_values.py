"""Partial values: containers whose operands may stay on their ranks, and who could run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from dace import SDFG

from distspmd.analysis.constraints import uses
from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.errors import UnsupportedProgram
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout, Partial
from distspmd.lowering import Choice, Reason
from distspmd.placement.homes import operand_layout, same_operands
from distspmd.placement.propagation import Tiled, follow

Weigh = Callable[[str, Sequence[Use]], float]
"""Traffic of the home of a container that has some uses."""
WHY = Choice(Reason.OPERANDS)


@dataclass
class PartialValues:
    """The partial values of a program, as its spaces are tiled.

    Attributes:
        sdfg: the program.
        spaces: in program order.
        tiled: all of them.
        weigh: what decides; knows the containers of the SDFG.
    """

    sdfg: SDFG
    spaces: list[IterationSpace]
    tiled: dict[str, Tiled]
    weigh: Weigh

    def __post_init__(self) -> None:
        self.uses: dict[str, list[Use]] = {}
        """Of each container, in program order."""
        self.layouts: dict[str, Layout] = {}
        """Of each container that may stay partial, to be added up."""
        self.index()

    def index(self) -> None:
        """Find uses and layouts again, after a change of spaces."""
        self.places = {space.name: place for place, space in enumerate(self.spaces)}
        self.uses.clear()
        for space in self.spaces:
            for use in self.tiled[space.name].uses:
                self.uses.setdefault(use.data, []).append(use)
        self.layouts.clear()
        for data in self.uses:
            self._find_layout(data)

    def tile(self, name: str, tiled: Tiled) -> None:
        """Let a space be tiled otherwise."""
        old, self.tiled[name] = self.tiled[name], tiled
        for data in dict.fromkeys(use.data for use in (*old.uses, *tiled.uses)):
            of = dict.fromkeys([*(u.space.name for u in self.uses.get(data, ())), name])
            names = sorted(of, key=self.places.__getitem__)
            self.uses[data] = [u for n in names for u in self.tiled[n].uses if u.data == data]
            self._find_layout(data)

    def _find_layout(self, data: str) -> None:
        found = self.uses[data]
        layout = operand_layout(found) if self._may_stay(data, found) else None
        if layout is None:
            self.layouts.pop(data, None)
        else:
            self.layouts[data] = layout

    def _may_stay(self, data: str, found: Sequence[Use]) -> bool:
        added = any(not isinstance(use, Read) and use.reduction == "sum" for use in found)
        return added and self.kind(data) in "iufc" and bool(self.sdfg.arrays[data].transient)

    def kind(self, data: str) -> str:
        """The kind of the type of a container, as NumPy has it."""
        return str(np.dtype(self.sdfg.arrays[data].dtype.as_numpy_dtype()).kind)

    def read(self, space: IterationSpace) -> list[str]:
        """Partial values that a space reads as values."""
        if space.state.sdfg is not self.sdfg or is_control_value(space.node):
            return []
        own = self.tiled[space.name].uses
        touched = [use for use in own if not reads_operands(use) and use.data in self.layouts]
        bad = {use.data for use in touched if not _reads_known_boxes(use)}
        return list(dict.fromkeys(use.data for use in touched if use.data not in bad))

    def spared(self, before: Sequence[Use], after: Sequence[Use], like: Mapping[str, str]) -> float:
        """How much less traffic there is with some uses in the place of others.

        Args:
            before: those that are replaced.
            after: what replaces them.
            like: of containers that are not there yet, one that is like each.
        """
        gone = {id(use) for use in before}
        old = new = 0.0
        for data in dict.fromkeys(use.data for use in (*before, *after)):
            known = self.uses.get(data, [])
            if known:
                old += self.weigh(data, known)
            left = [use for use in known if id(use) not in gone]
            left += [use for use in after if use.data == data]
            if left:
                new += self.weigh(like.get(data, data), left)
        return old - new

    def on_operands(self, space: IterationSpace, read: Sequence[str]) -> Tiled | None:
        """The space as it runs on the operands of what it reads; None where they do not fit."""
        layout = self.layouts[read[0]]
        tiling = self.beside(space, read[0])
        if tiling is None or layout.partial is None:
            return None
        try:
            found = uses(space, tiling)
        except UnsupportedProgram:
            return None
        made: list[Use] = []
        for use in found:
            if use.data in read or not isinstance(use, Read):
                if use.reduction not in (None, layout.partial.reduction):
                    return None
                use = replace(use, layout=_with_operands(use.layout, layout.partial))
            if use.data in read and not same_operands(use.layout, self.layouts[use.data]):
                return None
            match use:
                case Update() | Write(exact=False) | Write(accumulates=True):
                    return None
            made.append(use)
        return Tiled(tiling, made, WHY)

    def beside(self, space: IterationSpace, data: str) -> Tiling | None:
        """The tiling in which a space reads of a partial value what the rank has of it."""
        layout = self.layouts[data]
        own = next(use for use in self.tiled[space.name].uses if use.data == data)
        writer, made = self.writer(data)
        mesh, splits = follow(space, own, made, writer.tiling)
        assert layout.partial is not None
        summed = set(layout.partial.axes or mesh.names)
        if summed & {axis for axes in splits for axis in axes}:
            return None
        return without(Tiling.of(space.ranges, mesh, splits), layout)

    def writer(self, data: str) -> tuple[Tiled, Use]:
        """A space that writes operands of a container, and how it does."""
        return next(
            (self.tiled[space.name], use)
            for space in self.spaces
            for use in self.tiled[space.name].uses
            if use.data == data and isinstance(use, Write) and use.layout.partial
        )


def reads_operands(use: Use) -> bool:
    """Whether the ranks read operands of a reduction, each its own."""
    return isinstance(use, Read) and use.layout.partial is not None


def _with_operands(layout: Layout, partial: Partial) -> Layout:
    """A layout whose tiles are operands, also along axes along which they were before."""
    names = layout.mesh.names
    if layout.partial is not None:
        own = [set(each.axes or names) for each in (layout.partial, partial)]
        both = own[0] | own[1]
        partial = replace(partial, axes=tuple(axis for axis in names if axis in both))
    return Layout.of_boxes(layout.mesh, layout.extents, layout.boxes, partial)


def _reads_known_boxes(use: Use) -> bool:
    """Whether a use is a read of which each rank knows before the run what it reads."""
    return isinstance(use, Read) and not use.inspection and not use.approximate


def without(tiling: Tiling, layout: Layout) -> Tiling:
    """The tiling, with nothing to do for ranks that hold no operand."""
    nothing = np.array([intervals.is_empty(box) for box in layout.boxes])
    upper = np.where(nothing[:, None], tiling.lower, tiling.upper)
    return replace(tiling, upper=upper)
