"""Boxes that ranks read and write, against what the iterations of each rank touch.

The programs of `lowering.programs` run as plain Python on arrays that record each element; random
affine maps are evaluated point by point.
"""

import itertools
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from dace import Memlet
from hypothesis import given
from hypothesis import strategies as st
from lowering.programs import CASES, indices, reductions
from strategies import tiling_on_grid

from distspmd.analysis.constraints import uses
from distspmd.analysis.iteration_spaces import spaces_of
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Use
from distspmd.errors import UnsupportedProgram
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Partial
from distspmd.passes.normalize.pipeline import normalize

Point = tuple[int, ...]
Elements = set[Point]


def uses_of(program: Any, parts: Sequence[int], position: int = 0) -> tuple[Tiling, list[Use]]:
    """Tiling and constraints of one space of a program."""
    sdfg = program if isinstance(program, dace.SDFG) else program.to_sdfg()
    normalize(sdfg)
    space = spaces_of(sdfg)[position]
    tiling = tiling_on_grid(space.parameters, space.ranges, parts)
    return tiling, uses(space, tiling)


def elements(box: Box) -> Elements:
    return set(itertools.product(*(range(lo, hi) for lo, hi in box)))


def hull(touched: Elements) -> Box:
    return tuple((min(at), max(at) + 1) for at in zip(*touched, strict=True))


# --- programs, run as plain Python ---


@dataclass
class Trace:
    """What each iteration of the one map of a program reads and writes."""

    point: Point = ()
    reads: dict[tuple[Point, str], Elements] = field(default_factory=dict)
    writes: dict[tuple[Point, str], Elements] = field(default_factory=dict)
    depth: int = 0

    def __getitem__(self, ranges: Any) -> Iterator[Any]:
        """Stand for `dace.map`: iterate, and note the point of the outermost map."""
        ranges = ranges if isinstance(ranges, tuple) else (ranges,)
        self.depth += 1
        for point in itertools.product(*(range(r.start, r.stop, r.step or 1) for r in ranges)):
            if self.depth == 1:
                self.point = point
            yield point if len(point) > 1 else point[0]
        self.depth -= 1


class Recorded:
    """An array that records which elements are read and written."""

    def __init__(self, name: str, values: np.ndarray, trace: Trace) -> None:
        self.name, self.values, self.trace = name, values, trace
        self.places = np.empty(values.shape, object)
        for at in np.ndindex(values.shape):
            self.places[at] = at

    def _note(self, kind: dict[tuple[Point, str], Elements], index: Any) -> None:
        found = self.places[index]
        held = {found} if isinstance(found, tuple) else set(found.flat)
        kind.setdefault((self.trace.point, self.name), set()).update(held)

    def __getitem__(self, index: Any) -> Any:
        self._note(self.trace.reads, index)
        return self.values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note(self.trace.writes, index)
        self.values[index] = value


def traced(program: Any, arguments: Mapping[str, Any]) -> Trace:
    trace = Trace()
    shim = types.SimpleNamespace(**{n: getattr(dace, n) for n in ("float64", "int64")}, map=trace)
    function = types.FunctionType(program.f.__code__, {**program.f.__globals__, "dace": shim})
    function(
        **{
            name: Recorded(name, value.copy(), trace) if isinstance(value, np.ndarray) else value
            for name, value in arguments.items()
        }
    )
    return trace


def mine(rank: int, tiling: Tiling, space_steps: Sequence[int], points: set[Point]) -> set[Point]:
    """The iterations that a rank runs."""
    ranges = [
        set(range(int(lo), int(hi), step))
        for lo, hi, step in zip(tiling.lower[rank], tiling.upper[rank], space_steps, strict=True)
    ]
    return {p for p in points if all(x in r for x, r in zip(p, ranges, strict=True))}


