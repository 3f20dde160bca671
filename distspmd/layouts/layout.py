"""Layouts: which box of an array each rank holds, and whether it holds values or operands.

The text form follows Rink et al. (arXiv 2112.01075). Each dimension is ``tile{axes}extent``, with
the axes from minor to major: ``[64{x}256, 1024]``. A halo, ``[64{x}256~1, 1024]``, or the size of
block-cyclic blocks, ``[64{x}256/8, 1024]``, follows the extent; partial axes follow everything,
``[256, 1024] + partial(sum){y}``. A layout that is not a product of blocks is written as its boxes,
``boxes[10]{0: 0:4; 1: 3:10}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from distspmd.errors import LayoutError, MeshError, describe, refuses_as
from distspmd.layouts import intervals
from distspmd.layouts.dimension import Partial as Partial
from distspmd.layouts.dimension import Split as Split
from distspmd.layouts.dimension import is_count, items, parse_partial, parse_split
from distspmd.layouts.intervals import Box, Numbers
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.recognition import recognise

MOST_ELEMENTS = 2**60
"""Of an array: their bytes can be numbered in 64 bits, whatever their type."""

_DIGITS = 20
"""Of a number in a text: with more it has no place in 64 bits."""


@dataclass(frozen=True)
class Tiles:
    """The distinct boxes of a layout, none empty.

    Attributes:
        bounds: the boxes: (tiles, dimensions, 2).
        of: number of the tile of each rank; -1 where it holds nothing.
        sides: of a grid of blocks the intervals along each dimension, tiles row-major over them.
    """

    bounds: Numbers
    of: Numbers
    sides: tuple[Numbers, ...] | None = None


@dataclass(frozen=True)
class Layout:
    """Which box of an array each of the ranks 0, 1, ... of a mesh holds.

    Either ``splits`` (a product of blocks) or ``explicit`` (a box for each rank) is given. Ranks
    outside the mesh hold nothing.

    Raises:
        LayoutError: an axis that the mesh lacks, or that is used twice; boxes outside the array.
    """

    mesh: Mesh
    extents: tuple[int, ...]
    splits: tuple[Split, ...] | None = None
    explicit: tuple[Box, ...] | None = None
    partial: Partial | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.mesh, self.extents, self.splits, self.explicit, self.partial))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __post_init__(self) -> None:
        if (self.splits is None) == (self.explicit is None):
            raise LayoutError("a layout needs either splits or boxes; both or neither were given.")
        self._check_types()
        if not self.extents or not all(map(is_count, self.extents)):
            raise LayoutError(
                f"extents {self.extents}: an array of a layout has at least one dimension, and no "
                "negative extent. Give a scalar the extents (1,)."
            )
        if math.prod(filter(None, self.extents)) > MOST_ELEMENTS:
            raise LayoutError(
                f"extents {self.extents}: an array of a layout has at most 2^60 elements."
            )
        if self.splits is not None and tuple(s.extent for s in self.splits) != self.extents:
            raise LayoutError(f"the splits {self.splits} are not those of extents {self.extents}.")
        self._check_axes()
        if self.explicit is not None:
            self._check_boxes(self.explicit)

    def _check_types(self) -> None:
        """Refuse what is of another kind, before anything is done with it."""
        given: Any = self  # of whatever types
        if not isinstance(given.mesh, Mesh):
            self._refuse("mesh", "a distspmd.layouts.Mesh")
        if not isinstance(given.extents, tuple):
            self._refuse("extents", "a tuple of integers")
        if given.splits is not None and not (
            isinstance(given.splits, tuple) and all(isinstance(s, Split) for s in given.splits)
        ):
            self._refuse("splits", "a tuple of distspmd.layouts.Split")
        if given.explicit is not None and not isinstance(given.explicit, tuple):
            self._refuse("explicit", "a tuple with the box of each rank")
        if given.partial is not None and not isinstance(given.partial, Partial):
            self._refuse("partial", "a distspmd.layouts.Partial")

    def _refuse(self, name: str, wanted: str) -> None:
        found = describe(getattr(self, name))
        raise LayoutError(f"{name} of a layout is {wanted}, but {found} was given.")

    def _check_axes(self) -> None:
        split_by = [axis for split in self.splits or () for axis in split.axes]
        partial_on = self.partial.axes or () if self.partial else ()
        used = [*split_by, *partial_on]
        for axis in used:
            if axis not in self.mesh.names:
                raise LayoutError(
                    f"no axis {axis!r} in the mesh {str(self.mesh) or 'of one rank'}: write one of "
                    f"{', '.join(self.mesh.names) or 'none'}."
                )
            if used.count(axis) > 1:
                raise LayoutError(
                    f"axis {axis!r} is used twice; an axis splits one dimension or is partial."
                )

    def _check_boxes(self, boxes: tuple[Box, ...]) -> None:
        try:
            hash(boxes)
        except TypeError:
            raise LayoutError(
                f"boxes are tuples of (lo, hi), but {describe(boxes)} has something else in it."
            ) from None
        if len(boxes) != self.mesh.size:
            raise LayoutError(f"{len(boxes)} boxes are given for {self.mesh.size} ranks.")
        whole = intervals.whole(self.extents)
        bounds = _numbers(boxes, (len(boxes), len(whole), 2))
        if bounds is not None:
            outside = (bounds < 0) | (bounds > np.array(self.extents)[:, None])
            if not outside.any():
                self.__dict__["bounds"] = bounds.astype(np.int64, copy=False)
                return
        for rank, box in enumerate(boxes):
            one = _numbers(box, (len(whole), 2))
            if one is None:
                raise LayoutError(
                    f"rank {rank} holds {describe(box)}, outside the array {self.extents}: write "
                    "(lo, hi) for each dimension."
                )
            if not intervals.contains(whole, box):
                raise LayoutError(
                    f"rank {rank} holds [{intervals.box_text(box)}], outside the array "
                    f"{self.extents}."
                )

    # -- ways to make one ---------------------------------------------------------------------

    @classmethod
    @refuses_as(LayoutError)
    def root(cls, extents: Sequence[int]) -> Layout:
        """Rank 0 has all of the array."""
        return cls(Mesh(), tuple(extents), splits=tuple(Split(extent) for extent in extents))

    @classmethod
    @refuses_as(LayoutError)
    def on_ranks(cls, layout: Layout, ranks: Sequence[int], mesh: Mesh) -> Layout:
        """A layout whose rank ``r`` is the rank ``ranks[r]`` of a mesh; the others hold nothing.

        Raises:
            LayoutError: not one rank of the mesh for each rank of the layout, or a partial layout.
        """
        if layout.partial:
            raise LayoutError(f"{layout} is partial; only layouts of values can be placed.")
        if sorted({*ranks}) != sorted(ranks) or len(ranks) != layout.ranks:
            raise LayoutError(
                f"ranks {tuple(ranks)}: {layout} needs {layout.ranks} different ranks."
            )
        if not {*ranks} <= {*range(mesh.size)}:
            raise LayoutError(f"ranks {tuple(ranks)}: the mesh {mesh} has {mesh.size} ranks.")
        boxes = [intervals.empty(len(layout.extents))] * mesh.size
        for rank, box in zip(ranks, layout.boxes, strict=True):
            boxes[rank] = box
        return cls(mesh, layout.extents, explicit=tuple(boxes))

    @classmethod
    @refuses_as(LayoutError)
    def of_boxes(
        cls,
        mesh: Mesh,
        extents: Sequence[int],
        boxes: Sequence[Box],
        partial: Partial | None = None,
    ) -> Layout:
        """The layout with these boxes: as a product of blocks where it is one."""
        bounds = _numbers(boxes, (mesh.size, len(extents), 2))
        if bounds is not None:
            return cls.of_bounds(mesh, tuple(extents), bounds, partial)
        return cls(mesh, tuple(extents), explicit=tuple(boxes), partial=partial)  # which refuses

    @classmethod
    def of_bounds(
        cls, mesh: Mesh, extents: tuple[int, ...], bounds: Numbers, partial: Partial | None = None
    ) -> Layout:
        """The layout with these boxes, (ranks, dimensions, 2): one object as long as it lives."""
        bounds = np.ascontiguousarray(bounds, dtype=np.int64)
        key = mesh, extents, partial, bounds.tobytes()
        found = _known.get(key)
        if found is None:
            taken = frozenset((partial.axes or mesh.names) if partial else ())
            splits = recognise(mesh, extents, bounds, taken)
            if splits is None:
                boxes = tuple(tuple((lo, hi) for lo, hi in box) for box in bounds.tolist())
                found = cls(mesh, extents, explicit=boxes, partial=partial)
            else:
                found = cls(mesh, extents, splits=splits, partial=partial)
            _known[key] = found
        return found

    @classmethod
    def parse(cls, text: str, mesh: Mesh) -> Layout:
        """Read the text form on a mesh; the inverse of ``str``.

        Raises:
            LayoutError: not of the form, an unknown axis, or a wrong tile.
        """
        if not isinstance(text, str) or not isinstance(mesh, Mesh):
            raise LayoutError(
                f"Layout.parse takes a text such as '[3{{x}}12, 8]' and a Mesh, but "
                f"{describe(text)} and {describe(mesh)} were given."
            )
        body, partial = parse_partial(text)
        if body.startswith("boxes"):
            extents, boxes = _parse_boxes(body, text, mesh)
            return cls(mesh, extents, explicit=boxes, partial=partial)
        if not (body.startswith("[") and body.endswith("]")):
            raise LayoutError(
                f"layout {text!r}: write [tile{{axes}}extent, ...], such as [3{{x}}12, 8]."
            )
        splits = tuple(parse_split(item, text, mesh) for item in items(body[1:-1]))
        return cls(mesh, tuple(split.extent for split in splits), splits=splits, partial=partial)

    # -- what it says -------------------------------------------------------------------------

    def __str__(self) -> str:
        if self.splits is not None:
            body = ", ".join(split.text(self.mesh) for split in self.splits)
            body = f"[{body}]"
        else:
            held = "; ".join(
                f"{rank}: {intervals.box_text(box)}"
                for rank, box in enumerate(self.boxes)
                if not intervals.is_empty(box)
            )
            body = f"boxes[{', '.join(map(str, self.extents))}]{{{held}}}"
        return f"{body} + {self.partial}" if self.partial else body

    @cached_property
    def is_blocks(self) -> bool:
        """Whether it is a product of blocks, which cut the array without overlapping."""
        return self.splits is not None and not any(s.halo or s.block for s in self.splits)

    @cached_property
    def is_block_cyclic(self) -> bool:
        """Whether a dimension is block-cyclic, so that tiles are not boxes."""
        return any(split.block for split in self.splits or ())

    def shape(self, rank: int) -> tuple[int, ...]:
        """Shape of the rank's tile."""
        if self.splits is None or rank >= self.ranks:
            return intervals.shape(self.box(rank))
        at = self.mesh.coordinates(rank)
        return tuple(split.length(self.mesh, at) for split in self.splits)

    @property
    def ranks(self) -> int:
        """Number of ranks that the layout speaks of."""
        return self.mesh.size

    @cached_property
    def bounds(self) -> Numbers:
        """Boxes as numbers: (ranks, dimensions, 2).

        Raises:
            LayoutError: the layout is block-cyclic, so its tiles are not boxes.
        """
        if self.is_block_cyclic:
            raise LayoutError(
                f"{self} is block-cyclic, so its tiles are not boxes. Use distspmd.redistribute, "
                "or plan with distspmd.planning.block_cyclic."
            )
        if self.splits is None:
            return np.array(self.explicit, dtype=np.int64)
        found = np.empty((self.ranks, len(self.splits), 2), dtype=np.int64)
        for dimension, split in enumerate(self.splits):
            tile = split.tile(self.mesh)
            low = self.indices(split.axes) * tile
            low, high = np.minimum(low, split.extent), np.minimum(low + tile, split.extent)
            found[:, dimension] = split.widened(low, high)
        return found

    @cached_property
    def tiles(self) -> Tiles:
        """The distinct boxes, and which of them each rank holds."""
        if self.splits is not None and not self.is_block_cyclic:
            return self._grid(self.splits)
        numbers: dict[Box, int] = {}
        of = np.array(
            [
                -1 if intervals.is_empty(box) else numbers.setdefault(box, len(numbers))
                for box in self.boxes
            ],
            dtype=np.int64,
        )
        bounds = np.array([*numbers], dtype=np.int64).reshape(len(numbers), len(self.extents), 2)
        return Tiles(bounds, of)

    def _grid(self, splits: tuple[Split, ...]) -> Tiles:
        of: Numbers = np.zeros(self.ranks, dtype=np.int64)
        held = np.ones(self.ranks, dtype=bool)
        sides = []
        for split in splits:
            tile = split.tile(self.mesh)
            lows = np.arange(0, split.extent, tile or 1)
            sides.append(split.widened(lows, np.minimum(lows + tile, split.extent)))
            index = self.indices(split.axes)
            held &= index < len(lows)
            of = of * len(lows) + index
        places = np.indices([len(side) for side in sides]).reshape(len(sides), -1)
        bounds = np.stack([side[at] for side, at in zip(sides, places, strict=True)], axis=1)
        return Tiles(bounds, np.where(held, of, -1), tuple(sides))

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """Box of each rank of the mesh."""
        if self.explicit is not None:
            return self.explicit
        return tuple(tuple((lo, hi) for lo, hi in box) for box in self.bounds.tolist())

    @cached_property
    def volumes(self) -> Numbers:
        """Elements of the tile of each rank of the mesh."""
        sides = self.bounds[:, :, 1] - self.bounds[:, :, 0]
        found: Numbers = np.maximum(sides, 0).prod(axis=1)
        return found

    @cached_property
    def operands(self) -> Numbers:
        """Which operand of the reduction each rank of the mesh holds."""
        if self.partial is None:
            return np.zeros(self.ranks, dtype=np.int64)
        if self.partial.axes is None:
            return np.arange(self.ranks)
        return self.indices(self.partial.axes[::-1])

    def indices(self, axes: Sequence[str]) -> Numbers:
        """Index of each rank of the mesh along axes, minor first."""
        grid = self.mesh.grid
        found: Numbers = np.zeros(self.ranks, dtype=np.int64)
        for axis in reversed(axes):
            found = found * self.mesh[axis] + grid[axis]
        return found

    def box(self, rank: int) -> Box:
        """Box that a rank holds; ``lo == hi`` where it holds nothing."""
        if rank < self.ranks:
            return self.boxes[rank]
        return intervals.empty(len(self.extents))

    def storage_shape(self) -> tuple[int, ...]:
        """Extents of what holds any rank's tile: at least 1, so that strides are valid."""
        held = self.bounds[self.volumes > 0]
        sides = (held[:, :, 1] - held[:, :, 0]).max(axis=0, initial=1)
        return tuple(sides.tolist())

    def nbytes(self, rank: int, itemsize: int) -> int:
        """Bytes of the rank's tile."""
        return itemsize * self.volume(rank)

    def volume(self, rank: int) -> int:
        """Elements of the rank's tile."""
        return math.prod(self.shape(rank))

    def operand(self, rank: int) -> int:
        """Which operand of the reduction a rank holds; 0 where the layout is not partial."""
        if self.partial is None:
            return 0
        if not 0 <= rank < self.ranks:
            raise MeshError(f"no rank {rank} in the mesh {self.mesh}, which has {self.ranks}.")
        return int(self.operands[rank])

    def same_tiles(self, other: Layout) -> bool:
        """Whether both give each rank the same box of the same array, as values (not operands)."""
        return not self.partial and not other.partial and self.same_boxes(other)

    def same_boxes(self, other: Layout) -> bool:
        """Whether both give each rank the same box of the same array, of values or operands."""
        if self.extents != other.extents:
            return False
        common = min(self.ranks, other.ranks)
        equal = (self.bounds[:common] == other.bounds[:common]).all(axis=(1, 2))
        equal |= (self.volumes[:common] == 0) & (other.volumes[:common] == 0)
        rest = (self.volumes[common:], other.volumes[common:])
        return bool(equal.all()) and not any(volumes.any() for volumes in rest)

    def one_of_each_operand(self, ranks: Sequence[int]) -> tuple[int, ...]:
        """The first of some ranks that holds each operand; one rank where all hold values."""
        first: dict[int, int] = {}
        for rank in ranks:
            first.setdefault(self.operand(rank), rank)
        return tuple(sorted(first.values()))

    def holders(self) -> dict[Box, tuple[int, ...]]:
        """Ranks that hold each distinct box that is not empty, in order of the first."""
        return self._holders

    @cached_property
    def _holders(self) -> dict[Box, tuple[int, ...]]:
        found: dict[Box, list[int]] = {}
        for rank, box in enumerate(self.boxes):
            if not intervals.is_empty(box):
                found.setdefault(box, []).append(rank)
        return {box: tuple(ranks) for box, ranks in found.items()}


