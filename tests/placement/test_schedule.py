"""What a schedule may say, what each mistake in one is answered with, and the tiles of a grid."""

import itertools

import dace
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from strategies import tiling_on_grid

import distspmd
from distspmd.analysis.iteration_spaces import IterationSpaces, ParameterRange
from distspmd.analysis.tiling import Tiling
from distspmd.errors import ScheduleError, ScheduleWarning
from distspmd.layouts.mesh import Mesh
from distspmd.pipeline import list_spaces
from distspmd.placement.schedule import resolve


@dace.program
def chain(x: dace.float64[10, 8], w: dace.float64[8, 6]):
    hidden = np.sin(x)
    return hidden @ w


@dace.program
def labels_repeat(x: dace.float64[10], y: dace.float64[10]):
    a = x + y
    b = a + y
    return b + a


@pytest.fixture
def sdfg() -> dace.SDFG:
    return chain.to_sdfg()


@pytest.fixture
def spaces(sdfg: dace.SDFG) -> IterationSpaces:
    return list_spaces(sdfg)


def parts_of(schedule, spaces) -> dict[str, tuple[int, ...]]:
    return {name: grid.parts for name, grid in resolve(schedule, spaces).items()}


@pytest.mark.parametrize(
    "parts",
    [
        (2, 3),
        [2, 3],
        {"__i0": 2, "__i1": 3},
        {"__i1": 3, "__i0": 2},
        (np.int64(2), np.int32(3)),
        tuple(np.array([2, 3])),
    ],
    ids=str,
)
def test_parts_are_a_sequence_or_a_mapping_of_parameters(spaces, parts):
    assert parts_of({"hidden": parts}, spaces) == {"hidden": (2, 3)}


def test_parameters_that_a_mapping_leaves_out_stay_whole(spaces):
    assert parts_of({"__return": {"__i1": 2}}, spaces) == {"__return": (1, 2, 1)}
    assert parts_of({"__return": {}}, spaces) == {"__return": (1, 1, 1)}


def test_keys_are_names_labels_nodes_and_maps(sdfg, spaces):
    space = spaces[0]
    assert space.name == "hidden"
    for key in ("hidden", space.label, space.node, space.node.map):
        assert parts_of({key: (2, 1)}, spaces) == {"hidden": (2, 1)}
    assert parts_of({"_MatMult_": (2, 1, 1)}, spaces) == {"__return": (2, 1, 1)}
    product = next(
        node for node, _ in sdfg.all_nodes_recursive() if isinstance(node, dace.nodes.LibraryNode)
    )
    assert parts_of({product: (2, 1, 1)}, spaces) == {"__return": (2, 1, 1)}


def test_keys_of_the_sdfg_itself_work_in_lower(sdfg, spaces):
    lowering = distspmd.lower(sdfg, {spaces[0].node: (2, 1), spaces[1].node: (1, 2, 1)})
    assert [(s.name, s.parts, str(s.chosen_by)) for s in lowering.spaces] == [
        ("hidden", (2, 1), "the schedule"),
        ("__return", (1, 2, 1), "the schedule"),
    ]


def test_an_empty_schedule_is_allowed(spaces):
    assert resolve({}, spaces) == {}


def refused(schedule, spaces) -> str:
    with pytest.raises(ScheduleError) as caught:
        resolve(schedule, spaces)
    return str(caught.value)


def test_an_unknown_name_is_answered_with_the_close_ones(spaces):
    message = refused({"hiden": (2, 1)}, spaces)
    assert message == (
        "the schedule names 'hiden', but no iteration space is called that. Did you mean 'hidden'?"
    )


def test_a_name_close_to_none_is_answered_with_all(spaces):
    message = refused({"zzz": (2, 1)}, spaces)
    assert "There are 'hidden', '__return'." in message


def test_a_label_of_several_spaces_is_answered_with_their_names():
    spaces = list_spaces(labels_repeat.to_sdfg())
    message = refused({"_Add__map": (2,)}, spaces)
    assert "the label of 3 iteration spaces" in message
    assert all(repr(space.name) in message for space in spaces)


def test_another_object_is_no_key(spaces):
    message = refused({3: (2, 1)}, spaces)
    assert "3, which is no top-level map or library node" in message
    assert "'hidden', '__return'" in message


def test_two_keys_of_one_space_are_refused(spaces):
    message = refused({"__return": (2, 1, 1), "_MatMult_": (2, 1, 1)}, spaces)
    assert message == "the schedule gives the space '__return' two grids; keep one."


