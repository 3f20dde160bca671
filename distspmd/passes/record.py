"""The record of a lowering: grids, homes, planned memlets, and what symbols are on each rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dace.sdfg.graph import generate_element_id

from distspmd.analysis.control_values import is_control_value
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.loop_runs import times, times_exactly
from distspmd.analysis.row_sets import flat_parts
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Write, asked_elements
from distspmd.analysis.work import line_exchange, matrix_call, tile_work
from distspmd.dace_compat.carried import carry
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout
from distspmd.lowering import (
    ContainerHome,
    Graphs,
    Lowering,
    PlannedMemlet,
    SpaceOrigin,
    TiledSpace,
)
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.host_call import HostCall
from distspmd.nodes.lapack import COLUMNS
from distspmd.nodes.lapack_together import ROWS, LapackTogether
from distspmd.nodes.line_in_parts import LineInParts
from distspmd.nodes.scatter import Scatter
from distspmd.passes.compilation import Compilation
from distspmd.passes.deal_blocks import asked_by
from distspmd.passes.movement import Movement
from distspmd.passes.remarks import remarks
from distspmd.placement.argument_layouts import ROOT
from distspmd.placement.homes import Home
from distspmd.placement.propagation import Tiled
from distspmd.planning.select import Solution, select_plan
from distspmd.plans.line_exchange import LineExchange
from distspmd.plans.matrix_calls import exchange_of
from distspmd.plans.matrix_exchange import MatrixExchange
from distspmd.plans.pipeline import Pipeline
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.scattered_write import ScatteredWrite
from distspmd.plans.tile_work import TileWork
from distspmd.schedule import Axes, Holding
from distspmd.solvers.exchange import Exchange


@dataclass(frozen=True)
class RecordDecisions:
    """Makes the record, and tells each distributed memlet which plan it carries out."""

    name: str = "record"

    def apply(self, compilation: Compilation) -> None:
        """Attach the record to the SDFG, and keep it in the compilation."""
        homes, dtypes, named = compilation.homes, compilation.dtypes, compilation.named
        fetches = compilation.fetches
        tiled = compilation.tiled
        work = {
            space.name: tile_work(
                space,
                tiled[space.name].tiling,
                tiled[space.name].uses,
                compilation.works,
                dtypes,
            )
            for space in compilation.spaces
        }
        known: dict[bytes, Numbers] = {}
        _tell_apart(compilation.spaces)
        lowering = Lowering(
            spaces=tuple(
                replace(
                    _record_space(space, tiled[space.name], space.name in named, work[space.name]),
                    asked=_asked(space, tiled[space.name].tiling, compilation),
                    bounds=_bounds(tiled[space.name].tiling, known),
                )
                for space in compilation.spaces
            ),
            homes=tuple(
                _record_home(home, dtypes[home.data], compilation.stores[home.data])
                for home in homes.values()
            ),
            memlets=tuple(
                _record_move(move, compilation.solutions) for move in compilation.movements
            ),
            fetches=tuple(_record_fetch(fetch, compilation) for fetch in fetches),
            row_exchanges=tuple(compilation.row_exchanges),
            symbols=compilation.symbols.values,
            approximate=tuple(_approximations(compilation.tiled, fetches)),
            call_form=compilation.call_form,
            written=frozenset(home.data for home in homes.values() if home.is_written),
            machine=compilation.machine,
            deterministic=compilation.deterministic,
            argument_layouts=_layouts_at_caller(homes, compilation.arguments),
            arguments=dict(compilation.arguments),
            fused=compilation.fused,
            remarks=(*compilation.remarks, *remarks(compilation, work)),
            warned=compilation.warned,
            places={space.node.guid: space.name for space in compilation.spaces},
            tiles={name: str(layout) for name, layout in compilation.tiles.items()},
            name=compilation.sdfg.name,
            graphs=Graphs(compilation.sdfg),
        )
        lowering = replace(lowering, on_lines=tuple(_calls_on_lines(compilation, lowering.ranks)))
        matrices = tuple(_matrices(compilation, lowering.ranks, len(lowering.on_lines)))
        lowering = replace(lowering, matrices=matrices)
        pipelines = tuple(_pipelines(compilation, len(lowering.talks)))
        lowering = replace(lowering, pipelines=pipelines)
        carry(compilation.sdfg, lowering)
        compilation.lowering = lowering


def _pipelines(compilation: Compilation, number: int) -> Iterator[Pipeline]:
    """Pipelines, whose marks are told their numbers, from one on."""
    for own, (pipeline, mark) in enumerate(compilation.pipelines, number):
        mark.number = own
        yield replace(pipeline, number=own)


def _calls_on_lines(compilation: Compilation, ranks: int) -> Iterator[LineExchange]:
    """The calls in which ranks talk, whose nodes are told their numbers."""
    number = 0
    for space in compilation.spaces:
        node = space.node
        if isinstance(node, LineInParts):
            yield _line(space, compilation, ranks)
        elif isinstance(node, Scatter) and node.in_parts:
            yield _write(space, node, compilation, ranks)
        else:
            continue
        node.index, number = number, number + 1


def _line(space: IterationSpace, compilation: Compilation, ranks: int) -> LineExchange:
    """A call on lines in parts."""
    tiled = compilation.tiled[space.name]
    (bounds,) = np.moveaxis(_bounds(tiled.tiling, {}), 1, 0)
    parts = [(int(lo), int(hi)) if lo < hi else (0, 0) for lo, hi in bounds]
    parts += [(0, 0)] * (ranks - len(parts))
    (made,) = (use.data for use in tiled.uses if not isinstance(use, Read))
    return line_exchange(space, made, tuple(parts))


def _write(
    space: IterationSpace, node: Scatter, compilation: Compilation, ranks: int
) -> ScatteredWrite:
    """A write at places that data choose, of which ranks have different indices."""
    tiled = compilation.tiled[space.name]
    (made,) = (use for use in tiled.uses if not isinstance(use, Read))
    (own,) = (use for use in tiled.uses if any(e.dst_conn == "_in0" for e in use.edges))
    (value,) = (use for use in tiled.uses if any(e.dst_conn == "_value" for e in use.edges))
    parts = flat_parts(own.layout)
    assert parts is not None, "one dimension of the indices is split, and those before have one"
    more = ranks - len(parts)
    return ScatteredWrite(
        made.data,
        0 if node.one_value else compilation.dtypes[value.data].itemsize,
        (*parts, *[(0, 0)] * more),
        str(space.source or ""),
        times_exactly(space.state),
        picked=tuple(node.picked),
        extents=made.layout.extents,
        place_bytes=node.place_bytes(space.state),
        boxes=(*made.layout.boxes, *[intervals.empty(len(made.layout.extents))] * more),
        keeps_places=node.indices <= {*node.fixed},
        keeps_values="_value" in node.fixed,
    )


def _matrices(compilation: Compilation, ranks: int, number: int) -> Iterator[MatrixExchange]:
    """The functions of LAPACK on matrices in parts, whose nodes are told their numbers."""
    for space in compilation.spaces:
        node = space.node
        if not isinstance(node, LapackTogether):
            continue
        tiled = compilation.tiled[space.name]
        bounds = dict(
            zip(space.parameters, np.moveaxis(_bounds(tiled.tiling, {}), 1, 0), strict=True)
        )
        parts = {
            name: tuple((int(lo), int(hi)) if lo < hi else (0, 0) for lo, hi in own)
            + ((0, 0),) * (ranks - len(own))
            for name, own in bounds.items()
        }
        call = matrix_call(space)
        made = next(use.data for use in tiled.uses if not isinstance(use, Read))
        found = exchange_of(
            made,
            call.function,
            call.dtype.itemsize,
            int(call.columns),
            parts[ROWS],
            int(call.sides),
            parts.get(COLUMNS, ()),
            str(space.source or ""),
            times_exactly(space.state),
            turned=call.function == "cholesky" and node.options == "'U'",
            lower=node.options.startswith("'L',"),
        )
        node.index, node.block, number = number, found.block, number + 1
        yield found


def _record_space(
    space: IterationSpace, tiled: Tiled, is_named: bool, work: TileWork
) -> TiledSpace:
    if is_control_value(space.node):
        origin = SpaceOrigin.CONTROL_FLOW
    else:
        origin = SpaceOrigin.PROGRAM if is_named else SpaceOrigin.LOWERING
    return TiledSpace(
        space.name,
        space.label,
        space.iterates,
        tiled.tiling.mesh,
        tiled.tiling.parts,
        tiled.tiling.splits,
        tiled.chosen_by,
        str(space.source or ""),
        origin,
        work,
        can_split=any(each.begin + each.step < each.end for each in space.ranges),
        node=space.node.guid,
        python=space.node.runs if isinstance(space.node, HostCall) else "",
    )


def _tell_apart(spaces: Sequence[IterationSpace]) -> None:
    """Give each node an identity of its own: transformations of DaCe copy nodes with theirs."""
    seen: set[str] = set()
    for space in spaces:
        if space.node.guid in seen:
            space.node.guid = generate_element_id(space.node)
        seen.add(space.node.guid)


def _bounds(tiling: Tiling, known: dict[bytes, Numbers]) -> Numbers:
    """First values and ends on all ranks; spaces that are cut alike share them."""
    bounds = np.stack([tiling.lower, tiling.upper], axis=-1)
    bounds[tiling.idle] = 0
    return known.setdefault(repr(bounds.shape).encode() + bounds.tobytes(), bounds)


def _asked(
    space: IterationSpace, tiling: Tiling, compilation: Compilation
) -> Mapping[str, Axes] | None:
    """What a schedule would ask of a space; None where none can say it."""
    return asked_by(space, tiling.splits, tiling.parts, compilation.folded.get(space.name, {}))


def _record_home(home: Home, dtype: np.dtype[Any], store: str) -> ContainerHome:
    return ContainerHome(
        home.data, home.layout, home.at_caller, dtype, home.traffic, home.over, store
    )


def _record_move(movement: Movement, solutions: Mapping[Redistribution, Solution]) -> PlannedMemlet:
    planned = PlannedMemlet(
        movement.data,
        str(movement.source or ""),
        solutions[movement.redistribution],
        movement.source_tiles,
        movement.target_tiles,
        movement.times,
        stores=movement.stores,
    )
    node, plan = movement.node, planned.solution.plan
    if isinstance(node, DistributedMemlet):
        node.solver, node.steps = plan.solver, planned.steps
        node.received_bytes = planned.solution.cost.nbytes
        node.seconds = planned.solution.cost.seconds
    return planned


def _record_fetch(movement: Movement, compilation: Compilation) -> PlannedMemlet:
    """The exchange of all that could be fetched; the run decides which elements of it are."""
    assert movement.inspection is not None
    spaces = compilation.spaces
    rewritten = {data for each in spaces if times(each.state) > 1 for data in each.writes}
    asked = [
        asked_elements(use, use.tiles.bounds, iterations, rewritten).max(initial=0)
        for space in spaces
        for tiled in (compilation.tiled[space.name],)
        for iterations in (tiled.tiling.iterations(space.ranges),)
        for use in tiled.uses
        if isinstance(use, Read) and use.inspection is movement.inspection
    ]
    return PlannedMemlet(
        movement.data,
        str(movement.source or ""),
        select_plan(movement.redistribution, [Exchange()], compilation.machine),
        movement.source_tiles,
        movement.target_tiles,
        movement.times,
        movement.inspection.dimensions,
        str(movement.inspection),
        movement.foreseen.ends if movement.foreseen else None,
        movement.received,
        movement.stores,
        float(max(asked, default=0.0)),
    )


def _layouts_at_caller(
    homes: Mapping[str, Home], arguments: Mapping[str, Holding]
) -> dict[str, Layout]:
    """Layouts of what the caller does not hold on rank 0."""
    return {
        name: home.caller
        for name, home in homes.items()
        if home.caller is not None and arguments.get(name, ROOT) != ROOT
    }


def _approximations(spaces: Mapping[str, Tiled], fetches: Sequence[Movement]) -> list[str]:
    fetched = {id(fetch.inspection) for fetch in fetches}
    return [
        f"{use.space.where}: the space {name!r} reads all of dimension "
        f"{', '.join(map(str, use.approximate))} of {use.data!r}, because an index is not known "
        "before the run."
        for name, tiled in spaces.items()
        for use in tiled.uses
        if not isinstance(use, Write) and use.approximate
        if not (isinstance(use, Read) and id(use.inspection) in fetched)
    ]
