"""Programs that DaCe's transformations have changed are lowered, or refused with a sentence."""

from __future__ import annotations

from collections import Counter

import dace
import pytest
from conftest import call_on_ranks

import distspmd
from transformed.outcomes import FOREIGN, REFUSED, RIGHT, WRONG, outcome
from transformed.programs import PROGRAMS
from transformed.sweep import all_names, sweep
from transformed.transformations import transformations

TAKEN = [
    "MapTiling/stencil",  # a tile that is larger than the range
    "MapTiling(2)/accumulated",
    "MapTiling(2)/nested",
    "StripMining(2)/two_maps",
    "MapTilingWithOverlap(2)/nested",
    "BufferTiling/softmax",
    "InsertExplicitCopies/branches",  # of an element to a scalar that a branch reads
    "MapExpansion/library",
    "StateFusion/looped",
    "auto_optimize()/product",
]
COMPILED = ["MapTiling(2)/stencil", "StripMining(2)/two_maps", "InsertExplicitCopies/branches"]


@pytest.mark.parametrize("name", TAKEN)
def test_what_a_transformation_made_is_lowered(name: str) -> None:
    found = outcome(name, plain=False)
    assert found.ours == RIGHT, found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("MPITransformMap/nested", "distributed by DaCe already"),
        ("ElementWiseArrayOperation/row_sums", "sends messages itself"),
        ("StreamingComposition/softmax", "is a Stream of double"),
    ],
)
def test_what_has_no_place_on_ranks_is_refused(name: str, said: str) -> None:
    found = outcome(name, plain=False)
    assert found.ours == REFUSED, found
    assert said in found.said


def test_a_tiling_is_shared_by_ranks() -> None:
    sdfg = PROGRAMS["two_maps"].to_sdfg()
    assert transformations()["MapTiling(2)"](sdfg)
    lowering = distspmd.lower(sdfg, {"t": (2, 2)})
    assert [home.layout.mesh.size for home in lowering.homes if home.data == "t"] == [4]
    assert not lowering.approximate


def test_spaces_of_a_program_that_is_refused_have_ranges_too() -> None:
    sdfg = PROGRAMS["two_maps"].to_sdfg()
    assert transformations()["StripMining"](sdfg)
    sdfg.add_stream("s", dace.float64, transient=True)
    sdfg.start_block.add_access("s")
    assert len(distspmd.iteration_spaces(sdfg)) == 2


def test_all_that_dace_has_is_found() -> None:
    known = transformations()
    assert {"MapTiling", "StateFusion", "SubgraphFusion", "SimplifyPass", "auto_optimize()"} <= {
        *known
    }
    assert len(known) > 130


def test_some_run_on_ranks() -> None:
    call_on_ranks("transformed.on_ranks", f"run(comm, {COMPILED})", 3)


@pytest.mark.slow
def test_all_transformations_on_all_programs_are_right_or_refused() -> None:
    found = sweep(all_names())
    kinds = Counter(each.ours for each in found)
    assert not [each for each in found if each.ours in (FOREIGN, WRONG)]
    assert kinds[RIGHT] > 200
