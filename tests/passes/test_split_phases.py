"""Which loops work on copies that live elsewhere, counted in bytes of the plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.layouts import intervals
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.passes import split_phases

N, STEPS = 48, 5


def sweeps(u: Any) -> None:
    for _t in range(STEPS):
        for k in range(1, N):
            u[:, k] = 0.5 * u[:, k] + 0.25 * u[:, k - 1]
        for k in range(1, N):
            u[k, :] = 0.5 * u[k, :] + 0.25 * u[k - 1, :]


def read_only(u: Any, v: Any) -> None:
    for _t in range(STEPS):
        for k in range(1, N):
            v[k, :] = v[k - 1, :] + u[k, :]
        for k in range(1, N):
            u[:, k] = 0.5 * u[:, k] + 0.25 * u[:, k - 1]


def alternating(u: Any) -> None:
    for k in range(1, N):
        u[:, k] = 0.5 * u[:, k] + 0.25 * u[:, k - 1]
        u[k, :] = 0.5 * u[k, :] + 0.25 * u[k - 1, :]


def relaxed(u: Any, f: Any) -> None:
    for _t in range(STEPS):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = f[1:-1, 1:-1] + 0.2 * around
        u[0, 1:-1] = u[1, 1:-1]
        u[-1, 1:-1] = u[-2, 1:-1]
        u[1:-1, 0] = u[1:-1, 1]
        u[1:-1, -1] = u[1:-1, -2]
        u[0, 0] = 0.5 * (u[1, 0] + u[0, 1])


def lowered(function: Any, arrays: int, ranks: int) -> Lowering:
    sdfg = numpy_program(function, *[np.ones((N, N))] * arrays)
    names = [space.name for space in distspmd.iteration_spaces(sdfg)]
    return distspmd.lower(sdfg, dict.fromkeys(names, (ranks,)))


def moved(lowering: Lowering) -> dict[str, float]:
    """Of each container how often all of it moves in a run, but for what comes and goes."""
    found: dict[str, float] = {}
    for memlet in lowering.memlets:
        times = memlet.times or 0
        if times > 1:
            nbytes = times * memlet.solution.cost.nbytes
            found[memlet.data] = found.get(memlet.data, 0) + nbytes
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_sweeps_along_rows_and_columns_transpose_between_them(ranks: int) -> None:
    found = lowered(sweeps, 1, ranks)
    assert {home.data for home in found.homes} >= {"u", "u_phase"}
    transpose = 8 * N * N // ranks * (ranks - 1)
    assert moved(found) == {"u": 2 * STEPS * transpose}


def test_a_loop_that_only_reads_gives_nothing_back() -> None:
    found = lowered(read_only, 2, 4)
    homes = {home.data: home for home in found.homes}
    boxes = zip(homes["u_phase"].layout.boxes, homes["v"].layout.boxes, strict=True)
    assert all(intervals.contains(own, box) for box, own in boxes)
    assert moved(found) == {"u": STEPS * 8 * (N - 1) * N // 4 * 3}  # the first row is not read


def test_a_loop_that_uses_an_array_both_ways_has_no_copy() -> None:
    assert not any("phase" in home.data for home in lowered(alternating, 1, 4).homes)


def test_a_copy_must_spare_a_part_of_the_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    greedy = replace(split_phases.HEURISTICS, phase_gain=1.0)
    monkeypatch.setattr(split_phases, "HEURISTICS", greedy)
    assert not any("phase" in home.data for home in lowered(sweeps, 1, 4).homes)


def test_copies_are_spaces_that_name_their_reason() -> None:
    found = lowered(sweeps, 1, 4)
    copies = [space for space in found.spaces if "phase" in space.name]
    assert [str(space.chosen_by) for space in copies] == ["the loop that works on its copy"] * 2
    assert all(space.source.startswith("test_split_phases.py:") for space in copies)


def test_a_loop_does_not_work_on_a_copy_of_its_copy() -> None:
    """It would have another one around it without an end."""
    sdfg = numpy_program(relaxed, np.ones((N, N)), np.ones((N, N)))
    spaces = distspmd.iteration_spaces(sdfg)
    schedule = {s.name: (2,) + (1,) * (len(s.parameters) - 1) for s in spaces}
    homes = {home.data for home in distspmd.lower(sdfg, schedule).homes}
    assert not any("phase_phase" in name for name in homes)


def test_tiles_that_other_axes_split_are_no_copies_tiles() -> None:
    """Rows on two ranks, by the axis along which another use splits the columns."""
    rows = [((0, 5), (0, 10)), ((5, 10), (0, 10))]
    assert split_phases._are_split_by(Mesh(i=2), [("i",), ()], rows)
    assert split_phases._are_split_by(Mesh(i=2, j=1), [("i",), ("j",)], rows)
    assert not split_phases._are_split_by(Mesh(i=2), [(), ("i",)], rows)
    assert not split_phases._are_split_by(Mesh(i=1, j=2), [("i",), ("j",)], rows)
