"""Every worked example of the mesh dialect's notes and of the redistribution paper."""

import numpy as np
import pytest

from distspmd.layouts import notations
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.simulator import simulate, tiles_of
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS
from distspmd.solvers.collectives.search import Transfers
from distspmd.solvers.collectives.solver import Collectives, best, problem_of
from distspmd.solvers.exchange import Exchange

MESH_EXAMPLES = [
    ((2, 3), (6,), "[[0, 1]]", "[[1, 0]]"),
    ((2, 3), (6,), "[[0, 1]]", "[[1]]"),
    ((2, 3), (4, 6), "[[], [0, 1]]", "[[], [0]]"),
    ((2, 2, 2), (4, 8), "[[0], [1, 2]]", "[[0], [2]]"),
    ((2, 3), (6, 6), "[[0], [1]]", "[[1], [0]]"),
    ((2, 6), (6, 6), "[[0], [1]]", "[[1], [0]]"),
    ((3, 4), (16, 23), "[[0], [1]]", "[[1], [0]]"),
    ((5, 2), (27, 14), "[[0], [1]]", "[[1], [0]]"),
    ((2, 3), (12, 18), "[[0], [1]]", "[[1], [0]]"),
    ((3,), (6, 6), "[[0], []]", "[[], [0]]"),
    ((2, 2, 2), (4, 4), "[[0], [1, 2]]", "[[0, 1], [2]]"),
    ((2, 2), (4,), "[[]]", "[[1]]"),
    ((2, 2), (4,), "[[0]]", "[[]]"),
    ((2, 3), (4, 6), "[[0], [1]]", "[[1], [0]]"),
    ((2, 3, 2, 2), (12, 12, 12), "[[3, 2], [], [0, 1]]", "[[0], [1, 2], []]"),
]

PAPER_EXAMPLES = [
    ("xdev=4,ydev=4", "[64{ydev,xdev}1024, 12]", "[64{xdev,ydev}1024, 12]"),
    ("xdev=4,ydev=4", "[32{xdev}128, 16{ydev}64]", "[32{ydev}128, 16{xdev}64]"),
    ("xdev=4,ydev=4", "[32{xdev}128]", "[32{ydev}128]"),
    ("xdev=4,ydev=4", "[32{xdev,ydev}512, 5]", "[128{ydev}512, 5]"),
    ("devs=32", "[32, 4{devs}128]", "[1{devs}32, 128]"),
    ("x=4,y=4", "[4{x,y}64, 16]", "[16{x}64, 4{y}16]"),
    ("x=4,y=4", "[4{x}16, 64, 4{y}16]", "[16, 4{y,x}64, 16]"),
    ("x=4,y=4", "[4{x}16, 64, 4{y}16]", "[16, 16{y}64, 16]"),
    ("x=4,y=6", "[3{x}12, 2{y}12]", "[2{y}12, 3{x}12]"),
    ("x=8", "[1{x}8, 8]", "[8, 1{x}8]"),
    ("x=4,y=2,z=4", "[1{y,x}8, 8, 8, 4]", "[8, 4{y}8, 2{x}8, 4]"),
    ("x=4,y=4", "[16]", "[4{x}16]"),
    ("a=2,b=2,c=2", "[36, 23{c}46, 40]", "[9{c,a}36, 46, 20{b}40]"),
    ("a=2,b=2,c=2", "[80, 20{c}40, 18, 4]", "[40{b}80, 40, 9{c}18, 4]"),
    ("a=2,b=2,c=2", "[8, 12, 20{c}40]", "[2{b,c}8, 6{a}12, 40]"),
    ("a=2,b=2,c=2", "[2{c}4, 4, 2, 2{a}4, 3, 4, 2{b}4]", "[4, 4, 2, 4, 3, 2{a}4, 4]"),
]


