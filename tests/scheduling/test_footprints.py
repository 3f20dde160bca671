"""Footprints are, in arrays, what the analysis finds for each tiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import KERNELS
from lowering.harness import parsed
from lowering.on_paper import problems

import distspmd
from distspmd.analysis.constraints import touched_by, uses
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read
from distspmd.errors import UnsupportedProgram
from distspmd.passes.select_tilings import as_tiled
from distspmd.pipeline import begin_compilation, run_passes
from distspmd.scheduling import candidates
from distspmd.scheduling.footprints import Footprint, Tilings, partial_parameters
from scheduling.programs import FAST, PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=3, deadline=None)
@given(ranks=st.integers(1, 12), data=st.data())
def test_boxes_are_those_of_the_analysis(name: str, ranks: int, data: st.DataObject) -> None:
    compilation = begin_compilation(PROGRAMS[name](), {})
    run_passes(compilation, stop_after="align-maps")
    mesh = candidates.mesh_of(ranks)
    for space in as_tiled(compilation.spaces):
        footprint = Footprint(space, touched_by(space))
        every = candidates.canonical_splits(space, mesh, range(len(space.parameters)))
        splits = data.draw(st.sampled_from(every)) if every else ((),) * len(space.ranges)
        tiling = Tiling.of(space.ranges, mesh, splits)
        try:
            found = uses(space, tiling, footprint.touched)
        except UnsupportedProgram:
            assert footprint.kinds(footprint.split(splits)) is None
            continue
        tilings = Tilings.of(space, mesh, [splits])
        slots = footprint.slots([splits])
        assert [slot.data for slot in slots] == [use.data for use in found]
        for slot, use in zip(slots, found, strict=True):
            held = use.tiles.volumes > 0
            boxes = footprint.boxes(slot.touched, tilings).bounds[0]
            assert (boxes[held] == use.tiles.bounds[held]).all()
            assert not boxes[~held].any()
            if not isinstance(use, Read) and use.layout.partial:
                axes = {
                    axis
                    for p, own in zip(space.parameters, splits, strict=True)
                    if p in partial_parameters(slot.use)
                    for axis in own
                }
                assert axes == set(use.layout.partial.axes or ())


def test_the_mesh_that_is_found_has_the_same_tiles_on_axes_that_are_joined() -> None:
    compilation = begin_compilation(PROGRAMS["product"](), {})
    run_passes(compilation, stop_after="align-maps")
    space = as_tiled(compilation.spaces)[0]
    mesh = candidates.mesh_of(24)
    for splits in candidates.canonical_splits(space, mesh, (0, 1, 2)):
        joined, (own,) = candidates.coarsened(mesh, [splits])
        one, two = (Tiling.of(space.ranges, *pair) for pair in ((mesh, splits), (joined, own)))
        assert len(joined.axes) <= len(mesh.axes)
        assert np.array_equal(one.lower, two.lower)
        assert np.array_equal(one.upper, two.upper)


@pytest.mark.parametrize("ranks", [2, 6, 64, 1000, 1021, 4096])
def test_axes_of_a_mesh_make_all_ranks(ranks: int) -> None:
    assert candidates.mesh_of(ranks).size == ranks
    assert all(0 < count <= ranks for count in candidates.rank_counts(ranks))


def test_a_large_prime_of_ranks_is_not_all_that_is_tried() -> None:
    assert candidates.rank_counts(1021) == [1021, 1008, 1000, 980, 960]
    assert candidates.rank_counts(1000) == [1000]


QUICK = {"jacobi_2d", "spmv", "softmax", "correlation"}
KERNELS_BY_TIER = [
    kernel if kernel.name in QUICK else pytest.param(kernel, marks=pytest.mark.slow)
    for kernel in KERNELS
]


@pytest.mark.parametrize("kernel", KERNELS_BY_TIER, ids=lambda kernel: kernel.name)
def test_searched_schedules_of_kernels_are_right_on_paper(kernel) -> None:  # type: ignore[no-untyped-def]
    sdfg = parsed(kernel.program, "numpy")
    found = distspmd.search(sdfg, 4, machine=FAST)
    lowering = distspmd.lower(sdfg, found, machine=FAST)
    assert not [*problems(lowering)]
    assert set(found.schedule) <= {space.name for space in lowering.spaces}