@pytest.mark.parametrize("schedule", [[("hidden", (2, 1))], "hidden", None, 3])
def test_a_schedule_that_is_no_mapping_is_refused_with_an_example(schedule, spaces):
    message = refused(schedule, spaces)
    assert f"the schedule is a {type(schedule).__name__}" in message
    assert "write a mapping, such as {'hidden': (2, 1)}" in message


@pytest.mark.parametrize(("parts", "count"), [((2,), 1), ((2, 1, 1), 3), ((), 0)])
def test_a_wrong_number_of_parts_is_refused_with_the_right_one(parts, count, spaces):
    message = refused({"hidden": parts}, spaces)
    assert "the space 'hidden' (test_schedule.py:" in message
    assert f"{count} for 2 parameters" in message
    assert "It iterates over __i0=0:10, __i1=0:8: write (2, 1)." in message


def test_the_example_for_one_parameter_is_a_tuple():
    spaces = list_spaces(labels_repeat.to_sdfg())
    message = refused({spaces[0].name: (2, 2)}, spaces)
    assert message.endswith("write (2,).")


@pytest.mark.parametrize("bad", [0, -1, 1.0, 2.5, True, False, np.True_, "2", None])
def test_parts_below_one_or_no_integers_are_refused(bad, spaces):
    message = refused({"hidden": (bad, 1)}, spaces)
    assert "each must be an integer of at least 1" in message
    assert repr((bad, 1)) in message


@pytest.mark.parametrize("bad", [2, "21", b"21", {2, 1}, 2.0])
def test_parts_that_are_no_sequence_are_refused(bad, spaces):
    assert "which is no tuple" in refused({"hidden": bad}, spaces)


def test_an_unknown_parameter_is_refused_with_the_known_ones(spaces):
    message = refused({"hidden": {"i": 2}}, spaces)
    assert "it has no parameter 'i'; it iterates over __i0=0:10, __i1=0:8" in message


def test_another_schedule_of_the_same_program_is_lowered_too(sdfg):
    names = [space.name for space in list_spaces(sdfg)]
    for parts, ranks in (((2, 1), 2), ((1, 4), 4), ((2, 1), 2)):
        assert distspmd.lower(sdfg, {"hidden": parts}).ranks == ranks
        assert [space.name for space in list_spaces(sdfg)] == names


def test_a_mistake_leaves_the_sdfg_to_be_lowered(sdfg):
    with pytest.raises(ScheduleError):
        distspmd.lower(sdfg, {"hiden": (2, 1)})
    assert distspmd.lower(sdfg, {"hidden": (2, 1)}).ranks == 2


# --- tiles ---


def tiles(ranges: list[tuple[int, int, int]], parts: tuple[int, ...]) -> Tiling:
    extents = [ParameterRange(*map(sympy.Integer, r)) for r in ranges]
    return tiling_on_grid([f"p{d}" for d in range(len(ranges))], extents, parts)


def iterations(tiling: Tiling, rank: int, steps: list[int]) -> set[tuple[int, ...]]:
    ends = zip(tiling.lower[rank], tiling.upper[rank], steps, strict=True)
    return set(itertools.product(*(range(int(lo), int(hi), step) for lo, hi, step in ends)))


