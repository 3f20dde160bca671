"""Which sums of strided ranges leave no hole, against all their values on each rank."""

import itertools
from typing import Any

import dace
import pytest
import sympy
from dace import Memlet
from hypothesis import given
from hypothesis import strategies as st
from strategies import tiling_on_grid

from distspmd.analysis.accesses import map_accesses
from distspmd.analysis.index_bounds import Range
from distspmd.analysis.iteration_spaces import spaces_of
from distspmd.analysis.mixed_radix import Digit, digits_of
from distspmd.analysis.rank_boxes import OnRanks

Found = tuple[list[tuple[int, int]], bool]
"""The box of each rank in the last dimension, and if all of them are filled."""


def on_ranks(blocks: str, threads: str, subset: str, shape: tuple[int, ...], ranks: int) -> Found:
    """What a map over the threads ``t`` in a map over blocks ``b`` writes to ``y``, on ranks."""
    sdfg = dace.SDFG("blocks_of_threads")
    sdfg.add_array("y", shape, dace.float64)
    state = sdfg.add_state()
    outer, outer_end = state.add_map("blocks", {"b": blocks})
    inner, inner_end = state.add_map("threads", {"t": threads})
    tasklet = state.add_tasklet("write", {}, {"o"}, "o[0] = 1;", language=dace.Language.CPP)
    state.add_nedge(outer, inner, Memlet())
    state.add_nedge(inner, tasklet, Memlet())
    path = (tasklet, inner_end, outer_end, state.add_write("y"))
    state.add_memlet_path(*path, src_conn="o", memlet=Memlet(f"y[{subset}]"))
    (space,) = spaces_of(sdfg)
    (access,) = map_accesses(state, outer)
    on_all = OnRanks(space, tiling_on_grid(space.parameters, space.ranges, (ranks,)), sdfg)
    boxes, _ = on_all.boxes(access)
    return [tuple(box[-1]) for box in boxes.tolist()], on_all.is_exact(access)


def parts(values: range, ranks: int) -> list[range]:
    tile = -(-len(values) // ranks)
    return [values[rank * tile : (rank + 1) * tile] for rank in range(ranks)]


@st.composite
def strided(draw: st.DrawFn) -> dict[str, Any]:
    """Ranges of blocks and of threads, the weights of both in an index, and a window there."""

    def values() -> range:
        begin, step = draw(st.integers(0, 2)), draw(st.integers(1, 3))
        return range(begin, begin + step * draw(st.integers(1, 6)), step)

    return {
        "blocks": values(),
        "threads": values(),
        "weights": (draw(st.integers(-6, 6)), draw(st.integers(-4, 4))),
        "window": values(),
        "ranks": draw(st.integers(1, 4)),
    }


@given(drawn=strided())
def test_writes_are_exact_if_and_only_if_ranks_fill_their_boxes(drawn: dict[str, Any]) -> None:
    blocks, threads, window = (drawn[key] for key in ("blocks", "threads", "window"))
    a, c = drawn["weights"]
    touched = [
        {a * b + c * t + w for b, t, w in itertools.product(part, threads, window)}
        for part in parts(blocks, drawn["ranks"])
    ]
    lowest = min(set().union(*touched))
    touched = [{at - lowest for at in each} for each in touched]
    begin = f"({a}) * b + ({c}) * t + ({window[0] - lowest})"
    boxes, exact = on_ranks(
        f"{blocks.start}:{blocks[-1] + 1}:{blocks.step}",
        f"{threads.start}:{threads[-1] + 1}:{threads.step}",
        f"0, {begin}:{begin} + {window[-1] - window[0] + 1}:{window.step}",
        (1, max(set().union(*touched)) + 1),
        drawn["ranks"],
    )
    hulls = [(min(each), max(each) + 1) if each else (0, 0) for each in touched]
    assert boxes == hulls
    assert exact == all(len(each) == hi - lo for each, (lo, hi) in zip(touched, hulls, strict=True))


@given(
    block=st.integers(1, 5),
    apart=st.integers(1, 6),
    more=st.integers(1, 15),
    turned=st.booleans(),
    ranks=st.integers(1, 4),
)
def test_blocks_that_end_with_the_array_fill_it(block, apart, more, turned, ranks) -> None:
    extent = block + more
    blocks = range(0, extent, apart)
    touched = [
        {t for b in part for t in range(b, min(extent, b + block))} for part in parts(blocks, ranks)
    ]
    if turned:
        touched = [{extent - 1 - t for t in each} for each in touched]
    boxes, exact = on_ranks(
        f"0:{extent}:{apart}",
        f"b:min({extent}, b + {block})",
        f"{extent - 1} - t" if turned else "t",
        (extent,),
        ranks,
    )
    assert boxes == [(min(each), max(each) + 1) if each else (0, 0) for each in touched]
    assert exact == all(each == set(range(min(each), max(each) + 1)) for each in touched if each)


@pytest.mark.parametrize(
    ("threads", "subset", "exact"),
    [
        ("0:32", "0, 32 * b + t", True),
        ("0:32", "0, 4 * t + b", True),  # on one rank, which has all blocks
        ("0:31", "0, 32 * b + t", False),
        ("b:b + 3", "0, t", True),
        ("b:b + 3", "b, t", False),  # one index decides the other
        ("b:4", "0, t", False),  # triangles are not looked into
        ("0:4", "0, b * t", False),
        ("0:4", "0, t * t", False),
    ],
)
def test_indices_of_blocks_and_threads(threads: str, subset: str, exact: bool) -> None:
    _, found = on_ranks("0:4", threads, subset, (4, 128), 1)
    assert found == exact


def test_values_that_are_not_known_are_no_digits() -> None:
    t = sympy.Symbol("t")
    zero, three = sympy.Integer(0), sympy.Integer(3)
    assert digits_of(Range(t, t), {"t": None}) is None
    assert digits_of(Range(t, t), {"t": Range(zero, three, None)}) is None
    assert digits_of(Range(t, t, None), {"t": Range(zero, three)}) is None
    assert digits_of(Range(t, t), {"t": Range(zero, three, 3)}) == [Digit(1, zero), Digit(3, three)]
