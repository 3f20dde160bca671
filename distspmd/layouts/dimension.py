"""How one dimension of an array is split over the axes of a mesh, and over which it is partial.

The text of a split is ``tile{axes}extent``, with the axes from minor to major, and optionally
``~halo`` or ``/block`` behind it. The text of partial axes is ``+ partial(sum){y}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from distspmd.errors import LayoutError
from distspmd.layouts.intervals import Interval, Numbers
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.reductions import find_reduction


def is_count(number: object) -> bool:
    """Whether it is an integer that may be an extent: of Python or NumPy, and not below zero."""
    is_integer = type(number) is int or (
        isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    )
    return is_integer and number >= 0  # type: ignore[operator]  # which it is


def _check_names(axes: object) -> None:
    if not isinstance(axes, tuple) or not all(isinstance(axis, str) for axis in axes):
        raise LayoutError(f"axes {axes!r}: write a tuple of names of mesh axes, such as ('x',).")


@dataclass(frozen=True, slots=True)
class Split:
    """One dimension of an array: its extent, and the mesh axes that split it, minor first.

    Tile ``t`` of ``parts`` holds ``[t * tile, (t + 1) * tile)`` cut at the extent, with
    ``tile = ceil(extent / parts)``: the last tiles may be smaller or empty. A tile that is not
    empty also has the ``halo`` elements on either side, as far as the array reaches.

    With a ``block``, blocks of so many elements go to the parts in turn: part ``t`` has the
    elements ``i`` with ``i // block % parts == t``, in their order, as in ScaLAPACK.
    """

    extent: int
    axes: tuple[str, ...] = ()
    halo: int = 0
    block: int = 0

    def widened(self, lows: Numbers, highs: Numbers) -> Numbers:
        """Intervals with their halo: (intervals, 2)."""
        wide = np.where(highs > lows, self.halo, 0)
        return np.stack([np.maximum(lows - wide, 0), np.minimum(highs + wide, self.extent)], axis=1)

    def parts(self, mesh: Mesh) -> int:
        """Number of tiles along the dimension."""
        return math.prod(mesh[axis] for axis in self.axes)

    def tile(self, mesh: Mesh) -> int:
        """Extent of the largest tile."""
        if self.block:
            return self.cyclic_length(mesh, 0)
        return -(-self.extent // self.parts(mesh))

    def cyclic_length(self, mesh: Mesh, part: int) -> int:
        """The elements of a part of a block-cyclic dimension."""
        rounds, rest = divmod(self.extent, self.block * self.parts(mesh))
        return rounds * self.block + min(max(rest - part * self.block, 0), self.block)

    def __post_init__(self) -> None:
        for number in (self.extent, self.halo, self.block):
            if not is_count(number):
                raise LayoutError(
                    f"Split({self.extent!r}, {self.axes!r}, halo={self.halo!r}, "
                    f"block={self.block!r}): {number!r} is no number of elements; "
                    "there is no negative extent."
                )
        _check_names(self.axes)
        if self.block < 0 or (self.block and self.halo):
            raise LayoutError(
                f"{self}: block-cyclic blocks have at least one element, and no halo."
            )

    def index(self, mesh: Mesh, coordinates: Mapping[str, int]) -> int:
        """Which part a rank has."""
        index = 0
        for axis in reversed(self.axes):
            index = index * mesh[axis] + coordinates[axis]
        return index

    def interval(self, mesh: Mesh, coordinates: Mapping[str, int]) -> Interval:
        """Indices that a rank holds of a dimension that is not block-cyclic."""
        index, tile = self.index(mesh, coordinates), self.tile(mesh)
        lo, hi = min(index * tile, self.extent), min((index + 1) * tile, self.extent)
        return (max(0, lo - self.halo), min(self.extent, hi + self.halo)) if lo < hi else (lo, hi)

    def length(self, mesh: Mesh, coordinates: Mapping[str, int]) -> int:
        """How many indices a rank holds."""
        if self.block:
            return self.cyclic_length(mesh, self.index(mesh, coordinates))
        lo, hi = self.interval(mesh, coordinates)
        return hi - lo

    def text(self, mesh: Mesh) -> str:
        """As in the text of a layout."""
        behind = f"~{self.halo}" if self.halo else f"/{self.block}" if self.block else ""
        if not self.axes:
            return f"{self.extent}{behind}"
        return f"{self.tile(mesh)}{{{','.join(self.axes)}}}{self.extent}{behind}"


@dataclass(frozen=True, slots=True)
class Partial:
    """Each rank holds an operand of a reduction.

    Ranks that differ on ``axes`` hold different operands; ``None`` stands for all ranks. Ranks that
    agree on them hold the same operand, as replicas.
    """

    reduction: str
    axes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        find_reduction(self.reduction)
        if self.axes is not None:
            _check_names(self.axes)

    def __str__(self) -> str:
        return f"partial({self.reduction})" + (
            "" if self.axes is None else f"{{{','.join(self.axes)}}}"
        )


_PARTIAL = re.compile(r"partial\((\w+|lambda .+)\)(?:\{([\w,\s]*)\})?\Z")
_DIGITS = 20
"""Of a number of elements: with more it has no place in 64 bits."""
_SPLIT = re.compile(r"(?:(\d+)\s*\{([\w,\s]*)\}\s*)?(\d+)(?:\s*~\s*(\d+)|\s*/\s*([1-9]\d*))?\Z")


def items(text: str, separator: str = ",") -> list[str]:
    """Parts of a text between separators outside braces."""
    depth, items = 0, [""]
    for character in text:
        depth += (character == "{") - (character == "}")
        if character == separator and depth == 0:
            items.append("")
        else:
            items[-1] += character
    found = [item.strip() for item in items]
    if "" in found and len(found) > 1:
        raise LayoutError(f"there is nothing between two {separator!r} in {text.strip()!r}.")
    return [item for item in found if item]


def parse_partial(text: str) -> tuple[str, Partial | None]:
    """The text before what says that a layout is partial, and that."""
    text = text.strip()
    at = text.rfind("partial(")
    before, plus, between = text[: max(at, 0)].rpartition("+")
    match = _PARTIAL.match(text, at) if plus and not between.strip() else None
    if match is None:
        return text, None
    axes = None if match[2] is None else tuple(items(match[2]))
    return before.strip(), Partial(match[1], axes)


def parse_split(item: str, text: str, mesh: Mesh) -> Split:
    """Read one dimension of a text.

    Raises:
        LayoutError: not of the form, an unknown axis, or a wrong tile.
    """
    match = _SPLIT.match(item)
    if not match or any(len(number or "") > _DIGITS for number in match.group(1, 3, 4, 5)):
        raise LayoutError(f"layout {text!r}: {item!r} is not tile{{axes}}extent, such as 3{{x}}12.")
    extent, halo, block = (int(match[group] or 0) for group in (3, 4, 5))
    split = Split(extent, tuple(items(match[2] or "")), halo, block)
    for axis in split.axes:
        if axis not in mesh.names:
            raise LayoutError(
                f"layout {text!r}: no axis {axis!r} in the mesh {mesh}: write one of "
                f"{', '.join(mesh.names) or 'none'}."
            )
    if match[1] is not None and int(match[1]) != split.tile(mesh):
        raise LayoutError(
            f"layout {text!r}: the tile of {item!r} is {match[1]}, but {split.extent} over "
            f"{split.parts(mesh)} parts gives {split.tile(mesh)}."
        )
    return split
