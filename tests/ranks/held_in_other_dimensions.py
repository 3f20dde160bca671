"""Residents of one program that another takes over, whose dimensions are split in other ways."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from distspmd.execution.resident_arguments import Residents
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh


def move(comm: Any, first: str, second: str) -> list[str]:
    """Go from one layout to another without live memory, and return what was warned of."""
    mesh = Mesh(x=comm.size)
    layouts = Layout.parse(first, mesh), Layout.parse(second, mesh)
    dtypes = {"w": np.dtype(np.float32)}
    theirs, ours = (
        Residents(comm, {"w": layout}, dtypes, lambda _, shape, dtype: np.zeros(shape, dtype), "w")
        for layout in layouts
    )
    before, after = (part(layout, comm.rank) for layout in layouts)
    theirs.tiles["w"][...] = before
    theirs.fresh.add("w")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ours.take(theirs, {"w": "w"}, {}, {})
    np.testing.assert_array_equal(ours.tiles["w"], after)
    assert ours.fresh == {"w"}
    assert not theirs.fresh
    return [str(warning.message) for warning in found]


def part(layout: Layout, rank: int) -> Any:
    """What a rank has of numbers that go up."""
    whole = np.arange(np.prod(layout.extents), dtype=np.float32).reshape(layout.extents)
    return whole[intervals.slices(layout.box(rank))]


def check(comm: Any) -> None:
    assert not move(comm, "[4{x}12, 5]", "[3, 4, 2{x}5]")
    assert not move(comm, "[3, 4, 2{x}5]", "[1{x}3, 20]")
    warned = move(comm, "[3{x}8]", "[4, 1{x}2]")  # the second part begins within a pair
    assert len(warned) == (comm.rank == 0)
    assert all("rank 0 holds all 32 bytes" in text for text in warned)
