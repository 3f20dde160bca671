"""What an inspection computes, and where it cannot be told what is touched."""

import pytest
from lowering.programs import irregular

import distspmd
from distspmd.errors import PlanError
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.plans.encoding import Storage
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.request_encoding import Fetch
from distspmd.solvers.exchange import Exchange


def lowered(program, schedule):
    sdfg = program.to_sdfg()
    lowering = distspmd.lower(sdfg, schedule)
    return lowering.sdfg, lowering


def fetched(program, schedule):
    """Text of the inspection of each fetched array."""
    return {f.data: f.inspection for f in lowered(program, schedule)[1].fetches}


def nodes_of(sdfg):
    """The nodes that ask or fetch, as text, by whether they stand in the first state."""
    found = [(n, s) for n, s in sdfg.all_nodes_recursive() if isinstance(n, FetchedMemlet)]
    return sorted(
        (s is sdfg.start_block, n.array, bool(n.asks), "_out" in n.out_connectors) for n, s in found
    )


@pytest.mark.parametrize(
    ("program", "schedule", "inspections"),
    [
        (
            irregular.spmv_in_maps,
            {"__return": (3,)},
            {
                "col": "j, j = row[i]..row[i + 1] - 1",
                "val": "j, j = row[i]..row[i + 1] - 1",
                "x": "col[j], j = row[i]..row[i + 1] - 1",
            },
        ),
        (
            irregular.spmv_of_slices,
            {"y": (3,)},
            {
                "col": "__ind0 + row[i], __ind0 = 0..-row[i] + row[i + 1] - 1",
                "val": "row[i]..row[i + 1] - 1",
                "x": "col[__ind0 + row[i]], __ind0 = 0..-row[i] + row[i + 1] - 1",
            },
        ),
        (irregular.table_rows, {"out": (2,)}, {"table": "index[i]"}),
        (irregular.chosen_columns, {"__return": (2, 2)}, {"table": "index[__i1]"}),
        (
            irregular.index_of_indices,
            {"y": (2,)},
            {"p": "index[i]", "x": "p[index[i]] + 1; i"},
        ),
        (irregular.two_indices, {"y": (2,)}, {"x": "a[i], Mod(b[i] + i, 12)"}),
        (irregular.padded, {"y": (2,)}, {"x": "index[i, k], k = 0..2"}),
    ],
)
def test_the_record_says_what_is_inspected(program, schedule, inspections):
    assert fetched(program, schedule) == inspections


@pytest.mark.parametrize(
    ("program", "data"), [(irregular.follows_itself, "following"), (irregular.computed_index, "x")]
)
def test_what_cannot_be_inspected_is_read_whole_and_the_record_says_so(program, data):
    _, record = lowered(program, {"y": (2,)})
    assert record.fetches == ()
    (sentence,) = record.approximate
    assert f"reads all of dimension 0 of '{data}'" in sentence


def test_the_tables_say_that_it_is_resolved_at_run_time():
    _, record = lowered(irregular.table_rows, {"out": (2,)})
    assert "resolved at run time" in str(record)
    assert "at most 288" in str(record)
    assert record.approximate == ()
    assert "only index[i], resolved at run time" in str(distspmd.explain(record))


def test_nothing_is_fetched_on_one_rank():
    sdfg, record = lowered(irregular.spmv_in_maps, {"__return": (1,)})
    assert record.fetches == ()
    assert nodes_of(sdfg) == []


def test_what_does_not_change_is_fetched_once_at_the_start():
    sdfg, record = lowered(irregular.indices_of_a_loop, {"y": (2,)})
    assert [fetch.times for fetch in record.fetches] == [3]
    assert nodes_of(sdfg) == [(False, "x", True, True)]  # t chooses the indices
    sdfg, record = lowered(irregular.spmv_in_maps, {"__return": (2,)})
    assert nodes_of(sdfg) == [(True, name, True, True) for name in ("col", "val", "x")]
    assert [fetch.times for fetch in record.fetches] == [1, 1, 1]


def test_what_changes_is_asked_for_once_where_the_indices_do_not_change():
    sdfg, _ = lowered(irregular.powers, {"y.2": (2,)})
    assert nodes_of(sdfg) == [
        (False, "x", False, True),
        (True, "col", True, True),
        (True, "val", True, True),
        (True, "x", True, False),
    ]


def test_changing_indices_are_asked_for_before_each_use():
    sdfg, _ = lowered(irregular.moving_indices, {"y": (2,)})
    assert nodes_of(sdfg) == [(False, "x", True, True)]


def test_a_fetch_refuses_dimensions_that_are_not_there():
    mesh = Mesh(x=2)
    move = Redistribution(Layout.parse("[4{x}8]", mesh), Layout.parse("[8]", mesh), "float64")
    storages = (Storage((0,), (1,)), Storage((0,), (1,)))
    plan = Exchange().plan(move)
    assert len(Fetch("x", plan, (0,), storages).words(1)) > 10
    with pytest.raises(PlanError, match=r"no dimensions \(1,\) in \[8\]"):
        Fetch("x", plan, (1,), storages)
    with pytest.raises(PlanError, match="no dimensions"):
        Fetch("x", plan, (), storages)


@pytest.mark.parametrize(
    "ranks", [1, 4, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (2, 5))]
)
def test_ranks_receive_exactly_what_their_indices_name(launch, root, ranks):
    done = launch(root / "tests" / "ranks" / "fetching.py", ranks=ranks)
    assert f"exact on {ranks} ranks" in done.stdout
