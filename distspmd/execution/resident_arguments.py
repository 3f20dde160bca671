"""Arguments that stay on the ranks between calls, of those that a program is bound to on rank 0.

Each rank has its box of the layout in which the caller holds the argument. If rank 0 holds the
whole argument, its box is the live memory itself, which has the values after each call. If rank 0
holds a tile, the live memory has the values after :meth:`Residents.collect`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.runtime.redistribute import redistribute

Arrays = Mapping[str, NDArray[Any]]


class Residents:
    """The ranks' own storage for arguments that the caller does not pass.

    Args:
        comm: of the ranks.
        layouts: by name, in which layout the argument stays.
        dtypes: likewise, of what.
        new_tile: gives zeros in the memory where the program wants them.

    Attributes:
        tiles: by name, what this rank has besides the live memory.
        layouts: by name, in which layout the argument stays.
        current: whether the ranks have had the live values.
    """

    def __init__(
        self,
        comm: Any,
        layouts: Mapping[str, Layout],
        dtypes: Mapping[str, np.dtype[Any]],
        new_tile: Callable[[str, tuple[int, ...], np.dtype[Any]], Any],
    ) -> None:
        self._comm = comm
        self._dtypes = dtypes
        self.layouts = layouts
        self.current = False
        rank = comm.Get_rank()
        self.tiles: dict[str, NDArray[Any]] = {
            name: new_tile(name, intervals.shape(layout.box(rank)), dtypes[name])
            for name, layout in layouts.items()
            if rank < layout.ranks and not (rank == 0 and _all_on_root(layout))
        }

    def distribute(self, live: Arrays) -> None:
        """Give all ranks what the live memory on rank 0 holds; all ranks call it together."""
        for name, layout in self.layouts.items():
            target = _elsewhere(layout) if _all_on_root(layout) else layout
            self._move(name, live.get(name), Layout.root(layout.extents), target, self.tiles)
        self.current = True

    def collect(self, live: Arrays) -> None:
        """Bring what the ranks hold into the live memory on rank 0; all ranks call it together."""
        if not self.current:
            return
        for name, layout in self.layouts.items():
            if not _all_on_root(layout):
                root = Layout.root(layout.extents)
                self._move(name, self.tiles.get(name), layout, root, live)

    def _move(
        self,
        name: str,
        tile: NDArray[Any] | None,
        source: Layout,
        target: Layout,
        into: Arrays,
    ) -> None:
        dtype = self._dtypes[name]
        redistribute(self._comm, tile, source, target, out=into.get(name), dtype=dtype)


def _all_on_root(layout: Layout) -> bool:
    return layout.box(0) == intervals.whole(layout.extents)


def _elsewhere(layout: Layout) -> Layout:
    """The same without rank 0."""
    boxes = [intervals.empty(len(layout.extents)), *layout.boxes[1:]]
    return Layout.of_boxes(layout.mesh, layout.extents, boxes)