@given(
    ranges=st.lists(
        st.tuples(st.integers(-3, 5), st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=2
    ),
    parts=st.lists(st.integers(1, 5), min_size=2, max_size=2),
)
def test_each_iteration_runs_on_one_rank(ranges, parts):
    ranges = [(begin, begin + count, step) for begin, count, step in ranges]
    tiling = tiles(ranges, tuple(parts[: len(ranges)]))
    steps = [step for _, _, step in ranges]
    found = [iterations(tiling, rank, steps) for rank in tiling.mesh]
    everything = set(itertools.product(*(range(*r) for r in ranges)))
    assert set().union(*found) == everything
    assert sum(map(len, found)) == len(everything)
    for rank, own in enumerate(found):
        assert bool(tiling.idle[rank]) == (not own)
        if own:
            ends = [(min(at), max(at)) for at in zip(*own, strict=True)]
            assert [lo for lo, _ in ends] == tiling.lower[rank].tolist()
            assert [hi for _, hi in ends] == tiling.last[rank].tolist()


@pytest.mark.parametrize(
    ("extent", "parts", "wanted"),
    [
        (10, 4, [(0, 3), (3, 6), (6, 9), (9, 10)]),
        (3, 4, [(0, 1), (1, 2), (2, 3), None]),
        (1, 3, [(0, 1), None, None]),
        (7, 1, [(0, 7)]),
        (9, 4, [(0, 3), (3, 6), (6, 9), None]),
        (0, 2, [None, None]),
    ],
)
def test_blocks_are_of_the_rounded_up_extent(extent, parts, wanted):
    tiling = tiles([(0, extent, 1)], (parts,))
    found = [
        None if idle else (int(lower[0]), int(upper[0]))
        for idle, lower, upper in zip(tiling.idle, tiling.lower, tiling.upper, strict=True)
    ]
    assert found == wanted


def test_ranks_count_along_the_last_parameter_first():
    tiling = tiles([(0, 4, 1), (0, 6, 1)], (2, 3))
    assert tiling.mesh == Mesh(p0=2, p1=3)
    assert tiling.parts == (2, 3)
    assert tiling.lower.tolist() == [[0, 0], [0, 2], [0, 4], [2, 0], [2, 2], [2, 4]]


def test_axes_that_split_nothing_run_the_same_iterations():
    extents = [ParameterRange(sympy.Integer(0), sympy.Integer(4), sympy.Integer(1))]
    tiling = Tiling.of(extents, Mesh(x=2, y=2), [("x",)])
    assert tiling.lower.tolist() == [[0], [0], [2], [2]]
    assert tiling.parts == (2,)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ((64, 1), "10 iterations are 10 tiles of 1: 54 of 64 ranks along it are idle. Write 10."),
        ((6, 1), "10 iterations are 5 tiles of 2: 1 of 6 ranks along it are idle. Write 5."),
        ((1, 9), "cuts __i1 .* 8 iterations are 8 tiles of 1: 1 of 9 .* Write 8."),
    ],
)
def test_idle_ranks_are_told_in_one_line_before_the_work_and_in_the_record(parts, told):
    with pytest.warns(ScheduleWarning, match=told) as warned:
        lowering = distspmd.lower(chain.to_sdfg(), {"hidden": parts})
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert [line for line in str(lowering).splitlines() if line == str(warned[0].message)]
    assert str(warned[0].message) in str(distspmd.explain(lowering))
    assert lowering.warned == (str(warned[0].message),)


@pytest.mark.parametrize("parts", [(5, 1), (4, 2), (10, 8)])
def test_grids_that_leave_no_rank_idle_are_not_told(parts, recwarn):
    lowering = distspmd.lower(chain.to_sdfg(), {"hidden": parts})
    assert not [w for w in recwarn if w.category is ScheduleWarning]
    assert not [sentence for sentence in lowering.remarks if "idle" in sentence]


def test_spaces_that_run_whole_are_told_in_the_record():
    lowering = distspmd.lower(labels_repeat.to_sdfg(), {}, fuse=False)
    (sentence,) = lowering.remarks
    assert sentence.startswith("Not split, and run whole by rank 0: a, b, __return (")
    assert sentence.endswith(" s of a run, as predicted).")
    assert sentence in str(lowering)


@pytest.mark.parametrize("parts", [(10**9, 1), (10**20, 1), (2**11, 2**11)])
def test_more_ranks_than_can_be_planned_for_are_refused(parts, spaces):
    with pytest.raises(ScheduleError, match="more than the 1,048,576 that are planned for"):
        resolve({"hidden": parts}, spaces)


@dace.program
def two_maps(x: dace.float64[10, 8], y: dace.float64[10, 8]):
    t = np.empty_like(x)
    for i, j in dace.map[0:10, 0:8] @ dace.ScheduleType.GPU_Device:
        t[i, j] = x[i, j] + 1
    for i, j in dace.map[0:10, 0:8]:
        y[i, j] = t[i, j] * 2


@pytest.mark.parametrize("again", [lambda: two_maps, two_maps.to_sdfg], ids=["program", "sdfg"])
def test_a_map_of_another_parse_stands_for_the_one_that_is_like_it(again) -> None:
    entries = [
        node
        for node, _ in two_maps.to_sdfg().all_nodes_recursive()
        if isinstance(node, dace.nodes.MapEntry)
    ]
    entry = entries[1]
    for key in (entry, entry.map, entry.map.label):
        lowering = distspmd.lower(again(), {key: (2, 3)})
        parts = {space.name: space.parts for space in lowering.spaces}
        reasons = {space.name: str(space.chosen_by) for space in lowering.spaces}
        assert parts["y"] == (2, 3)
        assert reasons["y"] == "the schedule"


def test_a_map_that_is_like_several_is_refused(sdfg: dace.SDFG) -> None:
    entry, _ = dace.SDFG("other").add_state().add_map("map", {"i": "0:10"})
    with pytest.raises(ScheduleError, match="like none of them, or like several"):
        resolve({entry: (2,)}, list_spaces(labels_repeat.to_sdfg()))