ONE_MAP = [
    program
    for name, program in {**vars(indices), **vars(reductions)}.items()
    if type(program).__name__ == "DaceProgram"
    and "map" in program.f.__code__.co_names
    and not {"zeros", "_scaled"} & {*program.f.__code__.co_names}
]


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.program in ONE_MAP], ids=lambda case: case.name
)
def test_boxes_hold_what_a_program_touches(case):
    (parts,) = case.schedule.values()
    tiling, found = uses_of(case.program, parts)
    steps = [int(r.step) for r in found[0].space.ranges]
    trace = traced(case.program, case.arguments(case.program.to_sdfg(), 1))
    points = {point for point, _ in [*trace.reads, *trace.writes]}
    seen = set()
    for rank in range(tiling.mesh.size):
        own = mine(rank, tiling, steps, points)
        seen |= own
        for use in found:
            kind = trace.reads if isinstance(use, Read) else trace.writes
            touched = set().union(*(kind.get((point, use.data), set()) for point in own))
            box = elements(use.layout.box(rank))
            if not isinstance(use, Read):
                assert touched <= box, f"rank {rank} writes {use.data} outside its box"
                if use.exact:
                    assert touched == box, f"rank {rank} does not write all of {use.data}"
        for data in {name for _, name in trace.reads}:
            touched = set().union(*(trace.reads.get((point, data), set()) for point in own))
            held = set().union(
                *(
                    elements(use.layout.box(rank))
                    for use in found
                    if use.data == data
                    and (isinstance(use, Read) or use.needs_values or use.accumulates)
                )
            )
            assert touched <= held, f"rank {rank} reads {data} outside its boxes"
    assert seen == points, "an iteration that no rank runs"


# --- random maps ---


@st.composite
def affine_maps(draw: st.DrawFn) -> dict[str, Any]:
    """Ranges of i and j, grid, and the indices of a read and a write in two dimensions each."""

    def index(names: str) -> tuple[dict[str, int], int]:
        return {n: draw(st.integers(-2, 2)) for n in names}, draw(st.integers(0, 2))

    def extent() -> tuple[int, int, int]:
        begin, count = draw(st.integers(0, 3)), draw(st.integers(1, 5))
        step = draw(st.sampled_from([1, 1, 1, 2, 3]))
        return begin, begin + (count - 1) * step + 1, step

    return {
        "ranges": [extent(), extent()],
        "parts": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        "read": [index("ij"), index("ij")],
        "write": [index("ij"), index(draw(st.sampled_from(["ij", "i", "j", ""])))],
        "lengths": (draw(st.integers(1, 3)), draw(st.integers(1, 2))),
        "reduces": draw(st.booleans()),
    }


def touched_by(index: list, at: Mapping[str, int], lengths: Sequence[int]) -> Elements:
    starts = [sum(a * at[n] for n, a in terms.items()) + c for terms, c in index]
    return set(itertools.product(*(range(s, s + n) for s, n in zip(starts, lengths, strict=True))))


def all_points(drawn: dict[str, Any]) -> list[Point]:
    return list(itertools.product(*(range(*r) for r in drawn["ranges"])))


def moved_inside(drawn: dict[str, Any], which: str, lengths: Sequence[int]) -> tuple[list, Point]:
    """The index shifted so that all that it touches is from 0 on; and the extents of its array."""
    everything: Elements = set()
    for point in all_points(drawn):
        everything |= touched_by(drawn[which], dict(zip("ij", point, strict=True)), lengths)
    ends = hull(everything)
    shifted = [(terms, c - lo) for (terms, c), (lo, _) in zip(drawn[which], ends, strict=True)]
    return shifted, tuple(hi - lo + 1 for lo, hi in ends)


def subset(index: list, lengths: Sequence[int]) -> str:
    starts = [
        " + ".join([*(f"({a}) * {n}" for n, a in terms.items()), str(c)]) for terms, c in index
    ]
    return ", ".join(f"{s}:{s} + {n}" for s, n in zip(starts, lengths, strict=True))


