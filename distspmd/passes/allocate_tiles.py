"""Gives every container the tile of its home, with global indices.

before -> after:  ``x: [12, 8]``  ->  ``x_tile: [x_tile_lo0:x_tile_hi0, 0:8]``
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy
from dace import SDFG, Memlet, data, dtypes

from distspmd.analysis.tiling import Tiling
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.passes.tiles import Symbols, TileWindow, add_tile
from distspmd.placement.homes import Home


@dataclass
class AllocatedTiles:
    """The tiles of an SDFG: those of the homes, and copies in the layouts of uses."""

    sdfg: SDFG
    symbols: Symbols
    of_homes: dict[str, str] = field(default_factory=dict)
    """Tile of the home of each container that does not live at the root."""
    layouts: dict[str, Layout] = field(default_factory=dict)
    """Layout of each tile."""
    tilings: Mapping[str, Tiling] = field(default_factory=dict)
    """Tiling of each space, by its name."""

    def of(self, container: str) -> str:
        """The tile of the home of a container; the container itself where it lives at the root."""
        return self.of_homes.get(container, container)

    def add(self, name: str, like: data.Data, layout: Layout) -> str:
        """A new transient, like a container, that holds the tile of each rank; its name."""
        tile = add_tile(self.sdfg, name, like, layout, self.symbols)
        self.layouts[tile] = layout
        return tile

    def describe(self, name: str, layout: Layout) -> None:
        """Give a container that the caller holds in tiles the descriptor of a tile."""
        if all(box == intervals.whole(layout.extents) for box in layout.holders()):
            return
        tile = self.add(name, self.sdfg.arrays[name], layout)
        described = self.sdfg.arrays.pop(tile)
        described.transient = False
        described.lifetime = dtypes.AllocationLifetime.Scope
        self.sdfg.arrays[name] = described
        self.layouts[name] = self.layouts.pop(tile)
        self.of_homes[name] = name

    def whole(self, name: str) -> Memlet:
        """All of a container that the rank holds."""
        return Memlet(data=name, subset=self.window(name).subset())

    def window(self, name: str) -> TileWindow:
        """The part of a container that the rank holds."""
        if name in self.layouts:
            return self.symbols.window(name, self.layouts[name])
        shape = self.sdfg.arrays[name].shape
        return TileWindow((sympy.Integer(0),) * len(shape), tuple(map(sympy.sympify, shape)))


def allocate_tiles(
    sdfg: SDFG, homes: Mapping[str, Home], symbols: Symbols, tilings: Mapping[str, Tiling]
) -> AllocatedTiles:
    """Add the tiles of all homes; the containers stay, for the caller's arrays and for copies."""
    tiles = AllocatedTiles(sdfg, symbols, tilings=tilings)
    for name, home in homes.items():
        if home.at_caller:
            tiles.describe(name, home.layout)
        else:
            tiles.of_homes[name] = tiles.add(f"{name}_tile", sdfg.arrays[name], home.layout)
    return tiles


def scalar_to_array(sdfg: SDFG, name: str) -> None:
    """Make a scalar an array of one element: all arguments are pointers, complex ones too."""
    scalar = sdfg.arrays[name]
    if isinstance(scalar, data.Scalar):
        sdfg.arrays[name] = data.Array(scalar.dtype, (1,), transient=scalar.transient)
