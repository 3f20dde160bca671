"""What classes of ranks say of pairs of layouts is what all ranks say, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distspmd
from distspmd.plans.machine import Machine
from distspmd.scheduling import boxes, traffic
from distspmd.scheduling.columns import Columns
from distspmd.scheduling.tiles import Tiles, hull, tabled
from scheduling.programs import chain

STACKS = st.tuples(
    st.integers(1, 4), st.integers(1, 9), st.integers(0, 3), st.integers(0, 2**32 - 1)
)


def drawn(candidates: int, ranks: int, dimensions: int, seed: int) -> np.ndarray:
    """Boxes of ranks under some candidates: few different intervals, some of them empty."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, 5, (candidates, ranks, dimensions, 2)), axis=-1)
    return boxes.emptied(ends.astype(np.int64))


@settings(deadline=None)
@given(shape=STACKS, seed=st.integers(0, 2**32 - 1))
def test_pairs_have_in_common_what_all_ranks_have(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    a, b = drawn(*shape), drawn(3, *shape[1:3], seed)
    columns = Columns(shape[1])
    mine, theirs = Tiles.of(columns, a), Tiles.of(columns, b)
    common = boxes.common(a, b)
    wanted = boxes.common_with_one(b, boxes.hull_of_ranks(a))

    def found(each: Any) -> list[np.ndarray]:
        lacking = each.wanted - each.common
        return [
            (each.common * each.ranks).sum(axis=1),
            (each.wanted * each.ranks).sum(axis=1),
            (each.mine * each.ranks).sum(axis=1),
            (each.theirs * each.ranks).sum(axis=1),
            lacking.max(axis=1),
            (each.common * (each.theirs + each.mine) * each.ranks).sum(axis=1),
        ]

    held, other = (boxes.volumes(each) for each in (a, b))
    sums = [common.sum(axis=2), wanted.sum(axis=2)]
    sums += [np.broadcast_to(held.sum(axis=1)[:, None], (len(a), len(b)))]
    sums += [np.broadcast_to(other.sum(axis=1)[None], (len(a), len(b)))]
    sums += [(wanted - common).max(axis=2)]
    sums += [(common * (held[:, None] + other[None])).sum(axis=2)]
    for ours, all_of_them in zip(tabled(mine, theirs, found), sums, strict=True):
        assert np.array_equal(ours, all_of_them)
    inside = (common == other[None]).all(axis=2)
    assert np.array_equal(traffic.within(theirs, mine), inside)


@settings(deadline=None)
@given(shape=STACKS, seed=st.integers(0, 2**32 - 1))
def test_tiles_are_counted_and_joined_as_boxes_are(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    bounds, others = drawn(*shape), drawn(*shape[:3], seed)
    columns = Columns(shape[1])
    tiles = Tiles.of(columns, bounds)
    volumes = boxes.volumes(bounds)
    assert np.array_equal(tiles.bounds, bounds)
    assert np.array_equal(tiles.volumes, volumes)
    assert np.array_equal(tiles.holders, (volumes > 0).sum(axis=1))
    assert np.array_equal(tiles.largest, volumes.max(axis=1))
    once = [boxes.different_tiles(each) for each in bounds]
    if shape[2]:
        assert tiles.count.tolist() == list(map(len, once))
        assert tiles.different.tolist() == [int(boxes.volumes(each).sum()) for each in once]
        assert np.array_equal(tiles.whole, boxes.hull_of_ranks(bounds))
    both = Tiles.of(columns, others)
    joined = [hull(columns, *pair) for pair in zip(tiles.keys, both.keys, strict=True)]
    assert np.array_equal(
        Tiles.stacked(columns, joined).bounds, boxes.emptied(boxes.hull(bounds, others))
    )


@pytest.mark.parametrize("name", ["move", "reduce"])
def test_what_moves_does_not_depend_on_how_many_ranks_are_alike(name: str) -> None:
    """Layouts on twice as many ranks, each there twice: no rank has more to do."""
    bounds = drawn(6, 8, 2, 0)
    costs = []
    for stack in (bounds, np.concatenate([bounds, bounds], axis=1)):
        tiles = Tiles.of(Columns(stack.shape[1]), stack)
        operands = np.full(len(tiles), 2)
        asked: dict[str, Callable[[], traffic.Moved]] = {
            "move": lambda tiles=tiles: traffic.move(tiles, tiles, 4, Machine(alpha=0.0)),
            "reduce": lambda tiles=tiles, operands=operands: traffic.reduce(
                tiles, operands, tiles, 4, Machine(alpha=0.0)
            ),
        }
        costs.append(asked[name]())
    several = (boxes.volumes(bounds) > 0).sum(axis=1) > 1
    np.testing.assert_allclose(2 * costs[0].nbytes, costs[1].nbytes, atol=4)  # rounded up
    np.testing.assert_allclose(costs[0].in_place[several], costs[1].in_place[several])


def test_a_search_keeps_few_columns_of_many_ranks() -> None:
    """Its memory is that of different columns and pairs, not of ranks times candidates."""
    from distspmd.passes.select_tilings import as_tiled
    from distspmd.pipeline import begin_compilation, run_passes
    from distspmd.scheduling import candidates
    from distspmd.scheduling.model import Model, Program

    compilation = begin_compilation(chain(4096), {}, machine=Machine())
    run_passes(compilation, stop_after="align-maps")
    compilation.spaces = as_tiled(compilation.spaces)
    model = Model(Program.of(compilation), candidates.mesh_of(1024), {})
    columns = model.homes[0].container_choice.columns
    held = sum(len(home.container_choice.candidates) for home in model.homes)
    kept = columns.whole(-1)  # the next number
    assert kept < 3 * held
    assert distspmd.search(chain(4096), 1024, machine=Machine()).is_split
