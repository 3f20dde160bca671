"""Tiles are filled with the neutral element of a reduction before ranks reduce into them."""

from __future__ import annotations

import numpy as np
from dace import Memlet, SDFGState, dtypes
from dace.sdfg import nodes

from distspmd.expressions.cpp import literal
from distspmd.layouts.reductions import find_reduction
from distspmd.passes.tiles import TileWindow


def add_identity(
    state: SDFGState,
    tile: str,
    name: str,
    window: TileWindow,
    after: nodes.AccessNode | None = None,
) -> nodes.AccessNode:
    """Add a map that fills the window of a tile; returns the node that it writes.

    Args:
        state: where to add it.
        tile: the container.
        name: of the reduction.
        window: the rank's part of the container.
        after: the node that it comes after, if any.
    """
    dtype: dtypes.typeclass = state.sdfg.arrays[tile].dtype
    element = np.dtype(dtype.as_numpy_dtype())
    neutral = find_reduction(name).identity(element)
    parameters = [f"__i{d}" for d in range(len(window.lower))]
    ends = zip(parameters, window.lower, window.upper, strict=True)
    node = state.add_access(tile)
    _, entry, _ = state.add_mapped_tasklet(
        f"neutral_{tile}",
        {p: f"{lower}:{upper}" for p, lower, upper in ends},
        {},
        f"__out = {literal(neutral, element)};",
        {"__out": Memlet(data=tile, subset=", ".join(parameters))},
        language=dtypes.Language.CPP,
        external_edges=True,
        output_nodes={tile: node},
    )
    if after is not None:
        state.add_nedge(after, entry, Memlet())
    return node