def sdfg_of(drawn: dict[str, Any], read: list, write: list, shapes: Sequence[Point]) -> dace.SDFG:
    sdfg = dace.SDFG("drawn")
    sdfg.add_array("x", shapes[0], dace.float64)
    sdfg.add_array("y", shapes[1], dace.float64)
    lengths, one = drawn["lengths"], (1, 1)
    wcr = "lambda a, b: a + b" if drawn["reduces"] else None
    sdfg.add_state().add_mapped_tasklet(
        "drawn",
        {n: f"{b}:{e}:{s}" for n, (b, e, s) in zip("ij", drawn["ranges"], strict=True)},
        {"_x": Memlet(data="x", subset=subset(read, lengths))},
        "_y = 0;",
        {"_y": Memlet(data="y", subset=subset(write, one), wcr=wcr)},
        language=dace.Language.CPP,
        external_edges=True,
    )
    return sdfg


@given(drawn=affine_maps())
def test_boxes_of_affine_maps_are_the_hulls_of_what_they_touch(drawn):
    lengths, one = drawn["lengths"], (1, 1)
    read, read_shape = moved_inside(drawn, "read", lengths)
    write, write_shape = moved_inside(drawn, "write", one)
    sdfg = sdfg_of(drawn, read, write, (read_shape, write_shape))
    points = set(all_points(drawn))
    tiling = tiling_on_grid("ij", spaces_of(sdfg)[0].ranges, drawn["parts"])
    steps = [s for _, _, s in drawn["ranges"]]
    written, taken = [], []
    for rank in range(tiling.mesh.size):
        own = [dict(zip("ij", p, strict=True)) for p in mine(rank, tiling, steps, points)]
        written.append(set().union(*(touched_by(write, at, one) for at in own)))
        taken.append(set().union(*(touched_by(read, at, lengths) for at in own)))
    try:
        _, found = uses_of(sdfg, drawn["parts"])
    except UnsupportedProgram:
        assert not drawn["reduces"]
        hulls = [elements(hull(w)) for w in written if w]
        assert any(a & b for a, b in itertools.combinations(hulls, 2))
        return
    (reading,), (writing,) = ([u for u in found if isinstance(u, Read) != w] for w in (False, True))
    for rank, (t, w) in enumerate(zip(taken, written, strict=True)):
        assert elements(reading.layout.box(rank)) == (elements(hull(t)) if t else set())
        assert elements(writing.layout.box(rank)) == (elements(hull(w)) if w else set())
        if writing.exact:
            assert elements(writing.layout.box(rank)) == w
    if writing.layout.partial is None:
        for (a, left), (b, right) in itertools.combinations(enumerate(written), 2):
            same = writing.layout.box(a) == writing.layout.box(b)
            assert not left & right or (same and writing.exact), (a, b)


@given(drawn=affine_maps())
def test_operands_of_a_reduction_are_told_apart(drawn):
    drawn["reduces"] = True
    write, shape = moved_inside(drawn, "write", (1, 1))
    sdfg = sdfg_of(drawn, [({}, 0), ({}, 0)], write, ((4, 4), shape))
    tiling, found = uses_of(sdfg, drawn["parts"])
    (writing,) = (use for use in found if not isinstance(use, Read))
    steps = [s for _, _, s in drawn["ranges"]]
    points = set(all_points(drawn))
    own = [mine(rank, tiling, steps, points) for rank in range(tiling.mesh.size)]
    for a, b in itertools.combinations(range(tiling.mesh.size), 2):
        common = intervals.intersect(writing.layout.box(a), writing.layout.box(b))
        if own[a] and own[b] and not intervals.is_empty(common):
            assert writing.layout.operand(a) != writing.layout.operand(b)
    assert writing.reduction in (None, "sum")
    assert not (writing.reduction and writing.needs_values)


# --- what programs write, by hand ---


def layouts_of(program: Any, *parts: int, position: int = 0) -> dict[str, str]:
    _, found = uses_of(program, parts, position)
    return {
        ("read " if isinstance(use, Read) else "write ") + use.data: str(use.layout)
        for use in found
    }


