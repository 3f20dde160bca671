"""Symbols that data decide are known where control flow surely came through an assignment."""

import pytest
import sympy
from dace import SDFG, InterstateEdge, dtypes
from dace.sdfg.state import LoopRegion

from distspmd.analysis.symbol_values import ElementValue, values_at


def program(**arrays):
    """An SDFG with the given arrays."""
    sdfg = SDFG("program")
    for name, shape in arrays.items():
        sdfg.add_array(name, shape, dtypes.int64)
    return sdfg


def chain(region, *assignments):
    """States one after the other, with an edge of assignments before each but the first."""
    states = [region.add_state("begin", is_start_block=True)]
    for number, assigned in enumerate(assignments):
        states.append(region.add_state(f"after_{number}"))
        region.add_edge(states[-2], states[-1], InterstateEdge(assignments=assigned))
    return states


def text(value):
    if isinstance(value, ElementValue):
        return f"{value.data}[{', '.join(map(str, value.indices))}]"
    return str(value)


def known(block):
    return {name: text(value) for name, value in values_at(block).items()}


def test_an_element_and_an_expression_are_known_after_their_edges():
    sdfg = program(a=(9,), b=(4, 5))
    first, second, third = chain(sdfg, {"k": "a[i + 1]"}, {"m": "2 * k", "n": "b[k, 0]"})
    assert known(first) == {}
    assert known(second) == {"k": "a[i + 1]"}
    assert known(third) == {"k": "a[i + 1]", "m": "2*k", "n": "b[k, 0]"}


def test_a_scalar_is_an_element():
    sdfg = program(a=(1,))
    assert known(chain(sdfg, {"k": "a"})[1]) == {"k": "a[0]"}


def test_what_is_assigned_twice_is_not_known():
    sdfg = program(a=(9,))
    assert known(chain(sdfg, {"k": "a[0]"}, {"k": "a[1]"})[2]) == {}


@pytest.mark.parametrize("assigned", ["a[b[0]]", "a[0] + 1", "a[0:2]", "a[0] if i else a[1]"])
def test_other_reads_are_not_known(assigned):
    sdfg = program(a=(9,), b=(9,))
    assert known(chain(sdfg, {"k": assigned})[1]) == {}


def test_what_only_one_branch_assigns_is_not_known():
    sdfg = program(a=(9,))
    begin, end = chain(sdfg, {})
    aside, back = sdfg.add_state("aside"), sdfg.add_state("back")
    sdfg.add_edge(begin, aside, InterstateEdge(condition="i > 0", assignments={"k": "a[0]"}))
    sdfg.add_edge(aside, back, InterstateEdge())
    sdfg.add_edge(back, end, InterstateEdge())
    assert known(back) == {"k": "a[0]"}
    assert known(end) == {}


def test_in_a_loop_it_is_known_in_the_same_iteration_only():
    sdfg = program(a=(9,))
    loop = LoopRegion("loop", "j < 5", "j", "j = 0", "j = j + 1")
    sdfg.add_node(loop, is_start_block=True)
    after = sdfg.add_state("after")
    sdfg.add_edge(loop, after, InterstateEdge())
    before, inside = chain(loop, {"k": "a[j]"})
    assert known(before) == {}
    assert known(inside) == {"k": "a[j]"}
    assert known(loop) == {}
    assert known(after) == {}


def test_loops_made_of_edges_tell_nothing():
    sdfg = program(a=(9,))
    begin, end = chain(sdfg, {"k": "a[i]"})
    sdfg.add_edge(end, begin, InterstateEdge(assignments={"i": "i + 1"}))
    assert known(end) == {}


def test_a_loop_variable_is_not_an_assignment():
    sdfg = program(a=(9,))
    loop = LoopRegion("loop", "k < 5", "k", "k = 0", "k = k + 1")
    sdfg.add_node(loop)
    loop.add_state(is_start_block=True)
    states = chain(sdfg, {"k": "a[0]"})
    sdfg.add_edge(states[1], loop, InterstateEdge())
    assert known(states[1]) == {}


def test_a_value_of_what_was_not_assigned_yet_is_not_known():
    sdfg = program(a=(9,))
    end = chain(sdfg, {"k": "a[m]"}, {"m": "a[0]"})[2]
    assert known(end) == {"m": "a[0]"}


def test_loads_are_equal_whatever_edge_they_come_through():
    assert ElementValue("a", (sympy.Integer(1),)) == ElementValue("a", (sympy.Integer(1),), None)
