"""Which loops work on copies that live elsewhere, counted in bytes of the plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.errors import ScheduleError
from distspmd.frontend import numpy_program
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.passes import split_phases
from distspmd.schedule import Schedule

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


def with_home(layout: Layout) -> Schedule:
    """Both sweeps split, and an array that lives so while the second one runs."""
    homes = {"u in loop 1 around u.2": layout}
    return Schedule({"u": (4,), "u.2": (4,)}, homes=homes)


@pytest.mark.parametrize(
    ("home", "turned"),
    [
        ("[48, 12{x}48]", 2 * 3 / 4),  # as by itself, on a mesh of other axes
        ("[12{x}48, 48]", 0),  # as in the other loop
        ("[48, 48]", 3),  # whole: each rank gets what it lacks, and gives nothing back
    ],
)
def test_a_schedule_says_where_an_array_lives_in_a_loop(home: str, turned: float) -> None:
    sdfg = numpy_program(sweeps, np.ones((N, N)))
    found = distspmd.lower(sdfg, with_home(Layout.parse(home, Mesh(x=4))))
    (copy,) = [each for each in found.homes if each.data == "u_phase"]
    assert str(copy.layout) == home
    copies = [m for m in found.memlets if m.data == "u" and m.times == STEPS]
    assert sum(m.solution.cost.nbytes for m in copies) == turned * 8 * N * N


def test_tiles_of_a_copy_are_blocks() -> None:
    boxes = [((0, 48), (12 * rank, 12 * rank + 13 - (rank == 3))) for rank in range(4)]
    layout = Layout.of_boxes(Mesh(x=4), (48, 48), boxes)
    with pytest.raises(ScheduleError, match="no copy has these tiles"):
        distspmd.lower(numpy_program(sweeps, np.ones((N, N))), with_home(layout))


@pytest.mark.slow
def test_homes_in_loops_are_right_on_ranks() -> None:
    layout = Layout.parse("[48, 12{x}48]", Mesh(x=4))
    checked = distspmd.check(numpy_program(sweeps, np.ones((N, N))), with_home(layout), 4)
    assert checked.difference is None
    assert any(home.data == "u_phase" for home in checked.lowering.homes)


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