@dace.program
def row_times(a: dace.float64[5, 6], x: dace.float64[6, 4]):
    return a[3, :] @ x


@dace.program
def rows_times(a: dace.float64[9, 6], b: dace.float64[6, 4]):
    return a[1:5] @ b


@dace.program
def matmul(a: dace.float64[10, 8], b: dace.float64[8, 6]):
    return a @ b


@dace.program
def transposed(a: dace.float64[10, 8], b: dace.float64[10, 6]):
    return a.T @ b


@dace.program
def loop_bound_reads(r: dace.int64[11], v: dace.float64[50], y: dace.float64[10]):
    for i in dace.map[0:10]:
        for j in range(r[i], r[i + 1]):
            y[i] += v[j]


@dace.program
def branch_reads(c: dace.int64[12], x: dace.float64[10], y: dace.float64[10]):
    for i in dace.map[0:10]:
        if c[i + 2] > 3:
            y[i] = x[i]


@dace.program
def rows_of_a_triangle(x: dace.float64[7], y: dace.float64[10, 7]):
    for i in dace.map[0:10]:
        for j in dace.map[i:7]:
            y[i, :] = x[j]


@dace.program
def race(x: dace.float64[5, 4], y: dace.float64[8]):
    for i, j in dace.map[0:5, 0:4]:
        y[i + j] = x[i, j]


@dace.program
def wrapped(x: dace.float64[10], y: dace.float64[4]):
    for i in dace.map[0:10]:
        y[i % 4] = x[i]


@dace.program
def shifted_twice(x: dace.float64[10], y: dace.float64[11]):
    for i in dace.map[0:10]:
        y[i] = x[i]
        y[i + 1] = x[i]


@dace.program
def subtracted(x: dace.float64[10], y: dace.float64[1]):
    for i in dace.map[0:10]:
        y[0] -= x[i]


def test_a_product_reads_rows_and_columns_and_writes_operands_along_its_depth():
    assert layouts_of(matmul, 2, 3, 1) == {
        "read a": "[5{__i0}10, 8]",
        "read b": "[8, 2{__i1}6]",
        "write __return": "[5{__i0}10, 2{__i1}6]",
    }
    assert layouts_of(matmul, 1, 1, 4) == {
        "read a": "[10, 2{__i2}8]",
        "read b": "[2{__i2}8, 6]",
        "write __return": "[10, 6] + partial(sum){__i2}",
    }


def test_a_transposed_operand_is_split_along_the_other_dimension():
    found = layouts_of(transposed, 2, 1, 1, position=1)
    assert found["read b"] == "[10, 6]"
    assert found["write __return"] == "[4{__i0}8, 6]"


def test_windows_of_a_product_are_copies_of_parts():
    assert layouts_of(rows_times, 4, 1)["read a"] == (
        "boxes[9, 6]{0: 1:2, 0:6; 1: 2:3, 0:6; 2: 3:4, 0:6; 3: 4:5, 0:6}"
    )
    assert layouts_of(row_times, 2)["read a"] == "boxes[5, 6]{0: 3:4, 0:3; 1: 3:4, 3:6}"
    assert layouts_of(row_times, 2, 2, position=1)["read x"] == "[3{__i1}6, 2{__i0}4]"


def test_bounds_of_inner_loops_are_read_and_what_they_index_is_read_whole():
    _, found = uses_of(loop_bound_reads, (2,))
    by_data = {use.data: use for use in found if isinstance(use, Read)}
    assert [by_data["r"].layout.box(rank) for rank in (0, 1)] == [((0, 6),), ((5, 11),)]
    assert str(by_data["v"].layout) == "[50]"
    assert by_data["v"].approximate == (0,)
    assert by_data["r"].approximate == ()


def test_conditions_are_read_and_what_they_guard_may_keep_its_values():
    _, found = uses_of(branch_reads, (2,))
    by_data = {use.data: use for use in found}
    assert [by_data["c"].layout.box(rank) for rank in (0, 1)] == [((2, 7),), ((7, 12),)]
    assert not by_data["y"].exact
    assert by_data["y"].needs_values


