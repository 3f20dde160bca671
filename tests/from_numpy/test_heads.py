"""Transposes in a row, interleaved columns and fused projections, at extents that do not divide."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from from_numpy.harness import on_paper
from from_numpy.heads import CASES, every_third, fused
from from_numpy.outcomes import RIGHT


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_any_dimension_can_be_split(case: Any, ranks: int, dimension: int) -> None:
    found = on_paper(case, ranks, dimension)
    assert (found.kind, found.reason) == (RIGHT, "")


def test_programs_with_heads_compute_what_numpy_does(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.heads", ranks=3)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


def test_attention_of_a_fused_projection_moves_nothing_where_heads_are_split() -> None:
    sdfg = numpy_program(fused, np.zeros((7, 10)), np.zeros((10, 30)))
    grids = {}
    for space in distspmd.iteration_spaces(sdfg):
        extents = [str(extent) for extent in space.ranges]
        if extents[0] == "0:5":
            grids[space.name] = (5, *[1] * (len(extents) - 1))
    lowering = distspmd.lower(sdfg, grids)
    assert {memlet.data for memlet in lowering.memlets} == {"x", "w", "__return"}


@pytest.mark.parametrize("function", [every_third, fused])
def test_operands_that_are_no_windows_are_copied_and_not_the_product(function: Any) -> None:
    given = {every_third: (60, 9), fused: (60, 30)}[function]
    sdfg = numpy_program(function, np.zeros(given), np.zeros((given[1], 3 * given[1])))
    sizes = [math.prod(map(int, container.shape)) for container in sdfg.arrays.values()]
    assert max(sizes) <= 5 * 60 * 60
