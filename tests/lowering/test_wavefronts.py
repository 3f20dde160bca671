"""Loops in order that ranks run as pipelines: what they hand on, and that they compute what Python
does."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import call_on_ranks
from hypothesis import given, settings
from hypothesis import strategies as st

import distspmd
from distspmd.errors import PlanError
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine
from lowering import wave_programs
from lowering.on_paper import problems
from lowering.wave_programs import PROGRAMS, SMALL_BLOCKS, arguments, lowered

RIMS = {
    "edit_distance": (1, 8, 0),
    "alignment": (1, 8, 0),
    "common_subsequence": (1, 8, 0),
    "affine_gaps": (1, 16, 0),
    "seidel": (1, 8, 1),
    "relaxed": (1, 8, 0),
    "prefix_sums": (1, 8, 0),
    "far": (3, 24, 2),
    "turned": (1, 8, 0),
    "where_positive": (1, 8, 0),
    "two_layers": (1, 8, 0),
    "best_score": (1, 8, 0),
    "in_space": (1, 24, 0),
    "behind_other_loops": (1, 8, 0),
    "downwards": (1, 8, 1),
    "up_and_on": (2, 16, 0),
    "across_downwards": (1, 8, 0),
}
"""Of each program the rows of a rim, its bytes in one column, and by how much rows are skewed."""


@pytest.mark.parametrize("name", RIMS)
def test_a_rank_gets_the_rim_of_the_one_before_once(name):
    program = PROGRAMS[name]
    lowering = lowered(program, 4, arguments(program, 17, 23))
    (pipeline,) = lowering.pipelines
    depth, nbytes, _ = RIMS[name]
    assert (pipeline.depth, pipeline.handing.nbytes, pipeline.handing.skew) == RIMS[name]
    (space,) = (s for s in lowering.spaces if s.source == pipeline.source and s.parts == (4,))
    firsts = [int(first) for first, end in space.bounds[:, 0] if first < end][1:]
    begin = int(space.bounds[0, 0, 0])
    values = pipeline.handing.values
    wanted = sum(min(depth, first - begin) * values * nbytes // depth for first in firsts)
    assert pipeline.expected_bytes == wanted
    assert not [*problems(lowering)]


@pytest.mark.parametrize("name", RIMS)
@pytest.mark.parametrize("ranks", [6, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pipeline_is_proved_and_only_rows_at_borders_move_between_its_ranks(name, ranks):
    program, inputs = PROGRAMS[name], arguments(PROGRAMS[name], 11, 29)
    everything = lowered(program, ranks, inputs)
    distspmd.verify(everything)
    (source,) = (pipeline.source for pipeline in everything.pipelines)
    (space,) = (s for s in everything.spaces if s.source == source and s.parts == (ranks,))
    sdfg = numpy_program(program, *inputs, host="refuse")
    lowering = distspmd.lower(sdfg, {space.name: (ranks,)}, machine=SMALL_BLOCKS)
    distspmd.verify(lowering)
    (pipeline,) = lowering.pipelines
    for move in lowering.memlets:
        if "root" not in move.layouts and move.source == source:  # as they were, or for others
            rows_of_both_sides = 2 * pipeline.expected_bytes * (pipeline.times or 1)
            assert move.solution.cost.nbytes * move.times <= rows_of_both_sides


def test_ranks_compute_what_python_does():
    names = ["alignment", "affine_gaps", "seidel", "far"]
    call_on_ranks("lowering.wave_programs", f"check(comm, {names}, [(17, 23)])", ranks=3)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", range(1, 7))
def test_ranks_compute_what_python_does_in_all_programs(ranks):
    sizes = [(17, 23), (8, 31)] if ranks > 3 else [(17, 23)]
    call_on_ranks("lowering.wave_programs", f"check(comm, {[*PROGRAMS]}, {sizes})", ranks=ranks)


def test_the_record_names_the_loop_its_blocks_and_its_bytes():
    lowering = lowered(wave_programs.prefix_sums, 3, arguments(wave_programs.prefix_sums))
    (pipeline,) = lowering.pipelines
    told = str(distspmd.explain(lowering))
    assert f"{pipeline.blocks} blocks of {pipeline.width}, a message each" in told
    assert "a pipeline over i" in told
    assert re.search(r"y at wave_programs.py:\d+, once", told)
    assert f"{2 * 22 * 8:,}" in told
    assert distspmd.explain(lowering).nbytes >= 2 * 22 * 8


def test_blocks_are_longer_where_messages_cost_more():
    program = wave_programs.prefix_sums
    sdfg = numpy_program(program, np.ones((400, 400)), np.ones((400, 400)), host="refuse")
    widths = []
    for alpha in (1e-7, 1e-6, 1e-5):
        lowering = distspmd.lower(sdfg, {"y": (4,)}, machine=Machine(alpha=alpha))
        (pipeline,) = lowering.pipelines
        widths.append(pipeline.width)
        tile = pipeline.work.seconds(lowering.machine)
        waiting = pipeline.handing.waiting(lowering.machine, 4, pipeline.rows, tile)
        predicted = dict(distspmd.predict(lowering).spaces)["y"]
        assert predicted == pytest.approx(tile)
        moves = [move for move in distspmd.predict(lowering).moves if "last row" in move[1]]
        assert [seconds for *_, seconds in moves] == pytest.approx([float(waiting)])
    assert widths == sorted(set(widths))


def test_a_search_splits_a_table_that_is_large_and_leaves_a_small_one_whole():
    program = wave_programs.alignment
    machine = Machine(operation=5e-10, stream=1e-10)  # its loops take longer than moves of a table
    for n, ranks in ((20, 1), (2000, 2)):
        sdfg = numpy_program(program, *arguments(program, n, n), host="refuse")
        lowering = distspmd.lower(sdfg, ranks=2, machine=machine)
        assert lowering.ranks == ranks
        assert len(lowering.pipelines) == ranks - 1
        if ranks > 1:
            alone = distspmd.lower(sdfg, {"table": (1,)}, machine=machine)
            gain = distspmd.predict(alone).seconds / distspmd.predict(lowering).seconds
            assert 1.3 < gain < 2


def mirrored(x):
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[i - 1, x.shape[1] - 1 - j] + x[i, j - 1]


def handed_along_the_row(x):
    for i in range(1, x.shape[0]):
        last = x[i, 0]
        for j in range(1, x.shape[1]):
            last = last * 0.5 + x[i - 1, j]
            x[i, j] = last


def of_the_first_row(x):
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[1, j - 1] + x[i - 1, j]


def of_ever_fewer_rows(x):
    for k in range(3):
        for i in range(k + 1, x.shape[0]):
            for j in range(1, x.shape[1]):
                x[i, j] = x[i - 1, j] + 0.5 * x[i, j - 1]


@pytest.mark.parametrize(
    "program", [of_ever_fewer_rows, mirrored, handed_along_the_row, of_the_first_row]
)
def test_a_loop_that_needs_more_than_a_rim_stays(program):
    sdfg = numpy_program(program, np.ones((9, 9)), host="refuse")
    lowering = distspmd.lower(sdfg, {})
    assert all("i" not in dict(space.iterates) for space in lowering.spaces)


def test_a_chain_that_is_not_in_order_is_no_proof():
    lowering = lowered(wave_programs.prefix_sums, 3, arguments(wave_programs.prefix_sums))
    (pipeline,) = lowering.pipelines
    wrong = replace(lowering, pipelines=(replace(pipeline, chains=((0, 2, 1),)),))
    with pytest.raises(PlanError, match="hands on to rank 2"):
        distspmd.verify(replace(wrong, graphs=None))
    short = replace(lowering, pipelines=(replace(pipeline, chains=((0,), (1, 2))),))
    with pytest.raises(PlanError, match="has not the beginning"):
        distspmd.verify(replace(short, graphs=None))


N, M = 11, 13
DISTANCES = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=4, unique=True
)


def nest(distances, tmp_path_factory):
    """A nest that reads at some distances, as a function of a file."""
    terms = " + ".join(
        f"{0.5 / (k + 1)} * x[i - {i}, j - {j}]" for k, (i, j) in enumerate(distances)
    )
    text = f"def nest(x):\n    for i in range(2, {N} - 2):\n        for j in range(2, {M} - 2):\n"
    text += f"            x[i, j] = 0.1 * x[i, j] + {terms}\n"
    file = tmp_path_factory.mktemp("nests") / "nest.py"
    file.write_text(text.replace("- -", "+ "))
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names["nest"]


@settings(max_examples=12)
@given(distances=DISTANCES, ranks=st.integers(2, 5))
def test_random_distances_are_computed_block_by_block_as_in_order(
    distances, ranks, tmp_path_factory
):
    """Ranks with a copy each, in blocks, by the record alone: what they have in the end."""
    program = nest(distances, tmp_path_factory)
    x = np.random.default_rng(5).random((N, M))
    sdfg = numpy_program(program, x, host="refuse")
    spaces = distspmd.iteration_spaces(sdfg)
    if spaces[0].parameters != ("i",):
        return
    lowering = distspmd.lower(sdfg, {spaces[0].name: (ranks,)}, machine=SMALL_BLOCKS)
    distspmd.verify(lowering)
    wanted = x.copy()
    program(wanted)
    if not lowering.pipelines:  # nothing is handed on
        return
    (pipeline,) = lowering.pipelines
    (chain,) = pipeline.chains
    own = [x.copy() for _ in range(ranks)]
    width, skew = pipeline.width, pipeline.handing.skew
    for block, rank in itertools.product(range(pipeline.blocks), chain):
        first, end = pipeline.tiles[rank]

        def columns(i, block=block):
            begin = 2 + block * width - skew * (i - pipeline.begin)
            return range(max(2, begin), min(M - 2, begin + width))

        if rank:
            for i in range(max(first - pipeline.depth, pipeline.begin), first):
                own[rank][i, columns(i)] = own[rank - 1][i, columns(i)]
        for i in range(first, end):
            for j in columns(i):
                terms = (
                    0.5 / (k + 1) * own[rank][i - a, j - b] for k, (a, b) in enumerate(distances)
                )
                own[rank][i, j] = 0.1 * own[rank][i, j] + sum(terms)
    for rank in chain:
        first, end = pipeline.tiles[rank]
        np.testing.assert_allclose(own[rank][first:end], wanted[first:end], rtol=1e-9)
