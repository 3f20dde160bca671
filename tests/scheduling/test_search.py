"""Searched schedules: nothing that can be tried is better, and what is predicted is planned."""

from __future__ import annotations

import copy
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dace import SDFG
from hypothesis import given, settings
from hypothesis import strategies as st
from lowering.on_paper import problems

import distspmd
from distspmd.lowering import SpaceOrigin
from distspmd.plans.machine import Machine
from scheduling.programs import FAST, PROGRAMS, chain, product, seconds_of, stencil, training_step

SIZES = st.integers(1, 12).map(lambda n: 48 * n)
EACH = pytest.mark.parametrize("name", PROGRAMS)


def grids(ranks: int, parameters: int) -> list[tuple[int, ...]]:
    """All numbers of parts whose product divides a number of ranks."""
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    every = itertools.product(divisors, repeat=parameters)
    return [grid for grid in every if ranks % math.prod(grid) == 0]


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(m=SIZES, n=SIZES, k=SIZES, ranks=st.sampled_from([2, 4, 6, 8]))
def test_no_grid_of_a_product_takes_less(m: int, n: int, k: int, ranks: int) -> None:
    sdfg = product(m, n, k)
    found = distspmd.search(sdfg, ranks, machine=Machine())
    best = min(
        seconds_of(copy.deepcopy(sdfg), {"__return": grid})
        for grid in grids(ranks, 3)
        if all(extent % parts == 0 for extent, parts in zip((m, n, k), grid, strict=True))
    )
    alone = seconds_of(copy.deepcopy(sdfg), {})
    assert seconds_of(sdfg, found) <= 1.05 * min(best, alone)


@pytest.mark.parametrize(
    ("shape", "ranks", "parts"),
    [((1026, 1026), 16, (4, 4)), ((8194, 130), 16, (16, 1)), ((130, 8194), 16, (1, 16))],
)
def test_tiles_of_a_stencil_are_as_square_as_the_array_lets_them(
    shape: tuple[int, int], ranks: int, parts: tuple[int, int]
) -> None:
    machine = Machine(alpha=1e-9, beta=1e-8)
    sdfg = stencil(*shape)
    lowering = distspmd.lower(sdfg, ranks=ranks, machine=machine, arguments={"a": "distributed"})
    assert isinstance(lowering, distspmd.lowering.Lowering)
    assert {space.parts for space in lowering.spaces} == {parts}


def test_of_stencils_that_cost_the_same_the_one_with_longer_rows_is_taken() -> None:
    sdfg = stencil(130, 130)
    lowering = distspmd.lower(sdfg, ranks=2, machine=FAST, arguments={"a": "distributed"})
    assert isinstance(lowering, distspmd.lowering.Lowering)
    assert {space.parts for space in lowering.spaces} == {(2, 1)}


@EACH
@pytest.mark.parametrize("ranks", [4, 6])
def test_bytes_are_those_that_the_plans_cannot_do_without(name: str, ranks: int) -> None:
    sdfg = PROGRAMS[name]()
    found = distspmd.search(sdfg, ranks, machine=FAST)
    assert found.is_split
    lowering = distspmd.lower(sdfg, found, machine=FAST)
    assert not [*problems(lowering)]
    told = distspmd.explain(lowering)
    if any(space.origin is SpaceOrigin.LOWERING for space in lowering.spaces):
        assert told.least <= found.nbytes  # copies for loops are not foreseen
        return
    if not any(m.solution.plan.redistribution.reduction for m in lowering.memlets):
        assert found.nbytes == told.least == told.nbytes
    assert found.compute == pytest.approx(distspmd.predict(lowering).compute)


@EACH
@pytest.mark.parametrize("machine", [Machine(), FAST], ids=["usual", "fast"])
def test_it_is_never_worse_than_rank_0_alone(name: str, machine: Machine) -> None:
    sdfg = PROGRAMS[name]()
    alone = seconds_of(copy.deepcopy(sdfg), {}, machine)
    assert seconds_of(sdfg, None, machine, ranks=4) <= alone * (1 + 1e-9)


def test_a_step_of_training_is_data_parallel_where_batches_are_large() -> None:
    sdfg = training_step(65536, 256)
    arguments = dict.fromkeys(("w1", "w2"), "replicated") | {"x": "distributed"}
    lowering = distspmd.lower(sdfg, ranks=8, machine=Machine(), arguments=arguments)
    assert isinstance(lowering, distspmd.lowering.Lowering)
    parts = {space.name: space.parts for space in lowering.spaces}
    assert parts["x_matmul_w1"] == (8, 1, 1)
    assert parts["g1"] == (1, 1, 8)


