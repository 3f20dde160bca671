"""Tells maps whose iterations hand on what they wrote how ranks do so: in blocks, and to whom.

The map stays as it is, over the rank's part of its range; what code it becomes is decided when it
is compiled (:mod:`distspmd.codegen.pipelines`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from dace import dtypes
from dace.sdfg import nodes
from numpy.typing import NDArray

from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.loop_runs import times_exactly
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.wavefronts import handing_of
from distspmd.analysis.work import tile_work
from distspmd.nodes.handing_on import HandingOn, handed_on
from distspmd.passes.compilation import Compilation
from distspmd.passes.tiles import End
from distspmd.plans.pipeline import Pipeline, chains_of


@dataclass(frozen=True)
class FormPipelines:
    """Chooses the blocks of each pipeline, and tells its map."""

    name: str = "form-pipelines"

    def apply(self, compilation: Compilation) -> None:
        """Mark the maps in place, and collect the pipelines."""
        found = []
        for space in compilation.spaces:
            body = handed_on(space.state, space.node)
            if body is None:
                continue
            pipeline = _pipeline(compilation, space, body[1])
            if pipeline.is_split:
                _tell(compilation, space, *body, pipeline)
                found.append((pipeline, body[1]))
        compilation.pipelines = found


def _pipeline(compilation: Compilation, space: IterationSpace, mark: HandingOn) -> Pipeline:
    """How the ranks of a space run it."""
    tiling = compilation.tiled[space.name].tiling
    chains = chains_of(tiling.lower[:, 0], tiling.idle, _groups(tiling))
    handing = handing_of(space)
    assert handing is not None
    tiled = compilation.tiled[space.name]
    work = tile_work(space, tiled.tiling, tiled.uses, compilation.works, compilation.dtypes)
    bounds = np.stack([tiling.lower[:, 0], tiling.upper[:, 0]], axis=1)
    bounds[tiling.idle] = 0
    rows = int((bounds[:, 1] - bounds[:, 0]).max())
    parts = max((len(chain) for chain in chains), default=1)
    machine = compilation.machine
    own = work.seconds(machine) / max(1, work.times)
    return Pipeline(
        ", ".join(dict.fromkeys(rim.data for rim in mark.rims if rim.depth)),
        str(space.parameters[0]),
        handing,
        handing.width(machine, parts, rows, own),
        int(space.ranges[0].begin),
        tuple((int(first), int(end)) for first, end in bounds),
        chains,
        max((rim.depth for rim in mark.rims), default=0),
        work,
        source=str(space.source or ""),
        times=times_exactly(space.state),
    )


def _groups(tiling: Tiling) -> NDArray[np.int64]:
    """A number for each rank; those with the same one differ along what splits the map alone."""
    found = np.zeros(tiling.mesh.size, np.int64)
    for axis in tiling.mesh.names:
        if axis not in tiling.splits[0]:
            found = found * tiling.mesh[axis] + tiling.mesh.grid[axis]
    return found


def _tell(
    compilation: Compilation,
    space: IterationSpace,
    nested: nodes.NestedSDFG,
    mark: HandingOn,
    pipeline: Pipeline,
) -> None:
    """Write into the mark what the code of a rank needs."""
    tiling, symbols = compilation.tiled[space.name].tiling, compilation.symbols
    before, behind = (np.full(tiling.mesh.size, -1, np.int64) for _ in range(2))
    for chain in pipeline.chains:
        for one, other in itertools.pairwise(chain):
            behind[one], before[other] = other, one
    first, end = symbols.part(space.name, space.parameters[0], 0, tiling)
    ends: dict[str, End] = {
        "first": first,
        "last": end - 1,
        "before": symbols.end(f"{space.name}_before", before),
        "behind": symbols.end(f"{space.name}_behind", behind),
    }
    for name, value in ends.items():
        setattr(mark, name, str(value))
        for symbol in map(str, value.free_symbols):
            if symbol not in nested.sdfg.symbols:
                nested.sdfg.add_symbol(symbol, dtypes.int64)
            nested.symbol_mapping[symbol] = next(s for s in value.free_symbols if str(s) == symbol)
    mark.blocks, mark.width = pipeline.blocks, pipeline.width