_known: WeakValueDictionary[Any, Layout] = WeakValueDictionary()
"""Layouts by their boxes: what is found of one, such as which tiles it has, is found once."""


def _numbers(boxes: object, shape: tuple[int, ...]) -> Numbers | None:
    """Boxes as numbers, if they are integers of this shape."""
    try:
        found: Numbers = np.array(boxes)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.shape == shape and found.dtype.kind == "i" else None


_BOXES = re.compile(r"boxes\[([\d,\s]*)\]\s*\{(.*)\}\Z", re.DOTALL)


def _parse_boxes(body: str, text: str, mesh: Mesh) -> tuple[tuple[int, ...], tuple[Box, ...]]:
    """Extents, and the box of each rank of the mesh; ranks that are not named hold nothing."""
    match = _BOXES.match(body)
    try:
        if not match:
            raise ValueError
        extents = tuple(int(item) for item in items(match[1]))
        boxes = [intervals.empty(len(extents))] * mesh.size
        for item in items(match[2], ";"):
            if max(map(len, re.findall(r"\d+", item)), default=0) > _DIGITS:
                raise ValueError
            rank, _, held = item.partition(":")
            bounds = [tuple(map(int, interval.split(":"))) for interval in items(held)]
            boxes[range(mesh.size).index(int(rank))] = tuple((lo, hi) for lo, hi in bounds)
    except ValueError:
        raise LayoutError(
            f"layout {text!r}: write boxes[extents]{{rank: lo:hi, lo:hi; ...}} with ranks below "
            f"{mesh.size}, such as boxes[10]{{0: 0:4; 1: 3:10}}."
        ) from None
    return extents, tuple(boxes)