def test_every_rank_gets_a_replicated_result_where_one_computes_it() -> None:
    sdfg = training_step(4, 4)
    arguments = {"w1": "replicated"}
    lowering = distspmd.lower(sdfg, ranks=3, machine=Machine(), arguments=arguments)
    assert isinstance(lowering, distspmd.lowering.Lowering)
    assert all(set(space.parts) == {1} for space in lowering.spaces)
    assert lowering.ranks == 3
    (home,) = [each.layout for each in lowering.homes if each.data == "w1"]
    assert home.volumes.tolist() == [math.prod(home.extents)] * 3


# -- what is asked for ---


def test_fixed_spaces_stay() -> None:
    sdfg = training_step(1024, 512)
    lowering = distspmd.lower(sdfg, {"y": (1, 4, 2)}, ranks=8, machine=FAST)
    assert isinstance(lowering, distspmd.lowering.Lowering)
    parts = {space.name: space.parts for space in lowering.spaces}
    assert parts["y"] == (1, 4, 2)
    assert math.prod(parts["x_matmul_w1"]) == 8


def test_a_fixed_space_of_fewer_ranks_stays_on_them() -> None:
    sdfg = training_step(1024, 512)
    lowering = distspmd.lower(sdfg, {"y": (2, 1, 1)}, ranks=6, machine=FAST)
    assert isinstance(lowering, distspmd.lowering.Lowering)
    of = {space.name: space for space in lowering.spaces}
    assert (of["y"].parts, of["y"].mesh.size) == ((2, 1, 1), 2)
    assert math.prod(of["x_matmul_w1"].parts) == 6


def test_what_is_found_is_saved_and_read(tmp_path: Path) -> None:
    sdfg = chain(600)
    found = distspmd.search(sdfg, 4, machine=FAST)
    found.save(tmp_path / "schedule.yaml")
    again = distspmd.lower(copy.deepcopy(sdfg), tmp_path / "schedule.yaml", machine=FAST)
    lowering = distspmd.lower(sdfg, found, machine=FAST)
    assert str(again) == str(lowering)


def test_what_was_found_can_be_what_stays() -> None:
    found = distspmd.search(chain(600), 4, machine=FAST)
    again = distspmd.search(chain(600), 4, fixed=found, machine=FAST)
    assert again.cost == pytest.approx(found.cost)
    assert not any(space.runner_up for space in again.spaces)


def test_what_is_lowered_is_not_searched() -> None:
    sdfg = distspmd.lower(chain(600), {}).sdfg
    with pytest.raises(distspmd.errors.ScheduleError, match="is lowered already"):
        distspmd.search(sdfg, 4)


def test_it_finds_the_same_each_time() -> None:
    first, second = (distspmd.search(training_step(1024, 512), 8, machine=FAST) for _ in range(2))
    assert (first.schedule, first.cost, first.bound) == (second.schedule, second.cost, second.bound)


def test_what_it_found_says_what_it_costs_and_over_what() -> None:
    found = distspmd.search(product(1024, 1024, 1024), 4, machine=Machine())
    text = str(found)
    assert found.bound <= found.cost == pytest.approx(found.compute + found.communication)
    assert found.spaces[0].more >= 0
    assert found.spaces[0].runner_up in text
    assert "next best" in text


def test_what_cannot_be_split_is_said() -> None:
    def first(a):  # type: ignore[no-untyped-def]
        return a + 1

    sdfg = distspmd.frontend.numpy_program(first, a=np.ones(1))
    found = distspmd.search(sdfg, 4, machine=FAST)
    assert not found.is_split
    assert "no iteration space can be" in found.sentence


def test_ranks_that_are_a_large_prime_are_not_all_taken() -> None:
    found = distspmd.search(product(500, 500, 500), 127, machine=FAST)
    lowering = distspmd.lower(product(500, 500, 500), found, machine=FAST)
    assert isinstance(lowering, distspmd.lowering.Lowering)
    assert 96 <= lowering.ranks < 127


