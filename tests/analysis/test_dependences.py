"""Which iterations of a loop need each other, beside what running through them all finds."""

import itertools

import dace
import pytest
from dace import SDFG, Memlet
from dace.sdfg.state import LoopRegion
from hypothesis import given, settings
from hypothesis import strategies as st

from distspmd.analysis.dependences import LoopRange, first_dependence

EXTENT = 400
CENTRE = 200


@st.composite
def nests(draw):
    """Two loops, of which the inner one may begin or end at the outer one, and subscripts."""
    first, length = draw(st.integers(-3, 3)), draw(st.integers(1, 6))
    step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
    low = draw(st.sampled_from(["0", "1", "i", "2*i - 1"]))
    high = draw(st.sampled_from(["4", "i + 3", "6"]))
    ndim = draw(st.integers(1, 2))

    def subscript():
        a, b, c = draw(st.integers(-3, 3)), draw(st.integers(-2, 2)), draw(st.integers(-3, 3))
        return f"{CENTRE} + {a}*i + {b}*j + {c}"

    def subscripts():
        return [subscript() for _ in range(ndim)]

    statements = [(subscripts(), subscripts()) for _ in range(draw(st.integers(1, 2)))]
    return (first, first + length * step, step), (low, high), statements


def program(outer, inner, statements):
    sdfg = SDFG("nest")
    ndim = len(statements[0][0])
    sdfg.add_array("x", [EXTENT] * ndim, dace.float64)
    first, end, step = outer
    sign = "<" if step > 0 else ">"
    over_i = LoopRegion("over_i", f"i {sign} {end}", "i", f"i = {first}", f"i = i + {step}")
    over_j = LoopRegion("over_j", f"j < {inner[1]}", "j", f"j = {inner[0]}", "j = j + 1")
    sdfg.add_node(over_i, is_start_block=True)
    over_i.add_node(over_j, is_start_block=True)
    state = None
    for number, (write, read) in enumerate(statements):
        added = over_j.add_state(f"s{number}", is_start_block=state is None)
        if state is not None:
            over_j.add_edge(state, added, dace.InterstateEdge())
        state = added
        tasklet = state.add_tasklet("t", {"a"}, {"b"}, "b = a")
        state.add_edge(state.add_read("x"), None, tasklet, "a", Memlet(f"x[{', '.join(read)}]"))
        state.add_edge(tasklet, "b", state.add_write("x"), None, Memlet(f"x[{', '.join(write)}]"))
    return sdfg, over_i, over_j


def touched(inner, statements, i):
    """Elements that an iteration of the outer loop writes, and all that it touches."""
    writes, every = set(), set()
    for j in range(eval(inner[0], {"i": i}), eval(inner[1], {"i": i})):
        for write, read in statements:
            writes.add(tuple(eval(w, {"i": i, "j": j}) for w in write))
            every.add(tuple(eval(r, {"i": i, "j": j}) for r in read))
    return writes, writes | every


@given(nests())
@settings(max_examples=150, deadline=None)
def test_a_nest_of_loops_has_the_dependence_that_its_iterations_have(nest):
    outer, inner, statements = nest
    _, over_i, _ = program(*nest)
    each = [touched(inner, statements, i) for i in range(*outer)]
    places = [
        later - earlier
        for (earlier, (writes, every)), (later, (writes2, every2)) in itertools.combinations(
            enumerate(each), 2
        )
        if writes & every2 or every & writes2
    ]
    values = LoopRange.of(over_i)
    found = first_dependence(over_i, values)
    assert (found is not None) == bool(places)
    assert found is None or found.distance in places


@given(nests())
@settings(max_examples=80, deadline=None)
def test_the_inner_loop_has_the_dependence_that_one_of_the_outer_ones_makes(nest):
    outer, inner, statements = nest
    _, _, over_j = program(*nest)
    carried = False
    for i in range(*outer):
        turns = range(eval(inner[0], {"i": i}), eval(inner[1], {"i": i}))
        each = []
        for j in turns:
            writes = {tuple(eval(w, {"i": i, "j": j}) for w in write) for write, _ in statements}
            reads = {tuple(eval(r, {"i": i, "j": j}) for r in read) for _, read in statements}
            each.append((writes, writes | reads))
        pairs = itertools.combinations(each, 2)
        carried |= any(w & e2 or e & w2 for (w, e), (w2, e2) in pairs)
    found = first_dependence(over_j, LoopRange.of(over_j))
    assert (found is not None) == carried


@pytest.mark.parametrize(
    ("write", "read", "distance"),
    [("i", "i - 1", 1), ("2*i", "2*i + 1", None), ("i", "i - 7", 7), ("i", "200 - i", 2)],
)
def test_the_smallest_distance_is_told(write, read, distance):
    _, over_i, _ = program((0, 200, 1), ("0", "1"), [([write], [read])])
    found = first_dependence(over_i, LoopRange.of(over_i))
    assert (None if found is None else found.distance) == distance
