"""Searches find what textbooks have: grids of products, aspects of stencils, Megatron, ZeRO.

Each answer is compared with all others of its kind, or with the numbers of the method's paper.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from dace import SDFG
from dace import float32 as f4
from hypothesis import given, settings
from hypothesis import strategies as st

import distspmd
from distspmd.frontend import numpy_program
from distspmd.layouts.mesh import Mesh
from distspmd.plans.machine import Machine
from distspmd.schedule import OnMesh
from scheduling.programs import FAST, adam, attention, heat, powers, product, training_step
from scheduling.test_search import grids


def held(sdfg: SDFG, **otherwise: str) -> dict[str, str]:
    """Arguments and results as tiles on the ranks, but for some."""
    arrays = [name for name in sdfg.arglist() if name in sdfg.arrays]
    return {name: otherwise.get(name, "distributed") for name in arrays}


def parts_of(found: distspmd.scheduling.SearchResult) -> dict[str, str]:
    """The choice of each space as text."""
    return {space.name: space.choice for space in found.spaces}


def cheapest(
    sdfg: SDFG, ranks: int, fixed: Iterable[dict[str, Any]], **options: Any
) -> tuple[float, dict[str, Any]]:
    """The least cost, if some spaces have one of these grids, and the grids."""

    def cost(grid: dict[str, Any]) -> float:
        try:
            return distspmd.search(sdfg, ranks, fixed=grid, **options).cost
        except distspmd.errors.NoSchedule:
            return math.inf  # it takes too much memory

    return min(((cost(grid), grid) for grid in fixed), key=lambda pair: pair[0])


# -- products ---


def evenly(extents: tuple[int, ...], ranks: int) -> list[dict[str, Any]]:
    """All grids of a product whose tiles leave no rank of them idle."""
    every = grids(ranks, len(extents))
    return [
        {"__return": grid}
        for grid in every
        if all(-(-n // -(-n // p)) == p for n, p in zip(extents, grid, strict=True))
    ]


@pytest.mark.parametrize(
    ("extents", "ranks", "parts"),
    [
        ((1024, 1024, 1024), 16, "i/4, j/4"),
        ((4096, 64, 64), 4, "i/4"),
        ((64, 64, 16384), 4, "k/4"),
        ((2048, 2048, 2048), 64, "i/8, j/4, k/2"),  # 2.5-D: the summands are split, too
    ],
    ids=str,
)
def test_grids_of_products_follow_the_extents(
    extents: tuple[int, int, int], ranks: int, parts: str
) -> None:
    found = distspmd.search(product(*extents), ranks, machine=Machine())
    assert parts_of(found)["__return"] == parts


EXTENTS = st.sampled_from([16, 60, 96, 500, 720, 1024])


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(m=EXTENTS, n=EXTENTS, k=EXTENTS, ranks=st.integers(2, 24))
def test_no_integer_grid_of_a_product_costs_less(m: int, n: int, k: int, ranks: int) -> None:
    sdfg, machine = product(m, n, k), Machine(alpha=1e-7)
    found = distspmd.search(sdfg, ranks, machine=machine)
    best, _ = cheapest(sdfg, ranks, evenly((m, n, k), ranks), machine=machine)
    assert found.cost <= best * (1 + 1e-9)


def test_ranks_stay_idle_where_messages_take_longer_than_their_work() -> None:
    # with messages of 1e-7 s rank 0 alone is best
    sdfg, machine = product(16, 96, 60), Machine(alpha=7e-8, product=5e-11, stream=1e-10)
    found = distspmd.search(sdfg, 16, machine=machine)
    assert parts_of(found)["__return"] == "j/4, k/2"
    assert found.ranks == 16
    assert found.bound <= found.cost


@pytest.mark.slow
def test_within_less_memory_no_grid_of_a_product_costs_less() -> None:
    sdfg = product(256, 2048, 2048)
    options: dict[str, Any] = {"machine": Machine(alpha=1e-7), "arguments": held(sdfg)}
    every = evenly((256, 2048, 2048), 16)
    free = distspmd.search(sdfg, 16, **options)
    for memory in (free.peak - 1, int(0.75 * free.peak)):
        found = distspmd.search(sdfg, 16, memory=memory, **options)
        best, _ = cheapest(sdfg, 16, every, memory=memory, **options)
        assert found.peak <= memory
        assert found.cost <= best * (1 + 1e-9)


BY_BYTES = Machine(alpha=1e-9, beta=1e-9, product=1e-10, operation=1e-13, stream=1e-13)


@pytest.mark.parametrize(
    ("ranks", "memory", "parts"),
    [
        (8, None, [2, 4]),  # 2-D: whole rows of one operand and columns of the other
        (8, 2_400_000, [2, 4]),  # the matrix lives in smaller tiles than its readers have
        (8, 2_250_000, [2, 2, 2]),  # 3-D: blocks of both, and summands
        (64, None, [4, 4, 4]),
    ],
    ids=["2-D", "2-D in smaller tiles", "3-D for want of memory", "3-D"],
)
def test_products_in_turn_are_cut_as_pays_and_as_the_memory_allows(
    ranks: int, memory: int | None, parts: list[int]
) -> None:
    sdfg = powers(512)
    options: dict[str, Any] = {"machine": BY_BYTES, "arguments": held(sdfg), "memory": memory}
    found = distspmd.search(sdfg, ranks, **options)
    grid = sorted(int(part.split("/")[1]) for part in parts_of(found)["c"].split(", "))
    assert grid == parts
    if ranks == 8:
        every = [{"c": grid["__return"]} for grid in evenly((512, 512, 512), ranks)]
        best, _ = cheapest(sdfg, ranks, every, **options)
        assert found.cost <= best * (1 + 1e-9)
        assert memory is None or found.peak <= memory


# -- stencils ---


def cut(n: int, ranks: int, machine: Machine) -> tuple[list[int], list[int]]:
    """Parts that a search gives a cube, largest first; and those of the cheapest halos."""
    sdfg = heat(n)
    found = distspmd.search(sdfg, ranks, machine=machine, arguments=held(sdfg))
    (choice,) = {*parts_of(found).values()}
    parts = [int(part.split("/")[1]) for part in choice.split(", ")]
    _, textbook = min(
        (halo_seconds([-(-(n - 2) // p) for p in grid], grid, machine), grid)
        for grid in itertools.product([p for p in range(1, ranks + 1) if ranks % p == 0], repeat=3)
        if math.prod(grid) == ranks and sorted(grid, reverse=True) == [*grid]
    )
    return sorted(parts, reverse=True), [p for p in textbook if p > 1]


def halo_seconds(tile: Sequence[int], grid: Sequence[int], machine: Machine) -> float:
    """Of a rank in the middle: a message to each neighbour and one from it, of a face."""
    neighbours = [min(p - 1, 2) for p in grid]
    faces = sum(n * math.prod(tile) // own for n, own in zip(neighbours, tile, strict=True))
    return 2 * sum(neighbours) * machine.alpha + 8 * faces * machine.beta


@pytest.mark.parametrize(
    ("machine", "expected"),
    [(Machine(alpha=1e-5, beta=1e-10), [8]), (Machine(alpha=1e-9, beta=1e-8), [2, 2, 2])],
    ids=["messages cost", "bytes cost"],
)
def test_a_cube_is_cut_into_as_many_dimensions_as_pays(
    machine: Machine, expected: list[int]
) -> None:
    parts, textbook = cut(66, 8, machine)
    assert parts == textbook == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "dimensions"), [(1e-4, 1), (3e-6, 2), (1e-9, 3)], ids=["1-D", "2-D", "3-D"]
)
def test_a_cube_on_64_ranks_is_cut_into_slabs_pillars_or_blocks(
    alpha: float, dimensions: int
) -> None:
    parts, textbook = cut(130, 64, Machine(alpha=alpha, beta=1e-10, operation=1e-6))
    assert parts == textbook
    assert len(parts) == dimensions


# -- training ---


def test_layers_of_a_small_batch_are_split_by_their_units_as_megatron_does() -> None:
    sdfg = training_step(64, 16384)
    found = distspmd.search(sdfg, 8, machine=Machine(), arguments=held(sdfg, x="replicated"))
    parts = parts_of(found)
    # the first product by its columns, the second by its rows: their sums are all that moves
    assert (parts["x_matmul_w1"], parts["y"]) == ("j/8", "k/8")
    assert (parts["h"], parts["dh"]) == ("__i1/8", "__i1/8")
    assert (parts["g1"], parts["g2"]) == ("j/8", "i/8")
    assert found.nbytes == 2 * (8 - 1) * 64 * 256 * 4  # one all-reduce of `y`: in a ring


@pytest.mark.slow
@pytest.mark.parametrize("batch", [256, 4096, 8192, 262144])
def test_no_mixture_of_data_and_tensor_parallelism_costs_less(batch: int) -> None:
    sdfg, ranks = training_step(batch, 4096), 16
    options: dict[str, Any] = {"machine": Machine(), "arguments": held(sdfg)}
    found = distspmd.search(sdfg, ranks, **options)
    every = [
        {
            "x_matmul_w1": (data, model, 1),
            "h": (data, model),
            "y": (data, 1, model),
            "dy_matmul_w2_T": (data, model, 1),
            "dh": (data, model),
        }
        for data in (1, 2, 4, 8, 16)
        for model in [ranks // data]
    ]
    best, grid = cheapest(sdfg, ranks, every, **options)
    assert found.cost <= best * (1 + 1e-9)
    data, model = grid["h"]
    if batch == 8192:
        assert data > 1 < model  # a hybrid is the best of them
    if batch in (256, 262144):
        assert (data, model) == {256: (1, 16), 262144: (16, 1)}[batch]


def test_states_of_large_batches_are_split_as_zero_does() -> None:
    sdfg, ranks = adam(16384, 512, 2048), 8
    arguments = held(sdfg, w1="replicated", w2="replicated")
    found = distspmd.search(sdfg, ranks, machine=Machine(), arguments=arguments)
    parts = parts_of(found)
    assert (parts["x_matmul_w1"], parts["y"]) == ("i/8", "i/8")  # the batch
    assert (parts["g1"], parts["g2"]) == ("k/8", "k/8")  # which gradients are summed over
    assert all(parts[name].endswith("/8") for name in ("m1", "m2", "s1", "s2", "w1", "w2"))
    # one reduce-scatter of each gradient and one all-gather of each parameter
    assert found.nbytes == 2 * (ranks - 1) * 2 * (512 * 2048 * 4)


def test_within_less_memory_parameters_are_split_and_gathered_as_zero_does() -> None:
    sdfg, ranks = adam(16384, 512, 2048), 8
    options: dict[str, Any] = {"machine": Machine(product=5e-11), "arguments": held(sdfg)}
    free = distspmd.search(sdfg, ranks, **options)
    tight = distspmd.search(sdfg, ranks, memory=int(0.95 * free.peak), **options)
    assert tight.peak <= 0.95 * free.peak < free.peak
    assert parts_of(tight) == parts_of(free)  # the batch, and a part of each state
    # both parameters live in tiles; one that is read twice is gathered more often for it
    assert {*tight.schedule.homes} == {"w1", "w2"}
    assert all(home.volumes.max() < 512 * 2048 for home in tight.schedule.homes.values())
    assert free.cost < tight.cost < 1.001 * free.cost
    lowering = distspmd.lower(sdfg, tight, **options)
    homes = {home.data: home.layout for home in lowering.homes}
    assert all(homes[name] == home for name, home in tight.schedule.homes.items())
    assert sum(memlet.solution.cost.nbytes for memlet in lowering.memlets) <= tight.nbytes


def test_no_mixture_on_nodes_costs_less() -> None:
    sdfg, ranks = training_step(8192, 2048), 16
    machine = Machine(node_ranks=8, far_alpha=2e-5, far_beta=1e-9)
    options: dict[str, Any] = {"machine": machine, "arguments": held(sdfg)}
    found = distspmd.search(sdfg, ranks, **options)

    def on(mesh: Mesh, **split: str) -> OnMesh:
        return OnMesh(mesh, split)

    every = [
        {
            "x_matmul_w1": on(mesh, i="d", j="m"),
            "h": on(mesh, __i0="d", __i1="m"),
            "y": on(mesh, i="d", k="m"),
            "dy_matmul_w2_T": on(mesh, i="d", j="m"),
            "dh": on(mesh, __i0="d", __i1="m"),
        }
        for data in (1, 2, 4, 8, 16)
        for mesh in (Mesh(d=data, m=ranks // data), Mesh(m=ranks // data, d=data))
    ]
    best, grid = cheapest(sdfg, ranks, every, **options)
    assert found.cost <= best * (1 + 1e-9)
    assert next(iter(grid["h"].mesh.axes)) == ("d", 16)  # nodes share gradients, no activations


def test_heads_are_split_in_a_node_and_the_batch_across_nodes() -> None:
    def attended(
        x: f4[2, 128, 512],
        wq: f4[512, 8, 64],
        wk: f4[512, 8, 64],
        wv: f4[512, 8, 64],
        wo: f4[8, 64, 512],
    ):
        q = np.einsum("bse,ehp->bhsp", x, wq)
        k = np.einsum("bse,ehp->bhsp", x, wk)
        v = np.einsum("bse,ehp->bhsp", x, wv)
        e = np.exp(np.einsum("bhsp,bhtp->bhst", q, k))
        w = e / np.sum(e, axis=3, keepdims=True)
        return np.einsum("bhsp,hpe->bse", np.einsum("bhst,bhtp->bhsp", w, v), wo)

    sdfg = numpy_program(attended)
    machine = Machine(node_ranks=8, far_alpha=2e-5, far_beta=1e-9)
    found = distspmd.search(sdfg, 16, machine=machine, arguments=held(sdfg))
    for name in ("q", "k", "v"):
        chosen = found.schedule[name]
        own = {n: axes for n, axes in chosen.split.items() if axes}
        assert (own.keys(), own["b"]) == ({"b", "h"}, ("x",))
        assert next(iter(chosen.mesh.axes)) == ("x", 2)  # ranks of a node, neighbours, have heads
        assert math.prod(chosen.mesh[axis] for axis in own["h"]) == 8


# -- attention ---


def test_a_long_context_is_split_by_its_queries() -> None:
    sdfg = attention(1, 1, 8192)
    found = distspmd.search(sdfg, 16, machine=Machine(), arguments=held(sdfg))
    parts = parts_of(found)
    assert (parts["einsum_expr"], parts["__return"]) == ("s/16", "s/16")
    assert found.nbytes == 0


def test_many_contexts_are_split_by_batch_and_heads() -> None:
    found = distspmd.search(attention(16, 2, 128), 16, machine=FAST)
    assert not any("s/" in choice or "t/" in choice for choice in parts_of(found).values())
    whole = 3 * 16 * 2 * 128 * 64 * 4  # queries, keys and values: rank 0 keeps its part of them
    assert found.nbytes == (whole + whole // 3) * 15 // 16
