"""Arguments that stay on the ranks between calls, of those that a program is bound to on rank 0.

Each rank has its box of the layout in which the caller holds the argument. If rank 0 holds the
whole argument, its box is the live memory itself, which has the values after each call. If rank 0
holds a tile, the live memory has the values after :meth:`Residents.collect`. Of some there is no
live memory: what the ranks hold is all there is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import ArgumentError, listed
from distspmd.layouts import intervals
from distspmd.layouts.common_dimensions import in_common_dimensions
from distspmd.layouts.layout import Layout

Arrays = Mapping[str, NDArray[Any]]


class Residents:
    """The ranks' own storage for arguments that the caller does not pass.

    Args:
        comm: of the ranks.
        layouts: by name, in which layout the argument stays.
        dtypes: likewise, of what.
        new_tile: gives zeros in the memory where the program wants them.
        without_memory: names of those that have no live memory.

    Attributes:
        tiles: by name, what this rank has besides the live memory.
        layouts: by name, in which layout the argument stays.
        without_memory: names of those that have no live memory.
        fresh: names of those of which the ranks have the values that count; the same on all ranks.
    """

    def __init__(
        self,
        comm: Any,
        layouts: Mapping[str, Layout],
        dtypes: Mapping[str, np.dtype[Any]],
        new_tile: Callable[[str, tuple[int, ...], np.dtype[Any]], Any],
        without_memory: Collection[str] = (),
    ) -> None:
        self._comm = comm
        self._dtypes = dtypes
        self.layouts = layouts
        self.without_memory = frozenset(without_memory)
        self.fresh: set[str] = set()
        rank = comm.Get_rank()
        self.tiles: dict[str, NDArray[Any]] = {
            name: new_tile(name, intervals.shape(layout.box(rank)), dtypes[name])
            for name, layout in layouts.items()
            if rank < layout.ranks and not (rank == 0 and self.is_live(name))
        }

    def is_live(self, name: str) -> bool:
        """Whether what rank 0 has of an argument is the live memory itself."""
        return name not in self.without_memory and _all_on_root(self.layouts[name])

    @property
    def missing(self) -> list[str]:
        """Those that the ranks have yet to be given, in an order that is the same on all."""
        return [name for name in self.layouts if name not in self.fresh]

    def distribute(self, live: Arrays) -> None:
        """Give all ranks what the live memory on rank 0 holds, where they do not have it yet.

        All ranks call it together.

        Raises:
            ArgumentError: nobody has values for some of them.
        """
        lacking = [name for name in self.missing if name in self.without_memory]
        if lacking:
            raise ArgumentError(
                f"{listed(lacking)}: nobody has values of these yet, for their device is 'meta'. "
                "All ranks call frontend.initialize(program), or frontend.load(program, path), "
                "before they call the program."
            )
        for name in self.missing:
            layout = self.layouts[name]
            target = _elsewhere(layout) if _all_on_root(layout) else layout
            self._move(name, live.get(name), Layout.root(layout.extents), target, self.tiles)
            self.fresh.add(name)

    def collect(self, live: Arrays, names: Collection[str] | None = None) -> None:
        """Bring what the ranks hold into the live memory on rank 0; all ranks call it together."""
        for name, layout in self.layouts.items():
            wanted = name in self.fresh and (names is None or name in names)
            if wanted and not _all_on_root(layout) and name not in self.without_memory:
                root = Layout.root(layout.extents)
                self._move(name, self.tiles.get(name), layout, root, live)

    def take(self, others: Residents, pairs: Mapping[str, str], live: Arrays, its: Arrays) -> None:
        """Take over what the ranks hold for another program, of the same live tensors.

        Where both hold it alike, they share it from now on; else it moves from rank to rank. All
        ranks call it together.

        Args:
            others: of the other program, which has not the values that count any more.
            pairs: names here, and there.
            live: the live memory on rank 0 behind what is here.
            its: behind what is there.
        """
        lost = {theirs for theirs in pairs.values() if theirs in others.fresh}
        apart = set(lost)
        for mine, theirs in pairs.items():
            if theirs not in lost or mine not in self.layouts:
                continue
            source, target = others.layouts[theirs], self.layouts[mine]
            if source == target:
                shared = others.tiles.get(theirs)
                if shared is not None:
                    self.tiles[mine] = shared
            elif alike := _of_same_elements(source, target):
                tile = others.tiles.get(theirs, its.get(theirs))
                into = self.tiles if mine in self.tiles else live
                self._move(mine, tile, *alike, into)
            elif mine in self.without_memory:
                self._move_whole(mine, others.tiles.get(theirs), source)
            else:  # through the live memory
                continue
            apart.discard(theirs)
            self.fresh.add(mine)
        others.collect(its, apart)
        others.fresh -= lost

    def _move_whole(self, name: str, tile: NDArray[Any] | None, source: Layout) -> None:
        """Take over what is held with other dimensions: as a whole on rank 0, which says so."""
        dtype, target = self._dtypes[name], self.layouts[name]
        if self._comm.Get_rank() == 0:
            nbytes = math.prod(source.extents) * dtype.itemsize
            warnings.warn(
                f"{name!r}: rank 0 holds all {nbytes} bytes of it "
                f"for a moment, because the ranks have {source} of it for one program and need "
                f"{target} for another, which are no boxes in common dimensions. Parts that end "
                "where those of the other program do go from rank to rank.",
                stacklevel=2,
            )
        root = Layout.root(source.extents)
        from distspmd.runtime.redistribution.redistribute import redistribute

        whole = redistribute(self._comm, tile, source, root, dtype=dtype)
        if whole is not None:
            whole = np.asarray(whole).reshape(target.extents)
        self._move(name, whole, Layout.root(target.extents), target, self.tiles)

    def _move(
        self,
        name: str,
        tile: NDArray[Any] | None,
        source: Layout,
        target: Layout,
        into: Arrays,
    ) -> None:
        dtype, rank = self._dtypes[name], self._comm.Get_rank()
        own, out = _folded(tile, source, rank), _folded(into.get(name), target, rank)
        from distspmd.runtime.redistribution.redistribute import redistribute

        redistribute(self._comm, own, source, target, out=out, dtype=dtype)


def _of_same_elements(source: Layout, target: Layout) -> tuple[Layout, Layout] | None:
    """Layouts between which the elements can move as they are; None if parts are no boxes then."""
    if source.extents == target.extents:
        return source, target
    return in_common_dimensions(source, target)


def _folded(array: Any, layout: Layout, rank: int) -> Any:
    """The same memory with the dimensions of a layout, which may split some of those it has."""
    on_host = isinstance(array, np.ndarray)
    if not on_host:
        from distspmd.runtime.devices.arrays import DeviceArray
    if rank >= layout.ranks or not (on_host or isinstance(array, DeviceArray)):
        return array
    shape = intervals.shape(layout.box(rank))
    if array.shape == shape or math.prod(array.shape) != math.prod(shape):
        return array
    if not on_host:
        return array.reshape(shape)
    view = array.view()
    view.shape = shape  # which raises where the memory would be copied
    return view


def _all_on_root(layout: Layout) -> bool:
    return layout.box(0) == intervals.whole(layout.extents)


def _elsewhere(layout: Layout) -> Layout:
    """The same without rank 0."""
    boxes = [intervals.empty(len(layout.extents)), *layout.boxes[1:]]
    return Layout.of_boxes(layout.mesh, layout.extents, boxes)