def test_a_write_below_a_range_that_may_be_empty_is_not_exact():
    _, found = uses_of(rows_of_a_triangle, (2,))
    (writing,) = (use for use in found if not isinstance(use, Read))
    assert writing.layout.box(1) == ((5, 10), (0, 7))  # rows 7 to 9 are not written
    assert not writing.exact


def test_reads_that_overlap_are_one():
    _, found = uses_of(indices.stencil, (4,))
    (reading,) = (use for use in found if isinstance(use, Read))
    assert [reading.layout.box(rank) for rank in range(4)] == [
        ((0, 5),),
        ((3, 8),),
        ((6, 11),),
        ((9, 12),),
    ]


def test_a_triangle_is_read_within_its_rows_and_columns():
    _, found = uses_of(indices.triangular, (4,))
    (reading,) = (use for use in found if use.data == "x")
    assert reading.layout.box(0) == ((0, 3), (0, 7))
    assert reading.layout.box(2) == ((6, 9), (6, 7))
    assert intervals.is_empty(reading.layout.box(3))  # rows from 9 on have no column


def test_fir_reads_with_both_signs():
    _, found = uses_of(indices.fir, (2, 2))
    (reading,) = (use for use in found if use.data == "x")
    assert reading.layout.box(0) == ((3, 18),)
    assert reading.layout.box(3) == ((15, 30),)


@pytest.mark.parametrize(
    ("program", "parts", "line", "reason"),
    [
        (race, (2, 1), "y[i + j] =", "write into one part of 'y': rank 0 into [0:6], rank 1"),
        (shifted_twice, (2,), "y[i] =", "of 'y': rank 0 into [0:6], rank 1 into [5:11], and"),
        (wrapped, (2,), "y[i % 4] =", "may write the same elements of 'y': which elements each"),
    ],
)
def test_ranks_that_write_the_same_elements_are_an_error(program, parts, line, reason):
    with pytest.raises(UnsupportedProgram) as caught:
        uses_of(program, parts)
    message = str(caught.value)
    number = int(message.split(":")[1])
    source = Path(__file__).read_text().splitlines()
    assert line in "".join(source[number - 1 : number + 1])
    assert reason in message
    assert ("not known before the run" in message) == (program is wrapped)
    assert "(1 part)" in message


def test_a_race_is_left_alone_where_one_rank_runs_it():
    _, found = uses_of(race, (1, 1))
    assert [str(use.layout) for use in found if not isinstance(use, Read)] == ["[8]"]


def test_an_operation_that_does_not_combine_is_refused():
    sdfg = dace.SDFG("custom")
    sdfg.add_array("x", [4], dace.float64)
    sdfg.add_array("y", [1], dace.float64)
    sdfg.add_state().add_mapped_tasklet(
        "custom",
        {"i": "0:4"},
        {"_x": Memlet("x[i]")},
        "_y = _x",
        {"_y": Memlet("y[0]", wcr="lambda a, b: a * 2 + b")},
        external_edges=True,
    )
    with pytest.raises(
        UnsupportedProgram, match=r"conflict resolution lambda a, b: a \* 2 \+ b, and ranks cannot"
    ):
        uses_of(sdfg, (2,))


def test_an_operand_is_partial_over_the_axes_that_its_index_leaves_out():
    _, found = uses_of(reductions.accumulated, (2, 3))
    (writing,) = (use for use in found if not isinstance(use, Read))
    assert writing.layout.partial == Partial("sum", ("i",))
    assert writing.accumulates
    assert not writing.needs_values


def test_operands_scattered_by_data_are_partial_over_all_axes_that_split():
    _, found = uses_of(reductions.histogram, (4,))
    (writing,) = (use for use in found if not isinstance(use, Read))
    assert str(writing.layout) == "[5] + partial(sum){i}"
    assert not writing.exact
