"""Constraints against what the iterations of each rank really touch, by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import dace
import numpy as np
import pytest

from distspmd import intervals
from distspmd.constraints import Use, uses
from distspmd.errors import UnsupportedProgram
from distspmd.intervals import Box
from distspmd.pipeline import iteration_spaces
from distspmd.schedule import Tiling

Index = tuple[int, ...]
Touch = Callable[[Index], Iterable[Index]]


def constraints(program: dace.SDFG, parts: tuple[int, ...], position: int = 0) -> list[Use]:
    space = iteration_spaces(program)[position]
    return uses(space, Tiling.on_grid(space.parameters, space.ranges, parts))


def of(found: list[Use], data: str, is_write: bool = False) -> Use:
    (use,) = (use for use in found if use.data == data and use.is_write == is_write)
    return use


def hull(indices: Iterable[Index], ndim: int) -> Box:
    """The smallest box with all the indices."""
    touched = list(indices)
    if not touched:
        return intervals.empty(ndim)
    return tuple((min(axis), max(axis) + 1) for axis in zip(*touched, strict=True))


def check(use: Use, tiling: list[list[range]], touch: Touch) -> None:
    """Each box is the hull of what the rank's iterations touch."""
    for rank, axes in enumerate(tiling):
        touched = {index for point in itertools.product(*axes) for index in touch(point)}
        found = use.layout.box(rank)
        expected = hull(touched, len(use.layout.extents))
        assert found == expected or (intervals.is_empty(found) and not touched), (rank, found)


