"""Proof of pipelines: a rank gets the rim of the one whose iterations are just before its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dace import SDFGState
from dace.sdfg import nodes

from distspmd.analysis.wavefronts import rims_of
from distspmd.checking.lowered_accesses import Touched
from distspmd.errors import PlanError
from distspmd.layouts.intervals import Box
from distspmd.nodes.handing_on import Rim, handed_on
from distspmd.plans.pipeline import Pipeline


def prove_chains(pipeline: Pipeline) -> None:
    """Prove that each rank hands on to the one whose iterations begin where its own end.

    Raises:
        PlanError: a rank that gets its rim from another one.
    """
    held = [rank for chain in pipeline.chains for rank in chain]
    busy = [rank for rank, (first, end) in enumerate(pipeline.tiles) if first < end]
    if sorted(held) != busy:
        raise PlanError(
            f"{pipeline.title}: of the ranks {busy} those in chains are {sorted(held)}."
        )
    for chain in pipeline.chains:
        if pipeline.tiles[chain[0]][0] != pipeline.begin:
            raise PlanError(f"{pipeline.title}: rank {chain[0]} begins, and has not the beginning.")
        for one, other in itertools.pairwise(chain):
            end, first = pipeline.tiles[one][1], pipeline.tiles[other][0]
            if end != first:
                raise PlanError(
                    f"{pipeline.title}: rank {one} ends at {end} and hands on to rank {other}, "
                    f"which begins at {first}."
                )


def handed_on_to(
    state: SDFGState,
    entry: nodes.Node,
    writes: Sequence[Touched],
    pipelines: Sequence[Pipeline],
) -> list[Touched]:
    """What ranks get of the rims of a space while it runs, as if they had written it themselves."""
    body = handed_on(state, entry)
    if body is None or not body[1].blocks:
        return []
    numbers = {pipeline.number: pipeline for pipeline in pipelines}
    pipeline, rims = numbers[body[1].number], rims_of(state, entry)
    return [_rim(write, rims[write.store], pipeline) for write in writes if write.store in rims]


def _rim(write: Touched, rim: Rim, pipeline: Pipeline) -> Touched:
    boxes: list[Box] = []
    gets = {rank for chain in pipeline.chains for rank in chain[1:]}
    for rank, box in enumerate(write.box):
        if rank not in gets:
            boxes.append(((0, 0),) * len(box))
            continue
        first = pipeline.tiles[rank][0]
        begin = max(first - rim.depth, pipeline.begin)
        rows = begin + rim.place, first + rim.place
        if rim.sign < 0:
            rows = rim.place - first + 1, rim.place - begin + 1
        boxes.append(tuple(rows if d == rim.along else ends for d, ends in enumerate(box)))
    return Touched(write.store, True, tuple(boxes), write.known)
