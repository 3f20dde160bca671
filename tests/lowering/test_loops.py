"""Loops over elements: what becomes of them, and that ranks compute what Python does."""

import copy

import numpy as np
import pytest
from conftest import call_on_ranks
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion

import distspmd
from distspmd.frontend import numpy_program
from distspmd.nodes.contraction import Contraction
from distspmd.passes.normalize import loop_dimensions, loop_distribution
from distspmd.passes.normalize.pipeline import normalize
from lowering import loop_programs
from lowering.loop_programs import PROGRAMS, arguments

SPLIT = {
    "doubled": ["i"],
    "row_sums": ["ba->b", "i"],
    "stencil": ["i j"],
    "lengths_of_rows": ["ba->b", "i"],
    "over_time": ["i", "i_1"],
    "chosen": ["i"],
    "clamped": ["i"],
    "odd_and_even": ["i"],
    "backwards": ["i"],
    "row_by_row": ["__i0", "ab->a", "i", "i"],
    "total": ["a,a->()"],
    "product_by_elements": ["__i0 __i1", "__i0 __i1", "ac,cb->ab"],
    "long_prefix": ["__b", "__i", "i", "i", "i"],
    "long_recurrence": ["__b", "i", "i"],
    "long_welford": ["__b", "__i", "__i", "a,a,a->()", "i", "i", "i"],
    "long_extremes": ["__b", "__b", "__i", "__i", "__i0", "i", "i", "i", "i", "i", "i"],
    "distances": ["__i0", "a,b->a", "i", "i"],
    "shortest_paths": ["i j"] * 9,
    "shortest_paths_with_signs": ["i j"] * 9,
    "while_it_counts": ["i_0"],
    "packed": ["__i0", "__i0", "i j"],
    "by_halves": ["i"],
    "sparse_product": ["__i0", "__i0", "__i0", "__i0", "i"],
    "greatest": ["a->()", "i"],
    "last_of_the_least": ["i", "i"],
    "counted_by_kind": ["i"],
    "closest_pair": ["i", "i"],
    "close_pairs": ["i"],
    "wide": ["i __i0", "i __i0"],
    "seidel": ["i"],
}
"""Parameters of the maps, and subscripts of the contractions, that programs have."""
IN_ORDER = ("from_above", "recurrence", "long_circle")


def normalised(name):
    program = PROGRAMS[name]
    sdfg = copy.deepcopy(numpy_program(program, *arguments(program), host="refuse"))
    normalize(sdfg)
    return sdfg


def loops(sdfg):
    regions = sdfg.all_control_flow_regions(recursive=False)
    return [region.loop_variable for region in regions if isinstance(region, LoopRegion)]


@pytest.mark.parametrize("name", SPLIT)
def test_a_loop_without_order_is_a_dimension_of_its_statements(name):
    sdfg = normalised(name)
    found = []
    for state in sdfg.states():
        for node in state.nodes():
            if isinstance(node, nodes.MapEntry) and state.entry_node(node) is None:
                found.append(" ".join(node.map.params))
            if isinstance(node, Contraction):
                found.append(node.subscripts)
    assert sorted(each for each in found if each != "__once") == SPLIT[name]
    kept = {"over_time": ["_"], "shortest_paths": ["k"], "shortest_paths_with_signs": ["k"]}
    assert loops(sdfg) == kept.get(name, [])


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_loop_whose_iterations_need_each_other_stays(name):
    assert "i" in loops(normalised(name))


def test_the_record_says_which_statement_keeps_the_order():
    n = 300

    def program(x):
        for i in range(1, n):
            for j in range(1, n):
                x[i, j] = x[i - 1, n - 1 - j] + x[i, j - 1]

    sdfg = numpy_program(program, np.zeros((n, n)), host="refuse")
    (line,) = [r for r in distspmd.lower(sdfg, {"x": (1,)}).remarks if "is not split" in r]
    assert "the loop over 'i' is not split, with 100% of the predicted work" in line
    assert "reads x[i - 1, 299 - j], and" in line
    assert "has written x[i, j] an iteration before" in line
    assert "distspmd.map[first:end]" in line


def test_a_loop_that_is_split_is_not_told_of():
    sdfg = numpy_program(loop_programs.doubled, *arguments(loop_programs.doubled), host="refuse")
    assert not [r for r in distspmd.lower(sdfg, {"out": (3,)}).remarks if "is not split" in r]


def sparse_with_a_wrong_column(begin, columns, x, y):
    for i in range(y.shape[0]):
        for k in range(begin[i], begin[i + 1]):
            y[i] += x[columns[k]]


def test_a_wrong_index_in_a_loop_that_data_bound_is_an_error():
    begin, columns = np.arange(8), np.array([0, 1, 2, -3, 9, 1, 0])
    program = distspmd.program(host="refuse")(sparse_with_a_wrong_column)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        program(begin, columns, np.ones(3), np.zeros(7))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_random_nests_compute_what_python_does(seed, tmp_path):
    call = f"check(comm, [{seed}], 10, {str(tmp_path)!r})"
    call_on_ranks("lowering.random_loops", call, ranks=3)


RANKS = [pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 2, 4, 5, 6)]


@pytest.mark.parametrize("ranks", [3, *RANKS])
def test_ranks_compute_what_python_does(ranks):
    call_on_ranks("lowering.loop_programs", f"check(comm, {[*PROGRAMS]})", ranks=ranks)


def shifted(a, b):
    for i in range(1, 6):
        a[24 + i + 2] = 0.5 * b[24 + i - 2] + 0.5 * a[24 - i - 2]
        a[24 + i - 1] = 0.25 * a[24 + i - 1]
        b[24 + i] += 0.5 * b[24 + i - 2] + 0.25 * i


def test_a_space_that_no_axis_splits_is_whole_on_all_ranks_or_on_none(monkeypatch):
    """Beside a neighbour of which one rank has all, it was on that rank, and nobody wrote it."""
    monkeypatch.setattr(loop_distribution, "LONG", 2)
    monkeypatch.setattr(loop_dimensions, "MANY", 2)
    sdfg = numpy_program(shifted, np.ones(64), np.ones(64), host="refuse")
    lowering = distspmd.lower(sdfg, loop_programs.split_everything(sdfg, 2, 0))
    distspmd.check(lowering)
    for space in lowering.spaces:
        if all(count == 1 for count in space.parts):
            assert len(np.unique(space.bounds, axis=0)) == 1