def blocks(extent: int, parts: int, start: int = 0) -> list[range]:
    tile = -(-extent // parts)
    return [
        range(start + min(r * tile, extent), start + min((r + 1) * tile, extent))
        for r in range(parts)
    ]


@dace.program
def fir(x: dace.float64[32], h: dace.float64[4], y: dace.float64[28]):
    for i, k in dace.map[0:28, 0:4]:
        y[i] += h[k] * x[i - k + 4]


@pytest.mark.parametrize("parts", [(1, 1), (3, 1), (2, 2), (1, 4), (5, 3)])
def test_indices_of_mixed_signs_are_bounded_exactly(parts: tuple[int, int]) -> None:
    found = constraints(fir.to_sdfg(), parts)
    tiling = [list(pair) for pair in itertools.product(blocks(28, parts[0]), blocks(4, parts[1]))]
    check(of(found, "x"), tiling, lambda p: [(p[0] - p[1] + 4,)])
    check(of(found, "h"), tiling, lambda p: [(p[1],)])
    written = of(found, "y", is_write=True)
    check(written, tiling, lambda p: [(p[0],)])
    assert written.accumulates
    assert (written.layout.partial is not None) == (parts[1] > 1)


@dace.program
def triangle(x: dace.float64[10, 7], y: dace.float64[10]):
    for i in dace.map[0:10]:
        for j in dace.map[i:7]:
            y[i] += x[i, j]


def test_ranges_that_depend_on_others_are_bounded() -> None:
    found = constraints(triangle.to_sdfg(), (4,))
    read = of(found, "x")
    for rank, rows in enumerate(blocks(10, 4)):
        touched = hull([(i, j) for i in rows for j in range(i, 7)], 2)
        assert intervals.contains(read.layout.box(rank), touched)
    check(of(found, "y", is_write=True), [[rows] for rows in blocks(10, 4)], lambda p: [(p[0],)])


@dace.program
def strided(x: dace.float64[30], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[9 - i] = x[3 * i] + x[2 * i + 1]


@pytest.mark.parametrize("parts", [1, 3, 4, 11])
def test_strides_and_reversals_are_bounded(parts: int) -> None:
    found = constraints(strided.to_sdfg(), (parts,))
    tiling = [[values] for values in blocks(10, parts)]
    check(of(found, "y", is_write=True), tiling, lambda p: [(9 - p[0],)])
    assert of(found, "y", is_write=True).exact
    for rank, (values,) in enumerate(tiling):
        touched = hull([(3 * i,) for i in values] + [(2 * i + 1,) for i in values], 1)
        for use in found:
            if use.data == "x" and touched != intervals.empty(1):
                boxes = [u.layout.box(rank) for u in found if u.data == "x"]
                assert (
                    hull([(lo,) for ((lo, _),) in boxes] + [(hi - 1,) for ((_, hi),) in boxes], 1)
                    == touched
                )


@dace.program
def indirect(x: dace.float64[32, 5], c: dace.int64[34], y: dace.float64[32]):
    for i in dace.map[0:32]:
        total = 0.0
        for k in range(5):
            if x[i, k] > 0:
                total += x[c[i + 2], k]
        y[i] = total


def test_unknown_indices_take_the_whole_dimension_and_say_so() -> None:
    found = constraints(indirect.to_sdfg(), (4,))
    read = [use for use in found if use.data == "x"]
    assert all(use.layout.box(1) == ((0, 32), (0, 5)) for use in read if use.approximate == (0,))
    assert any(use.approximate == (0,) for use in read)
    # c is read by control flow alone, and its index is known
    assert of(found, "c").layout.box(1) == ((10, 18),)
    assert of(found, "y", is_write=True).exact


@dace.program
def conditional(x: dace.float64[12], y: dace.float64[12]):
    for i in dace.map[0:12]:
        if x[i] > 0:
            y[i] = x[i]


@dace.program
def every_other(x: dace.float64[12], y: dace.float64[24]):
    for i in dace.map[0:12]:
        y[2 * i] = x[i]


@dace.program
def diagonal(x: dace.float64[12], y: dace.float64[12, 12]):
    for i in dace.map[0:12]:
        y[i, i] = x[i]


@pytest.mark.parametrize("program", [conditional, every_other, diagonal])
def test_a_write_that_may_leave_elements_out_reads_them_too(program: dace.SDFG) -> None:
    written = of(constraints(program.to_sdfg(), (3,)), "y", is_write=True)
    assert not written.exact
    assert written.reads_before


@dace.program
def overlapping(x: dace.float64[12, 4], y: dace.float64[15]):
    for i, j in dace.map[0:12, 0:4]:
        y[i + j] = x[i, j]


def test_writes_to_the_same_elements_are_refused_with_the_line() -> None:
    with pytest.raises(UnsupportedProgram, match=r"test_constraints.py:\d+: with the grid i=3,"):
        constraints(overlapping.to_sdfg(), (3, 1))
    assert of(constraints(overlapping.to_sdfg(), (1, 1)), "y", is_write=True)


@dace.program
def scattered(x: dace.float64[12, 4], y: dace.float64[15]):
    for i, j in dace.map[0:12, 0:4]:
        y[i + j] += x[i, j]


def test_overlapping_reductions_are_operands_of_all_ranks() -> None:
    written = of(constraints(scattered.to_sdfg(), (3, 2)), "y", is_write=True)
    assert written.layout.partial is not None
    assert written.layout.partial.axes == ("i", "j")
    assert written.layout.box(0) == ((0, 5),)


@dace.program
def windows(a: dace.float64[8, 6], b: dace.float64[6, 9], v: dace.float64[6]):
    return a[1:6] @ b[:, 2:7], a[3] @ b, a[2:5, :] @ v


def test_library_nodes_read_their_windows() -> None:
    spaces = iteration_spaces(windows.to_sdfg())
    product = next(space for space in spaces if len(space.parameters) == 3)
    found = uses(product, Tiling.on_grid(product.parameters, product.ranges, (5, 1, 1)))
    boxes = {use.layout.box(2) for use in found if not use.is_write}
    reads = {use.data for use in found if not use.is_write}
    if reads == {"a", "b"}:
        assert boxes == {((3, 4), (0, 6)), ((0, 6), (2, 7))}


@dace.program
def product(a: dace.float32[10, 8], b: dace.float32[8, 6]):
    return a @ b


@pytest.mark.parametrize("parts", list(itertools.product((1, 2, 3), repeat=3)))
def test_the_schemes_of_the_matrix_product(parts: tuple[int, int, int]) -> None:
    found = constraints(product.to_sdfg(), parts)
    rows, columns, inner = blocks(10, parts[0]), blocks(6, parts[1]), blocks(8, parts[2])
    tiling = [list(axes) for axes in itertools.product(rows, columns, inner)]
    check(of(found, "a"), tiling, lambda p: [(p[0], p[2])])
    check(of(found, "b"), tiling, lambda p: [(p[2], p[1])])
    written = of(found, "__return", is_write=True)
    check(written, tiling, lambda p: [(p[0], p[1])])
    assert not written.accumulates
    assert (written.layout.partial is not None) == (parts[2] > 1)


@dace.program
def gathered(x: dace.float64[9, 7]):
    return np.max(x, axis=0), np.sum(x)


def test_reductions_write_operands_along_the_reduced_axes() -> None:
    sdfg = gathered.to_sdfg()
    spaces = iteration_spaces(sdfg)
    by_label = [s for s in spaces if "Reduce" in type(s.node).__name__]
    over_rows = next(s for s in by_label if s.writes[0].startswith("__return_0"))
    found = uses(over_rows, Tiling.on_grid(over_rows.parameters, over_rows.ranges, (2, 3)))
    written = next(use for use in found if use.is_write)
    assert written.layout.partial is not None
    assert written.layout.partial.reduction == "max"
    assert written.layout.partial.axes == (over_rows.parameters[1],)