def moves():
    for sizes, extents, source, target in MESH_EXAMPLES:
        mesh = Mesh(**{f"a{number}": size for number, size in enumerate(sizes)})
        pair = (notations.from_mesh_axes(text, extents, mesh) for text in (source, target))
        yield Redistribution(*pair, np.dtype("int32"))
    for sizes, source, target in PAPER_EXAMPLES:
        mesh = Mesh.parse(sizes)
        pair = (Layout.parse(text, mesh) for text in (source, target))
        yield Redistribution(*pair, np.dtype("int32"))


@pytest.mark.parametrize("move", list(moves()), ids=str)
def test_an_example_is_planned_proved_and_computed_by_every_solver(move):
    array = np.arange(np.prod(move.source.extents)).reshape(move.source.extents).astype(move.dtype)
    for solver in SOLVERS:
        plan = solver.plan(move)
        if isinstance(plan, Plan):
            verify(plan)
            found = simulate(plan, tiles_of(move.source, array))
            for tile, wanted in zip(found, tiles_of(move.target, array), strict=True):
                assert (tile == wanted).all()
    exchange = Exchange().plan(move)
    assert all(exchange.received(r) == move.bound.received(r) for r in range(move.ranks))


def kinds(sizes, source, target):
    mesh = Mesh.parse(sizes)
    pair = [Layout.parse(text, mesh) for text in (source, target)]
    plan = Collectives().plan(Redistribution(*pair, np.dtype("float32")))
    assert isinstance(plan, Plan)
    return [str(step.kind) for step in plan.steps]


def cost(sizes, source, target):
    mesh = Mesh.parse(sizes)
    move = Redistribution(
        *(Layout.parse(text, mesh) for text in (source, target)), np.dtype("int8")
    )
    return best(move, problem_of(move), Transfers()).cost


def test_swapping_axes_within_a_dimension_permutes_once():
    assert kinds("x=4,y=4", "[64{y,x}1024, 128]", "[64{x,y}1024, 128]") == ["permute"]


def test_the_chain_of_matrix_products_needs_one_all_to_all():
    assert kinds("devs=32", "[3200, 6400{devs}204800]", "[100{devs}3200, 204800]") == ["all_to_all"]


def test_slices_take_the_axes_of_the_target():
    assert kinds("x=4,y=4", "[16]", "[4{x}16]") == ["copy"]


def test_example_3_1_never_gathers_the_array():
    found = kinds("x=4,y=6", "[3072{x}12288, 2048{y}12288]", "[2048{y}12288, 3072{x}12288]")
    assert "all_gather" not in found
    assert found.count("permute") <= 1


def test_example_7_1_merges_three_all_to_alls():
    assert cost("x=8", "[1{x}8, 8]", "[8, 1{x}8]") == pytest.approx(8)


def test_figure_12_partitions_further_than_both_sides():
    found = cost("x=4,y=2,z=4", "[1{y,x}8, 8, 8, 4]", "[8, 4{y}8, 2{x}8, 4]")
    assert found <= 384 + 64  # the paper's, and a permutation


def test_p4_gathers_last():
    found = kinds(
        "a=2,b=2,c=2",
        "[8{c}16, 16, 16, 8{a}16, 16, 16, 8{b}16]",
        "[16, 16, 16, 16, 16, 8{a}16, 16]",
    )
    assert found[-1] == "all_gather"


def test_gathers_in_several_dimensions_are_one_step():
    found = kinds("x=4,y=4", "[256{x}1024, 256{y}1024]", "[1024, 1024]")
    assert found == [str(StepKind.ALL_GATHER)]


def test_partial_values_are_scattered_or_combined_by_all():
    assert kinds("x=4", "[4096, 64] + partial(sum){x}", "[1024{x}4096, 64]") == ["reduce_scatter"]
    both = kinds("x=4", "[4, 4] + partial(sum){x}", "[4, 4]")
    assert both in (["all_reduce"], ["reduce_scatter", "all_gather"])
