"""Arrays that are read in rounds: searches deal parts in blocks where moves would take longer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from dace import float64 as f8
from lowering.on_paper import problems
from ranks.attention_by_hand import attention_step

import distspmd
from distspmd.frontend import numpy_program
from distspmd.layouts import Cyclic
from distspmd.passes import fold_indices
from distspmd.passes.select_tilings import as_tiled
from distspmd.pipeline import begin_compilation, run_passes
from distspmd.plans.machine import Machine
from distspmd.scheduling import interleaved
from distspmd.scheduling.model import Program

HELD = {**dict.fromkeys(("w", "wo"), "distributed"), **dict.fromkeys(("x", "y"), "replicated")}


def rounds_of(function: Any) -> list[interleaved.Rounds]:
    compilation = begin_compilation(numpy_program(function), {}, machine=Machine())
    run_passes(compilation, stop_after="align-maps")
    compilation.spaces = as_tiled(compilation.spaces)
    return interleaved.rounds_in(Program.of(compilation).footprints.values())


def in_thirds(x: f8[8, 24]):
    y = 2 * x
    return y[:, :8] * y[:, 8:16] + y[:, 16:]


def in_halves_of_rows(x: f8[24, 4]):
    y = 2 * x
    return y[:12] - y[12:]


def shifted(x: f8[24]):
    y = 2 * x
    return y[5:] - y[:-5]


@pytest.mark.parametrize(
    ("function", "rounds"),
    [(in_thirds, {(1, 8)}), (in_halves_of_rows, {(0, 12)}), (shifted, set())],
)
def test_rounds_are_found_where_parts_of_a_dimension_are_read_side_by_side(
    function: Any, rounds: set[tuple[int, int]]
) -> None:
    assert {(d, length) for _, d, length in rounds_of(function)} == rounds


def in_halves_and_a_loop(x: f8[24, 4]):
    y = 2 * x
    for k in range(4):
        y[k:, 0] = y[k:, 0] * 2
    return y[:12] - y[12:]


def test_a_range_that_a_loop_chooses_is_none_over_a_whole_dimension() -> None:
    rounds = rounds_of(in_halves_and_a_loop)
    assert {(d, length) for _, d, length in rounds} == {(0, 12)}
    compilation = begin_compilation(numpy_program(in_halves_and_a_loop), {}, machine=Machine())
    run_passes(compilation, stop_after="align-maps")
    assert not interleaved.fold_all(compilation, rounds)


def test_a_fused_projection_is_dealt_by_heads_so_that_only_sums_move(tmp_path: Path) -> None:
    program = numpy_program(attention_step(64, 4, 16))
    options: dict[str, Any] = {"machine": Machine(alpha=1e-8, launch=1e-9), "arguments": HELD}
    found = distspmd.search(copy.deepcopy(program), 4, **options)
    dealt = {
        name: [axes for axes in own.split.values() if any(isinstance(a, Cyclic) for a in axes)]
        for name, own in found.schedule.items()
    }
    assert dealt["qkv"] == [("x", Cyclic(16))]  # a head of each of queries, keys and values
    assert dealt["w"] == [("x", Cyclic(16))]
    found.save(tmp_path / "schedule.yaml")
    lowering = distspmd.lower(copy.deepcopy(program), tmp_path / "schedule.yaml", **options)
    assert not [*problems(lowering)]
    moved = {m.data for m in lowering.memlets if m.solution.cost.nbytes}
    assert moved <= {"z_1", "dz", "reduced"}  # of the output projection, and the loss
    nbytes = sum(m.solution.cost.nbytes for m in lowering.memlets)
    assert found.nbytes == pytest.approx(nbytes, rel=1e-4)
    blocks = {"qkv": {"i": "x"}}
    plain = distspmd.lower(program, blocks, mesh={"x": 4}, **options)
    assert distspmd.predict(lowering).seconds < distspmd.predict(plain).seconds


def test_nothing_is_dealt_where_nothing_that_is_read_in_rounds_moves() -> None:
    found = distspmd.search(
        numpy_program(in_thirds), 4, machine=Machine(alpha=1e-12, beta=1e-16, launch=0)
    )
    assert "cyclic" not in str(found.schedule)


def in_chain(x: f8[48]):
    """A cut through rounds follows a chain: nothing before it can be folded in these either."""
    a = x * 2
    b = a * a[::-1]
    c = b[::-1] * b
    return c[5:43] + c[:38]


def test_what_cannot_be_folded_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = []
    follow = fold_indices._from_dimension

    def counted(folding: Any, container: str, dimension: int) -> Any:
        followed.append(container)
        return follow(folding, container, dimension)

    monkeypatch.setattr(fold_indices, "_from_dimension", counted)
    compilation = begin_compilation(numpy_program(in_chain), {}, machine=Machine(), fuse=False)
    run_passes(compilation, stop_after="align-maps")
    compilation.spaces = as_tiled(compilation.spaces)
    rounds = [(name, 0, 8) for name in compilation.sdfg.arrays if name != "__return"]
    assert not interleaved.fold_all(compilation, rounds)
    once = len(followed)
    assert not interleaved.fold_all(compilation, 3 * rounds)
    assert len(followed) == 2 * once > 0


def test_what_is_refused_in_some_rounds_may_be_folded_in_others() -> None:
    compilation = begin_compilation(numpy_program(in_thirds), {}, machine=Machine())
    run_passes(compilation, stop_after="align-maps")
    compilation.spaces = as_tiled(compilation.spaces)
    assert not interleaved.fold_all(compilation, [("x", 1, 5)])
    assert interleaved.fold_all(compilation, [("x", 1, 5), ("x", 1, 8), ("x", 1, 3)])
