"""What the search takes moves to cost is what the plans cost that the lowering makes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.select import select_plan
from distspmd.plans.machine import Machine
from distspmd.plans.redistribution import Redistribution
from distspmd.scheduling import traffic
from distspmd.scheduling.columns import Columns
from distspmd.scheduling.tiles import Tiles
from distspmd.solvers import SOLVERS

MESH = Mesh(a=2, b=2, c=2)
MACHINE = Machine()
LARGE, SMALL = (512, 1024), (64, 96)


def layouts_of(extents: tuple[int, int]) -> list[str]:
    """All layouts of a matrix on the mesh: with axes in any order, or left over."""
    found: dict[str, None] = {}
    for order in itertools.permutations(MESH.names):
        for of in itertools.product(range(3), repeat=3):
            split: list[list[str]] = [[], []]
            for axis, dimension in zip(order, of, strict=True):
                if dimension < 2:
                    split[dimension].append(axis)
            sides = (
                f"{extent >> len(axes)}{{{','.join(axes)}}}{extent}" if axes else str(extent)
                for extent, axes in zip(extents, split, strict=True)
            )
            found["[" + ", ".join(sides) + "]"] = None
    return list(found)


def as_tiles(layouts: list[Layout], columns: Columns) -> Tiles:
    return Tiles.of(columns, np.stack([np.array(layout.bounds) for layout in layouts]))


def ratios(
    extents: tuple[int, int],
    in_place: bool = False,
    along: str = "",
    sample: int = 150,
    machine: Machine = MACHINE,
    at_caller: bool = False,
) -> np.ndarray:
    """Seconds of some pairs of layouts, by those of the plan that is chosen for each."""
    texts, columns = layouts_of(extents), Columns(MESH.size)
    targets = [Layout.parse(text, MESH) for text in texts]
    sources, ours = targets, as_tiles(targets, columns)
    theirs = ours
    if along:
        summed = [text for text in texts if along not in text]
        sources = [Layout.parse(f"{text} + partial(sum){{{along}}}", MESH) for text in summed]
        ours = as_tiles(sources, columns)
        moved = traffic.reduce(ours, np.full(len(sources), 2), theirs, 4, machine)
    else:
        moved = traffic.move(ours, theirs, 4, machine, at_caller)
    model = moved.in_place if in_place else moved.seconds
    pairs = [(i, j) for i in range(len(sources)) for j in range(len(targets))]
    chosen = np.random.default_rng(0).choice(len(pairs), sample, replace=False)
    found = []
    for i, j in (pairs[number] for number in chosen):
        ends = sources[i], targets[j], np.dtype("f4")
        asked = Redistribution(*ends, in_place=in_place, at_caller=at_caller)
        seconds = select_plan(asked, SOLVERS, machine).cost.seconds
        if seconds:
            found.append(model[i, j] / seconds)
    return np.array(found)


@pytest.mark.parametrize("extents", [SMALL, LARGE])
def test_what_moves_within_a_storage_costs_what_its_messages_do(extents: tuple[int, int]) -> None:
    np.testing.assert_allclose(ratios(extents, in_place=True), 1)


def test_what_moves_among_ranks_that_share_cores_costs_what_plans_do() -> None:
    """On one core, so that the bytes of all ranks count."""
    shared = Machine(cores=1)
    np.testing.assert_allclose(ratios(LARGE, in_place=True, machine=shared), 1)
    found = ratios(LARGE, machine=shared)
    assert np.median(found) == pytest.approx(1, abs=0.05)


def test_what_moves_between_storages_costs_about_what_plans_do() -> None:
    found = ratios(LARGE)
    assert 0.9 < found.min() <= found.max() < 1.1
    found = ratios(SMALL)  # to gather all and to cut it may take fewer messages
    assert found.min() > 0.95
    assert np.median(found) == pytest.approx(1, abs=0.05)


def test_what_moves_out_of_the_memory_of_a_caller_costs_what_plans_do() -> None:
    dear = Machine(alpha=0, beta=1e-10, copy=1e-10, cores=8)
    found, plain = ratios(LARGE, machine=dear, at_caller=True), ratios(LARGE, machine=dear)
    assert found.min() > 0.95 * plain.min()
    assert found.max() < 1.5  # plans may bring it once, and go on from there
    assert np.median(found) == pytest.approx(1, abs=0.05)


def test_runs_of_memory_cost_what_they_do_in_plans() -> None:
    """Where nothing else costs anything; each pair of layouts has its own number of runs."""
    runs = Machine(alpha=0, beta=0, copy=0, run=1e-8)
    found = ratios(LARGE, in_place=True, machine=runs)
    assert 0.9 < found.min() <= found.max() < 1.1
    found = ratios(LARGE, machine=replace(MACHINE, run=1e-8))
    assert 0.85 < found.min() <= found.max() < 1.15
    assert np.median(found) == pytest.approx(1, abs=0.05)


def test_reductions_cost_about_what_plans_do() -> None:
    found = ratios(LARGE, along="c")
    assert 0.65 < found.min() <= found.max() < 1.4  # plans may go another way round
    assert np.median(found) == pytest.approx(1, abs=0.05)
