"""Layers that repeat are analysed once, and tied ones take one choice."""

from __future__ import annotations

import numpy as np

import distspmd
from distspmd.passes.select_tilings import as_tiled
from distspmd.pipeline import begin_compilation, run_passes
from distspmd.plans.machine import Machine
from distspmd.scheduling import candidates
from distspmd.scheduling.footprints import Footprint, Tilings
from distspmd.scheduling.likeness import tied_variables
from distspmd.scheduling.model import Model, Program
from scheduling.programs import FAST, adam, perceptron, rated


def program() -> Program:
    compilation = begin_compilation(perceptron(512), {}, machine=FAST)
    run_passes(compilation, stop_after="align-maps")
    compilation.spaces = as_tiled(compilation.spaces)
    return Program.of(compilation)


def test_what_is_found_of_a_space_holds_for_those_that_are_like_it() -> None:
    footprints = program().footprints
    alike = [own for own in footprints.values() if own.like is not own]
    assert len(alike) >= 8  # all but the first product and the first map
    mesh = candidates.mesh_of(4)
    for footprint in alike:
        alone = Footprint(footprint.space, footprint.touched)
        every = candidates.canonical_splits(footprint.space, mesh, range(len(mesh.axes)))[:4]
        tilings, again = (Tilings.of(footprint.space, mesh, every) for _ in range(2))
        for splits in every:
            assert footprint.partials(footprint.split(splits)) == alone.partials(
                alone.split(splits)
            )
        pairs = zip(footprint.slots(every), alone.slots(every), strict=True)
        for slot, own in pairs:
            assert slot.data == own.data
            mine, theirs = (
                footprint.boxes(slot.touched, tilings),
                alone.boxes(own.touched, again),
            )
            assert mine is not theirs
            assert np.array_equal(mine.bounds, theirs.bounds)


def test_containers_that_are_used_alike_share_what_their_homes_cost() -> None:
    compilation = begin_compilation(adam(64, 32, 64), {}, machine=FAST)
    run_passes(compilation, stop_after="align-maps")
    compilation.spaces = as_tiled(compilation.spaces)
    homes = {
        home.container_choice.data: home
        for home in Model(Program.of(compilation), candidates.mesh_of(4), {}).homes
    }
    for gradient, state in (("g1", "m1"), ("g2", "m2")):
        assert homes[gradient].own is not homes[state].own
    moments = (homes["m1"], homes["s1"])
    assert moments[0].own is moments[1].own
    uses = zip(*(home.container_choice.uses for home in moments), strict=True)
    assert all(a.tiles is b.tiles for a, b in uses)


def test_layers_in_the_middle_are_tied_and_those_at_the_ends_are_not() -> None:
    model = Model(program(), candidates.mesh_of(4), {}, is_tied=True)
    groups = [
        {model.spaces[v].name for v in group if v < len(model.spaces)} for group in model._ties()
    ]
    tied = set().union(*groups)
    assert {"x3_matmul_d", "x4_matmul_e"} <= tied
    assert not {"x_matmul_a", "__return"} & tied


def test_tied_layers_take_one_choice_that_costs_no_more_here() -> None:
    sdfg = perceptron(512)
    free = distspmd.search(sdfg, 4, machine=Machine(), tied=False)
    tied = distspmd.search(sdfg, 4, machine=Machine(), tied=True)
    assert tied.cost >= free.bound
    assert tied.cost <= 1.02 * free.cost


def test_variables_are_tied_as_far_as_all_around_them_is_alike() -> None:
    own = ["a", "b", "a", "b", "a"]  # a chain
    near = [[(1, 0)], [(0, 0), (2, 0)], [(1, 0), (3, 0)], [(2, 0), (4, 0)], [(3, 0)]]
    assert tied_variables(own, near, 0, [False] * 5) == [(0, 2, 4), (1, 3)]
    assert tied_variables(own, near, 1, [False] * 5) == [(0, 4), (1, 3)]


def test_what_no_choice_splits_ties_nothing_apart() -> None:
    own = ["count", "count", "state", "state"]  # each count with a state of its own
    near = [[(2, 0), (1, 1)], [(3, 0), (0, 2)], [(0, 0)], [(1, 0)]]
    assert tied_variables(own, near, 2, [False] * 4) == []
    assert tied_variables(own, near, 2, [True, True, False, False]) == [(2, 3)]


def test_layers_that_share_a_number_are_tied() -> None:
    compilation = begin_compilation(rated(64), {}, machine=FAST)
    run_passes(compilation, stop_after="align-maps")
    compilation.spaces = as_tiled(compilation.spaces)
    model = Model(Program.of(compilation), candidates.mesh_of(4), {}, is_tied=True)
    tied = {model.spaces[v].name for group in model._ties() for v in group if v < len(model.spaces)}
    assert len(tied) == len(model.spaces) == 5
    (rate,) = [home for home in model.homes if home.container_choice.data == "rate"]
    assert len(rate.pairs) == 5
    assert len({id(costs) for _, costs in rate.pairs}) == 1