def test_fewer_ranks_are_taken_where_they_share_cores_and_do_as_much() -> None:
    machine = Machine(cores=2, alpha=1e-5)
    lowered = {
        ranks: distspmd.lower(
            stencil(514, 514), ranks=ranks, machine=machine, arguments={"a": "distributed"}
        )
        for ranks in (2, 4)
    }
    assert lowered[4].ranks == 2
    seconds = {ranks: distspmd.predict(own).seconds for ranks, own in lowered.items()}
    assert seconds[4] == pytest.approx(seconds[2])


@pytest.mark.parametrize(("dtype", "times"), [("f4", 0.5), ("f8", 1), ("c8", 2), ("c16", 4)])
def test_products_take_as_long_as_their_type_says(dtype: str, times: float) -> None:
    def multiplied(a, b):  # type: ignore[no-untyped-def]
        return a @ b

    machine = Machine(product=2.0, single=0.5, stream=0.0, launch=0.0)
    a = np.ones((64, 64), dtype)
    sdfg = distspmd.frontend.numpy_program(multiplied, a=a, b=a)
    lowering = distspmd.lower(sdfg, {}, machine=machine)
    assert distspmd.predict(lowering).compute == 2 * 64**3 * 2 * times


# -- memory ---


def least(sdfg: SDFG, ranks: int, **options: object) -> int:
    """The least memory that would do, as it is said."""
    with pytest.raises(distspmd.errors.NoSchedule, match="The least that would do is") as told:
        distspmd.search(sdfg, ranks, memory="1 kB", **options)  # type: ignore[arg-type]
    return int(str(told.value).split("would do is ")[1].split(" ")[0].replace(",", ""))


def test_memory_is_kept_at_a_price() -> None:
    sdfg = product(256, 256, 8192)
    options: dict[str, Any] = {"machine": Machine(), "arguments": {"a": "distributed"}}
    free = distspmd.search(sdfg, 8, **options)
    memory = (free.peak + least(sdfg, 8, **options)) // 2
    tight = distspmd.search(sdfg, 8, memory=memory, **options)
    assert tight.peak <= memory < free.peak
    assert tight.cost >= free.bound


def test_too_little_memory_is_refused_with_what_holds_it() -> None:
    with pytest.raises(
        distspmd.errors.NoSchedule, match="tiles of arrays hold 'b' 2,097,152"
    ) as told:
        distspmd.search(product(1024, 1024, 1024), 4, machine=Machine(), memory="1 MB")
    _, _, each = str(told.value).partition(": what it works on takes ")
    held = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\d(?=[,.])", each)]
    assert sum(held) == told.value.least


def test_what_the_least_memory_is_said_to_be_does() -> None:
    for sdfg, ranks in ((training_step(1024, 512), 4), (product(640, 384, 512), 6)):
        memory = least(sdfg, ranks)
        assert distspmd.search(sdfg, ranks, memory=memory, machine=Machine()).peak == memory
        with pytest.raises(distspmd.errors.NoSchedule, match=f"would do is {memory:,} bytes"):
            distspmd.search(sdfg, ranks, memory=memory - 1, machine=Machine())


def test_fewer_of_a_prime_number_of_ranks_may_fit_the_memory() -> None:
    found = distspmd.search(product(500, 500, 500), 127, memory=400_000, machine=Machine())
    assert found.peak <= 400_000
    with pytest.raises(distspmd.errors.NoSchedule, match="for 125 ranks"):
        distspmd.search(product(500, 500, 500), 127, memory=200_000, machine=Machine())


def test_memory_is_told_over_the_program() -> None:
    found = distspmd.search(training_step(1024, 512), 4, machine=Machine())
    assert max(space.held for space in found.spaces) == found.peak
    assert len({space.held for space in found.spaces}) > 1
    assert all(f"{space.held:,}" in str(found) for space in found.spaces)
    assert "Memory of the busiest rank" in found.drawing()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ranks": 0}, "no number of ranks"),
        ({"ranks": 4, "memory": "much"}, "no number of bytes"),
        ({"ranks": 4, "seconds": -1}, "no time"),
        ({"ranks": 4, "mesh": {"x": 3}}, "has 3 ranks"),
        ({"ranks": 4, "fixed": {"__return": (8, 1, 1)}}, "8 ranks"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(distspmd.errors.ArgumentError, match=said):
        distspmd.search(product(64, 64, 64), machine=Machine(), **options)  # type: ignore[arg-type]
